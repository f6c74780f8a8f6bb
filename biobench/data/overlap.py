"""Contamination: how much of a task's validation and test text stands in training text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from biobench.core.word_runs import folded, runs, words
from biobench.data.checks.similar import normalised, readings
from biobench.errors import UsageError
from biobench.schema.contamination import SplitOverlap
from biobench.schema.document import Document

N = 13
"""Words in a row that count as seen; the length that contamination studies of language models use.
"""
_SPLITS = ("validation", "test")


class _Hashes(NamedTuple):
    """Of a text: the whole of it, and its 13-grams."""

    text: int
    grams: list[int]


def overlap(
    corpus: Iterable[str], tasks: Mapping[str, Mapping[str, list[Document]]]
) -> tuple[dict[tuple[str, str], SplitOverlap], str]:
    """(task, split) to exact and 13-gram overlap of the texts of `corpus` (read once), for
    validation and test; and the sha256 of the corpus, which is over those of its texts.

    Words are runs of word characters; case and the encoding of accents and ligatures (NFKC) do not
    matter, as in what pretraining keeps out. Memory holds the 13-grams of the tasks, not of the
    corpus. Raises UsageError where the corpus holds no text.
    """
    hashes_of: dict[tuple[str, str], list[_Hashes]] = {}
    for task, splits in tasks.items():
        for split in _SPLITS:
            hashes_of[task, split] = list(map(_hashes, readings(splits[split])))
    every = list(chain.from_iterable(hashes_of.values()))
    texts = set(map(attrgetter("text"), every))
    grams = set(chain.from_iterable(map(attrgetter("grams"), every)))
    seen_texts: set[int] = set()
    seen_grams: set[int] = set()
    digest = hashlib.sha256()
    is_empty = True
    for text in corpus:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        if text.strip():
            is_empty = False
            seen_texts |= texts & {_whole(text)}
        seen_grams |= grams.intersection(_grams(text))
    if is_empty:
        raise UsageError("the corpus holds no text", hint="give the training text itself")
    counts = {key: _counted(hashes, seen_texts, seen_grams) for key, hashes in hashes_of.items()}
    return counts, digest.hexdigest()


def _counted(documents: list[_Hashes], texts: set[int], grams: set[int]) -> SplitOverlap:
    """The overlap of a split's documents with the texts and 13-grams that were seen."""
    counts: Counter[str] = Counter(documents=len(documents))
    for document in documents:
        is_exact = document.text in texts
        ngrams_seen = sum(map(grams.__contains__, document.grams))
        counts.update(
            exact=is_exact,
            touched=ngrams_seen > 0,
            ngrams=len(document.grams),
            ngrams_seen=ngrams_seen,
            short=not document.grams,
            seen=is_exact or ngrams_seen > 0,
        )
    return SplitOverlap(**{name: counts[name] for name in SplitOverlap.model_fields})


def _hashes(text: str) -> _Hashes:
    return _Hashes(_whole(text), _grams(text))


def _grams(text: str) -> list[int]:
    """Hashes of the 13-grams; a chance collision is about 1 in 10^10 a comparison."""
    grams: list[int] = runs(words(text), N).tolist()
    return grams


def _whole(text: str) -> int:
    """Hash of a whole text, white space collapsed."""
    return hash(normalised(folded(text)))
