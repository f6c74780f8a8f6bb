"""Permutation tests of the gate; one-sided p = (1 + as large or larger) / (1 + draws).

`beats` swaps two baselines' outcomes within groups of documents. It alone cannot tell whether text
matters: a baseline that guesses labels at random has a better macro F1 than the majority class. So
`beats_permuted` compares a baseline with itself after its predictions were permuted among the
documents, which keeps how often it says what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.baselines.words import Words
from biobench.schema.document import Document, Prediction
from biobench.score import GroupCounts
from biobench.stats.counts import f1_from_sums
from biobench.stats.types import BoolArray, FloatArray, IntArray

PERMUTATIONS = 999
"""Draws; the smallest p is 1 / 1000."""
ALPHA = 0.01
UNITS = 8
"""Groups (or documents) that a test needs: fewer have too few orders for a p below `ALPHA`."""
_CHUNK = 200
_STRATUM = 16
"""Documents of a similar length among which mentions are permuted: long documents have more gold
and more predictions, and permuting across lengths would take that for information.
"""


class Tested(NamedTuple):
    """observed: the baseline's score, 0-1; other: the opponent's, or the mean of the permuted
    draws; p: one-sided.
    """

    observed: float
    other: float
    p: float

    @property
    def significant(self) -> bool:
        """p below `ALPHA`."""
        return self.p < ALPHA


def beats(first: GroupCounts, second: GroupCounts, evaluated: BoolArray, seed: int) -> Tested:
    """Whether the first baseline's macro F1 is higher than the second's, paired over the groups.

    evaluated: (labels,), the labels with gold in the full test split.
    """
    gold = (first.tp + first.fn).sum(axis=0)
    totals = [(c.tp.sum(axis=0), (c.tp + c.fp).sum(axis=0)) for c in (first, second)]
    moved_hits, moved_predicted = (
        second.tp - first.tp,
        (second.tp + second.fp) - (first.tp + first.fp),
    )

    def difference(hits: ArrayLike, predicted: ArrayLike) -> FloatArray:
        """Of macro F1 after moving these counts from the second to the first."""
        a = _macro(totals[0][0] + hits, totals[0][1] + predicted, gold, evaluated)
        return a - _macro(totals[1][0] - hits, totals[1][1] - predicted, gold, evaluated)

    rng = np.random.default_rng(seed)
    drawn = []
    for begin in range(0, PERMUTATIONS, _CHUNK):
        size = (min(_CHUNK, PERMUTATIONS - begin), len(first.groups))
        swap = rng.integers(0, 2, size=size).astype(np.float64)
        drawn.append(difference(np.rint(swap @ moved_hits), np.rint(swap @ moved_predicted)))
    observed = float(difference(np.zeros_like(gold), np.zeros_like(gold)))
    mine, other = (float(_macro(*t, gold, evaluated)) for t in totals)
    return Tested(mine, other, _p(observed, np.concatenate(drawn)))


def beats_permuted(
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    evaluated: BoolArray,
    seed: int,
    *,
    places: bool,
) -> Tested:
    """Whether a baseline's macro F1 is higher than with its predictions permuted among the
    documents.

    places: predictions are mentions, compared by word positions, permuted among documents of
    similar length; else they are labels, permuted by whole groups, so that what a group's documents
    share stays together.
    """
    by_document = {p.document: p for p in predictions}
    words = [Words.of(d) for d in gold]

    def items(answers: Iterable[Document | Prediction]) -> list[Sequence[tuple[int, int, str]]]:
        if places:
            return [text.places(a.spans) for text, a in zip(words, answers, strict=True)]
        return [[(0, 0, label) for label in set(a.labels)] for a in answers]

    true, predicted = (
        items(gold),
        items(by_document.get(d.id, Prediction(document=d.id)) for d in gold),
    )
    number = {
        item: i
        for i, item in enumerate(dict.fromkeys(item for row in (*true, *predicted) for item in row))
    }
    column = {label: i for i, label in enumerate(labels)}
    tally = Counter(
        label
        for d in gold
        for label in ([s.label for s in set(d.spans)] if places else set(d.labels))
    )
    gold_sums = np.array([tally[label] for label in labels], dtype=np.int64)
    # an item and its document as one number; the last of the sorted ones is beyond all
    keys = np.array(
        [i * len(number) + number[item] for i, row in enumerate(true) for item in row],
        dtype=np.int64,
    )
    keys = np.append(np.unique(keys), np.iinfo(np.int64).max)
    rows = [(i, number[item], column[item[2]]) for i, row in enumerate(predicted) for item in row]
    owner, what, which = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    predicted_sums = np.bincount(which, minlength=len(labels))

    def macro(seat: IntArray) -> float:
        """With the predictions of document i laid on document seat[i]."""
        laid = seat[owner] * len(number) + what
        hits = np.bincount(which[keys[np.searchsorted(keys, laid)] == laid], minlength=len(labels))
        return float(_macro(hits, predicted_sums, gold_sums, evaluated))

    lengths = np.array([len(text) for text in words])
    groups = np.unique([d.group for d in gold], return_inverse=True)[1]
    seats = (
        (lambda rng: _within_lengths(lengths, rng))
        if places
        else (lambda rng: _by_group(groups, rng))
    )
    return _permuted(macro, seats, len(gold), seed)


def types_beat_permuted(
    gold: Sequence[Document], predictions: Sequence[Prediction], seed: int
) -> Tested | None:
    """Whether mentions found with the right boundaries have the right type more often than with
    types permuted among them. Shares, not F1. None where no boundary was found or all found ones
    are of one type.
    """
    true = {d.id: set(d.spans) for d in gold}
    bounds = {(d.id, s.start, s.end) for d in gold for s in d.spans}
    places = [
        (p.document, s)
        for p in predictions
        for s in p.spans
        if (p.document, s.start, s.end) in bounds
    ]
    names, types = np.unique([s.label for _, s in places], return_inverse=True)
    if len(names) < 2:
        return None
    fits = np.array(
        [
            [s._replace(label=str(name)) in true[document] for name in names]
            for document, s in places
        ]
    )
    rows = np.arange(len(types))
    return _permuted(lambda order: float(fits[rows, types[order]].mean()), None, len(types), seed)


def beats_permuted_score(
    predictions: Sequence[Prediction], score: Callable[[Sequence[Prediction]], float], seed: int
) -> Tested:
    """Whether a baseline's score is higher than with its predictions permuted among the documents,
    one by one.
    """

    def moved(order: IntArray) -> float:
        return score(
            [
                replace(predictions[j], document=p.document)
                for p, j in zip(predictions, order, strict=True)
            ]
        )

    return _permuted(moved, None, len(predictions), seed)


def _permuted(
    score: Callable[[IntArray], float],
    seats: Callable[[np.random.Generator], IntArray] | None,
    size: int,
    seed: int,
) -> Tested:
    """The score of things in their order, and in the orders that `seats` draws (None: any)."""
    rng = np.random.default_rng(seed)
    drawn = [
        score(rng.permutation(size) if seats is None else seats(rng)) for _ in range(PERMUTATIONS)
    ]
    observed = score(np.arange(size))
    return Tested(observed, float(np.mean(drawn)), _p(observed, np.array(drawn)))


def _p(observed: float, drawn: FloatArray) -> float:
    # Sums in another order differ in the last digits; a draw that equals the observed one counts as
    # equal.
    return (1 + int((drawn >= observed - 1e-12).sum())) / (1 + drawn.size)


def _macro(
    hits: ArrayLike, predicted: ArrayLike, gold: IntArray, evaluated: BoolArray
) -> FloatArray:
    """Macro F1 from true positives, predicted and gold counts, (..., labels)."""
    return np.asarray(
        f1_from_sums(np.asarray(hits), np.asarray(predicted) + gold, gold, "macro", evaluated)
    )


def _by_group(groups: NDArray[np.int64], rng: np.random.Generator) -> IntArray:
    """Seats: the documents in order of group, laid on the documents in a random order of groups.

    With one document a group this is a plain permutation; larger groups stay side by side.
    """
    rank = rng.permutation(int(groups.max()) + 1)
    seat = np.empty(len(groups), dtype=np.int64)
    seat[np.argsort(rank[groups], kind="stable")] = np.argsort(groups, kind="stable")
    return seat


def _within_lengths(lengths: IntArray, rng: np.random.Generator) -> IntArray:
    """Seats: a permutation within neighbours by length; equally long documents in random order."""
    order = np.lexsort((rng.random(len(lengths)), lengths))
    blocks = np.arange(len(lengths)) // _STRATUM
    seat = np.empty(len(lengths), dtype=np.int64)
    seat[order] = order[np.lexsort((rng.random(len(lengths)), blocks))]
    return seat
