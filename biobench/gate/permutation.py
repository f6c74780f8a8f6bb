"""Permutation tests of the gate, vectorised over draws; one-sided p = (1 + as large or larger) / (1 + draws).

`beats` swaps two policies' outcomes within groups of documents. It alone cannot tell whether text matters: a
policy that guesses labels at random has a better macro F1 than the majority class. So `beats_dealt` compares a
policy with itself after its predictions were dealt to other documents, which keeps how often it says what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.gate.words import Place, Words
from biobench.schema.document import Document, Prediction
from biobench.score import GroupCounts
from biobench.stats.counts import f1_from_sums
from biobench.stats.types import BoolArray, FloatArray

PERMUTATIONS = 999
"""Draws; the smallest p is 1 / 1000."""
ALPHA = 0.01
UNITS = 8
"""Groups (or documents) that a test needs: with fewer, swaps and deals have too few outcomes for a p below `ALPHA`."""
_CHUNK = 200
_STRATUM = 16
"""Documents of a similar length among which predictions on places are dealt: long documents have more gold
and more predictions, and dealing across lengths would take that for information."""


@dataclass(frozen=True, slots=True)
class Tested:
    """observed: the policy's macro F1; other: the opponent's, or the mean over the dealt draws; p: one-sided."""

    observed: float
    other: float
    p: float

    @property
    def significant(self) -> bool:
        """p below `ALPHA`."""
        return self.p < ALPHA


def beats(first: GroupCounts, second: GroupCounts, evaluated: BoolArray, seed: int) -> Tested:
    """Whether the first policy's macro F1 is higher than the second's, paired over the groups.

    evaluated: (labels,), the labels with gold in the full test split.
    """
    gold = (first.tp + first.fn).sum(axis=0)
    totals = [(c.tp.sum(axis=0), (c.tp + c.fp).sum(axis=0)) for c in (first, second)]
    moved_hits, moved_predicted = second.tp - first.tp, (second.tp + second.fp) - (first.tp + first.fp)

    def difference(hits: ArrayLike, predicted: ArrayLike) -> FloatArray:
        """Of macro F1 after moving these counts from the second to the first."""
        a = _macro(totals[0][0] + hits, totals[0][1] + predicted, gold, evaluated)
        return a - _macro(totals[1][0] - hits, totals[1][1] - predicted, gold, evaluated)

    zero = np.zeros_like(gold)
    observed = float(difference(zero, zero))
    rng = np.random.default_rng(seed)
    drawn = []
    for size in _chunks():
        swap = rng.integers(0, 2, size=(size, len(first.groups))).astype(np.float64)
        drawn.append(difference(np.rint(swap @ moved_hits), np.rint(swap @ moved_predicted)))
    scores = [float(_macro(*t, gold, evaluated)) for t in totals]
    return Tested(scores[0], scores[1], _p(observed, np.concatenate(drawn)))


def beats_dealt(
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    evaluated: BoolArray,
    seed: int,
    *,
    places: bool,
) -> Tested:
    """Whether a policy's macro F1 is higher than with its predictions dealt to other documents.

    places: predictions are mentions, compared by word positions, dealt among documents of similar length;
    else they are labels, dealt by whole groups, so that what a group's documents share stays together.
    """
    by_document = {p.document: p for p in predictions}
    column = {label: i for i, label in enumerate(labels)}
    true: list[list[Place]] = []
    predicted: list[list[Place]] = []
    lengths = []
    for d in gold:
        p = by_document.get(d.id, Prediction(document=d.id))
        if places:
            words = Words.of(d)
            lengths.append(len(words))
            true.append(words.places(d.spans))
            predicted.append(words.places(p.spans))
        else:
            true.append([(0, 0, label) for label in set(d.labels)])
            predicted.append([(0, 0, label) for label in set(p.labels)])
    gold_sums = np.zeros(len(labels), dtype=np.int64)
    for d in gold:
        for label in [s.label for s in set(d.spans)] if places else set(d.labels):
            gold_sums[column[label]] += 1
    # A label and its place as one number, below `scale`.
    longest = 1 + max((end for rows in (*true, *predicted) for _, end, _ in rows), default=0)
    scale = longest * longest * len(labels)
    gold_keys = np.unique([i * scale + _key(place, longest, column) for i, rows in enumerate(true) for place in rows])
    owner = np.array([i for i, rows in enumerate(predicted) for _ in rows], dtype=np.int64)
    keys = np.array([_key(place, longest, column) for rows in predicted for place in rows], dtype=np.int64)
    which = keys % len(labels)
    predicted_sums = np.bincount(which, minlength=len(labels))

    def macro(seat: NDArray[np.int64]) -> float:
        """With the predictions of document i laid on document seat[i]."""
        hit = _member(seat[owner] * scale + keys, gold_keys)
        hits = np.bincount(which[hit], minlength=len(labels))
        return float(_macro(hits, predicted_sums, gold_sums, evaluated))

    rng = np.random.default_rng(seed)
    groups = np.unique([d.group for d in gold], return_inverse=True)[1]
    if places:
        deals = [_within_lengths(np.array(lengths), rng) for _ in range(PERMUTATIONS)]
    else:
        deals = [_by_group(groups, rng) for _ in range(PERMUTATIONS)]
    drawn = np.array([macro(seat) for seat in deals])
    observed = macro(np.arange(len(gold)))
    return Tested(observed, float(drawn.mean()), _p(observed, drawn))


def types_beat_dealt(gold: Sequence[Document], predictions: Sequence[Prediction], seed: int) -> Tested | None:
    """Whether mentions found with the right boundaries have the right type more often than types dealt among
    them. Shares, not F1. None where no boundary was found or all found ones are of one type."""
    spans = {p.document: p.spans for p in predictions}
    types: list[str] = []
    true: list[set[str]] = []
    for d in gold:
        at: dict[tuple[int, int], set[str]] = {}
        for s in d.spans:
            at.setdefault((s.start, s.end), set()).add(s.label)
        for s in spans.get(d.id, ()):
            if (s.start, s.end) in at:
                types.append(s.label)
                true.append(at[s.start, s.end])
    names = sorted({*types, *(label for gold_types in true for label in gold_types)})
    if len(set(types)) < 2:
        return None
    column = {name: i for i, name in enumerate(names)}
    fits = np.array([[name in gold_types for name in names] for gold_types in true])
    columns = np.array([column[label] for label in types])
    rows = np.arange(len(columns))
    rng = np.random.default_rng(seed)
    drawn = np.array([fits[rows, rng.permutation(columns)].mean() for _ in range(PERMUTATIONS)])
    observed = float(fits[rows, columns].mean())
    return Tested(observed, float(drawn.mean()), _p(observed, drawn))


def _macro(hits: ArrayLike, predicted: ArrayLike, gold: NDArray[np.int64], evaluated: BoolArray) -> FloatArray:
    """Macro F1 from true positives, predicted and gold counts, (..., labels)."""
    tp = np.asarray(hits)
    return np.asarray(f1_from_sums(tp, np.asarray(predicted) + gold, gold, "macro", evaluated))


def _p(observed: float, drawn: FloatArray) -> float:
    # Sums in another order differ in the last digits; a draw that equals the observed one counts as equal.
    return (1 + int((drawn >= observed - 1e-12).sum())) / (1 + drawn.size)


def _chunks() -> list[int]:
    whole, rest = divmod(PERMUTATIONS, _CHUNK)
    return [_CHUNK] * whole + ([rest] if rest else [])


def _key(place: Place, longest: int, column: dict[str, int]) -> int:
    begin, end, label = place
    return (begin * longest + end) * len(column) + column[label]


def _member(keys: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each key is among the sorted known ones."""
    if not known.size:
        return np.zeros(keys.shape, dtype=np.bool_)
    at = np.minimum(np.searchsorted(known, keys), known.size - 1)
    return np.asarray(known[at] == keys)


def _by_group(groups: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Seats: the documents in order of group, laid on the documents in a random order of groups.

    With one document a group this is a plain permutation; larger groups stay side by side.
    """
    rank = rng.permutation(int(groups.max()) + 1)
    order, shuffled = np.argsort(groups, kind="stable"), np.argsort(rank[groups], kind="stable")
    seat = np.empty(len(groups), dtype=np.int64)
    seat[shuffled] = order
    return seat


def _within_lengths(lengths: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Seats: a permutation within neighbours by length; equally long documents in random order."""
    order = np.lexsort((rng.random(len(lengths)), lengths))
    blocks = np.arange(len(lengths)) // _STRATUM
    shuffled = order[np.lexsort((rng.random(len(lengths)), blocks))]
    seat = np.empty(len(lengths), dtype=np.int64)
    seat[order] = shuffled
    return seat
