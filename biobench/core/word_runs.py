"""Words and runs of words of a text, as contamination is counted."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15 | 1
_WORD = re.compile(r"\w+")


def folded(text: str) -> str:
    """The text without case and the encoding of accents and ligatures (NFKC) mattering."""
    return unicodedata.normalize("NFKC", text).casefold()


def words(text: str) -> list[str]:
    """The words of the folded text: runs of word characters."""
    return _WORD.findall(folded(text))


@lru_cache(maxsize=1 << 18)
def hash_of(text: str) -> int:
    """64 bits of a word or a text."""
    content = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def runs(tokens: list[str], n: int) -> Hashes:
    """A 64-bit hash for each run of n words, a polynomial over the words' hashes; empty for shorter
    texts.
    """
    count = max(0, len(tokens) - n + 1)
    hashes = np.fromiter(map(hash_of, tokens), dtype=np.uint64, count=len(tokens))
    total = np.zeros(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for shift in range(n):
            total = total * np.uint64(_BASE) + hashes[shift : shift + count]
    return total
