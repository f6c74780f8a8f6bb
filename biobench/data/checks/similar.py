"""Texts that are the same, or nearly: verbatim copies and near-duplicates by shared words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from biobench.schema.document import Document

_WORD = re.compile(r"\w+")
JACCARD = 0.8
"""Two texts whose sets of words overlap this much are near-duplicates."""
_FEWEST = 5
"""Texts with fewer distinct words are too short to be called near-duplicates."""
_ROWS = 256
"""Texts that are compared with all others at once."""


def normalised(text: str) -> str:
    """Lower case, white space collapsed: what 'verbatim' means here."""
    return " ".join(text.lower().split())


def readings(documents: Iterable[Document]) -> list[str]:
    """The texts of the documents, those of a pair together."""
    return [document.reading for document in documents]


def same(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Places of texts in `left` that also stand in `right`; empty ones aside."""
    texts = set(map(normalised, right)) - {""}
    return [i for i, text in enumerate(left) if normalised(text) in texts]


def near(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Places of texts in `left` whose words and those of a text in `right` have a Jaccard
    similarity of 0.8.
    """
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    if not (any(map(_WORD.search, left)) and any(map(_WORD.search, right))):
        return []
    vectorizer = CountVectorizer(binary=True, token_pattern=_WORD.pattern, dtype=np.int32)
    vectorizer.fit([*left, *right])
    words, other_words = vectorizer.transform(left), vectorizer.transform(right)
    sizes = np.asarray(words.sum(axis=1))
    other_sizes = np.asarray(other_words.sum(axis=1)).ravel()
    columns = other_words.T.tocsr()
    places: list[int] = []
    for begin in range(0, len(left), _ROWS):
        rows = slice(begin, begin + _ROWS)
        shared = (words[rows] @ columns).toarray()
        in_either = sizes[rows] + other_sizes - shared
        are_long = np.minimum(sizes[rows], other_sizes) >= _FEWEST
        are_near = are_long & (shared >= JACCARD * in_either)
        found = np.flatnonzero(are_near.any(axis=1))
        places += (begin + found).tolist()
    return places
