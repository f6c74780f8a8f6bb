"""Keeping the benchmark's documents out of the pretraining text.

A document is left out when its normalised text equals an excluded one, or when it shares a run of n words
(13 by default) with one: the usual contamination rule. Word runs are hashed to 64 bits by a polynomial over
word hashes, so that a document costs a few vector operations.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15 | 1
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text, without case, accents' encoding and punctuation mattering."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=1 << 18)
def _word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def _text_hash(tokens: list[str]) -> int:
    return int.from_bytes(hashlib.blake2b(" ".join(tokens).encode(), digest_size=8).digest(), "little")


def _runs(tokens: list[str], n: int) -> Hashes:
    """A hash for each run of n words; empty for shorter texts."""
    if len(tokens) < n:
        return np.zeros(0, dtype=np.uint64)
    hashes = np.fromiter((_word_hash(t) for t in tokens), dtype=np.uint64, count=len(tokens))
    total = np.zeros(len(tokens) - n + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for k in range(n):
            total = total * np.uint64(_BASE) + hashes[k : len(tokens) - n + 1 + k]
    return total


class Excluded:
    """The set of excluded documents. count: how many went in; hash: of the whole set, for the manifest."""

    def __init__(self, texts: Iterable[str], *, n: int = 13) -> None:
        self.n = n
        whole: set[int] = set()
        runs: list[Hashes] = []
        self.count = 0
        for text in texts:
            tokens = words(text)
            if not tokens:
                continue
            self.count += 1
            whole.add(_text_hash(tokens))
            runs.append(_runs(tokens, n))
        self._whole = whole
        self._runs: Hashes = np.unique(np.concatenate(runs)) if runs else np.zeros(0, dtype=np.uint64)
        digest = hashlib.sha256(np.array(sorted(whole), dtype=np.uint64).tobytes())
        digest.update(self._runs.tobytes())
        self.hash = digest.hexdigest() if self.count else ""

    def why(self, text: str) -> str | None:
        """``same`` or ``overlap`` when `text` must be left out, else None."""
        if not self.count:
            return None
        tokens = words(text)
        if _text_hash(tokens) in self._whole:
            return "same"
        runs = _runs(tokens, self.n)
        if runs.size and self._runs.size:
            at = np.searchsorted(self._runs, runs).clip(max=self._runs.size - 1)
            if bool((self._runs[at] == runs).any()):
                return "overlap"
        return None
