"""Whether mentions recur as mentions should: the dictionary with all mentions moved by a word.

The surfaces of true mentions recur from training to test. After a shift by one word the mentions are made of
what stood before or behind them, which recurs less. So the training dictionary is built and asked once more
with all mentions, of both splits, moved by a word: a move after which it does much better shows that the
mentions are shifted, also where every edge lies neatly between words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biobench.gate.dictionary import Dictionary
from biobench.gate.permutation import ALPHA, PERMUTATIONS
from biobench.gate.words import Place, Words
from biobench.schema.document import Document, TaskData
from biobench.stats.types import FloatArray

MOVES = {-1: "to the left", 1: "to the right"}
FACTOR = 1.5
"""A move must raise micro F1 by half. On the corpora measured (docs/floors.md) it divides it by 1.7 or more, and
the way back after a shift multiplies it by 1.7 or more."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """observed: micro F1 (0-1) of the dictionary as annotated; best: under the better move; other: under the
    other; move: in words; p: one-sided, of the better move against none, by swapping outcomes within groups."""

    observed: float
    best: float
    other: float
    move: str
    p: float

    @property
    def shifted(self) -> bool:
        """Whether the better move is better than none, by the factor and by the test, and than the other move.

        Where both moves are better alike, mentions are new names among common words, not shifted.
        """
        return self.best >= FACTOR * max(self.observed, self.other) and self.best > 0 and self.p < ALPHA


def alignment(data: TaskData, seed: int) -> Alignment:
    """The dictionary as annotated and with all mentions moved one word to either side."""
    train, test = _read(data.train), _read(data.test)
    groups = np.unique([d.group for d in data.test], return_inverse=True)[1]
    annotated = _counts(train, test, groups, data.labels, 0)
    moved = {step: _counts(train, test, groups, data.labels, step) for step in MOVES}
    step = max(moved, key=lambda s: float(_f1(moved[s].sum(axis=0))))
    return Alignment(
        observed=float(_f1(annotated.sum(axis=0))),
        best=float(_f1(moved[step].sum(axis=0))),
        other=float(_f1(moved[-step].sum(axis=0))),
        move=MOVES[step],
        p=_p(moved[step], annotated, seed),
    )


_Read = list[tuple[Words, list[Place]]]


def _read(documents: Sequence[Document]) -> _Read:
    texts = [Words.of(d) for d in documents]
    return [(words, words.places(d.spans)) for words, d in zip(texts, documents, strict=True)]


def _moved(rows: _Read, step: int) -> _Read:
    """All mentions moved by `step` words; those that would leave their document stay out."""
    return [
        (words, [(a + step, b + step, label) for a, b, label in places if a + step >= 0 and b + step <= len(words)])
        for words, places in rows
    ]


def _counts(train: _Read, test: _Read, groups: np.ndarray, labels: Sequence[str], step: int) -> FloatArray:
    """(groups, 2): twice the hits; predicted and gold mentions together."""
    known = Dictionary(_moved(train, step), labels)
    counted = np.zeros((int(groups.max()) + 1, 2))
    for group, (words, places) in zip(groups.tolist(), _moved(test, step), strict=True):
        predicted, gold = set(known.places(words)), set(places)
        counted[group] += 2 * len(predicted & gold), len(predicted) + len(gold)
    return counted


def _f1(sums: FloatArray) -> FloatArray:
    """Micro F1 from (..., 2) sums."""
    return np.asarray(sums[..., 0] / np.maximum(sums[..., 1], 1))


def _p(moved: FloatArray, annotated: FloatArray, seed: int) -> float:
    """One-sided p of the moved dictionary's micro F1 being higher, by swaps within groups."""
    swap = np.random.default_rng(seed).integers(0, 2, size=(PERMUTATIONS, len(annotated))).astype(np.float64)
    exchanged = swap @ (annotated - moved)
    drawn = _f1(moved.sum(axis=0) + exchanged) - _f1(annotated.sum(axis=0) - exchanged)
    observed = float(_f1(moved.sum(axis=0)) - _f1(annotated.sum(axis=0)))
    return (1 + int((drawn >= observed - 1e-12).sum())) / (1 + PERMUTATIONS)
