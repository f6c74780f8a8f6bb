"""Finding the same and nearly the same texts across splits, exactly and without comparing all pairs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
JACCARD = 0.8
"""Two texts whose sets of words overlap this much are near-duplicates."""
_FEWEST = 5
"""Texts with fewer distinct words are too short to be called near-duplicates."""


def normalised(text: str) -> str:
    """Lower case, white space collapsed: what 'verbatim' means here."""
    return " ".join(text.lower().split())


def same(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """(index in left, first index in right) of texts in `left` that also stand in `right`."""
    first: dict[str, int] = {}
    for i, text in enumerate(right):
        first.setdefault(normalised(text), i)
    return [(i, first[n]) for i, text in enumerate(left) if (n := normalised(text)) in first and n]


def near(left: Sequence[str], right: Sequence[str], threshold: float = JACCARD) -> list[tuple[int, int]]:
    """(index in left, an index in right) of texts whose word sets have a Jaccard similarity of `threshold`.

    Prefix filtering (Chaudhuri, Ganti, Kaushik 2006): with words in one global order of rarity, two sets that
    are this similar share a word among the first |x| - ceil(threshold |x|) + 1 of each. Exact, not a sketch.
    """
    left_sets = [set(_WORD.findall(text.lower())) for text in left]
    right_sets = [set(_WORD.findall(text.lower())) for text in right]
    frequency = Counter(word for words in (*left_sets, *right_sets) for word in words)

    def prefix(words: set[str]) -> list[str]:
        ordered = sorted(words, key=lambda w: (frequency[w], w))
        return ordered[: len(words) - math.ceil(threshold * len(words)) + 1]

    index: dict[str, list[int]] = {}
    for i, words in enumerate(right_sets):
        if len(words) >= _FEWEST:
            for word in prefix(words):
                index.setdefault(word, []).append(i)
    pairs: list[tuple[int, int]] = []
    for i, words in enumerate(left_sets):
        if len(words) < _FEWEST:
            continue
        tried: set[int] = set()
        for word in prefix(words):
            match = _first(words, index.get(word, ()), right_sets, tried, threshold)
            if match is not None:
                pairs.append((i, match))
                break
    return pairs


def _first(
    words: set[str], candidates: Sequence[int], sets: list[set[str]], tried: set[int], threshold: float
) -> int | None:
    for j in candidates:
        if j in tried:
            continue
        tried.add(j)
        other = sets[j]
        if min(len(words), len(other)) < threshold * max(len(words), len(other)):
            continue
        shared = len(words & other)
        if shared >= threshold * (len(words) + len(other) - shared):
            return j
    return None
