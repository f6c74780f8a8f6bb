"""Keeping the benchmark's documents out of the pretraining text.

A document is left out when its normalised text equals an excluded one, or when it shares a run of n words
(13 by default) with one: the usual contamination rule, on the words and runs of `biobench.core.text`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from biobench.core.text import Hashes, hash_of, words
from biobench.core.text import runs as word_runs


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
            whole.add(hash_of(" ".join(tokens)))
            runs.append(word_runs(tokens, n))
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
        if hash_of(" ".join(tokens)) in self._whole:
            return "same"
        runs = word_runs(tokens, self.n)
        if runs.size and self._runs.size:
            at = np.searchsorted(self._runs, runs).clip(max=self._runs.size - 1)
            if bool((self._runs[at] == runs).any()):
                return "overlap"
        return None
