"""Permutation tests of the gate; one-sided p = (1 + as large or larger) / (1 + draws).

`beats` swaps two baselines' outcomes within groups of documents. It alone cannot tell whether text
matters: a baseline that guesses labels at random has a better macro F1 than the majority class. So
`labels_beat_permuted` and `mentions_beat_permuted` compare a baseline with itself after its
predictions were permuted among the documents, which keeps how often it says what.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.baselines.words import Place, Words
from biobench.schema.document import Document, Prediction, Span
from biobench.score import GroupCounts
from biobench.stats.counts import f1_from_sums
from biobench.stats.types import BoolArray, FloatArray, IntArray

PERMUTATIONS = 999
"""Draws; the smallest p is 1 / 1000."""
ALPHA = 0.01
_CHUNK = 200
_STRATUM = 16
"""Documents of a similar length among which mentions are permuted: long documents have more gold
and more predictions, and permuting across lengths would take that for information.
"""


class Tested(NamedTuple):
    """observed: the baseline's score, 0-1; opponent: that of the other baseline, or the mean of the
    permuted draws; p: one-sided.
    """

    observed: float
    opponent: float
    p: float

    @property
    def significant(self) -> bool:
        """p below `ALPHA`."""
        return self.p < ALPHA


def beats(baseline: GroupCounts, opponent: GroupCounts, evaluated: BoolArray, seed: int) -> Tested:
    """Whether a baseline's macro F1 is higher than its opponent's, paired over the groups.

    evaluated: (labels,), the labels with gold in the full test split.
    """
    gold = (baseline.tp + baseline.fn).sum(axis=0)
    moved_hits = opponent.tp - baseline.tp
    moved_predicted = moved_hits + opponent.fp - baseline.fp

    def macro(
        counts: GroupCounts, hits: FloatArray | int, predicted: FloatArray | int
    ) -> FloatArray:
        """With these counts moved to a baseline; all (..., labels)."""
        tp = counts.tp.sum(axis=0)
        fp = counts.fp.sum(axis=0)
        return _macro(tp + hits, tp + fp + predicted, gold, evaluated)

    rng = np.random.default_rng(seed)
    differences = []
    for begin in range(0, PERMUTATIONS, _CHUNK):
        draws = min(_CHUNK, PERMUTATIONS - begin)
        swap = rng.integers(0, 2, size=(draws, len(baseline.groups))).astype(np.float64)
        hits = np.rint(swap @ moved_hits)
        predicted = np.rint(swap @ moved_predicted)
        swapped = macro(baseline, hits, predicted)
        swapped_opponent = macro(opponent, -hits, -predicted)
        differences.append(swapped - swapped_opponent)
    score = float(macro(baseline, 0, 0))
    opposed = float(macro(opponent, 0, 0))
    p = _p(score - opposed, np.concatenate(differences))
    return Tested(score, opposed, p)


def labels_beat_permuted(
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    evaluated: BoolArray,
    seed: int,
) -> Tested:
    """Whether a baseline's macro F1 is higher than with its predictions permuted among the
    documents, by whole groups, so that what a group's documents share stays together.
    """
    labels_of = {p.document: p.labels for p in predictions}
    true = []
    predicted = []
    for document in gold:
        answer = labels_of.get(document.id, ())
        true.append(_of_whole(document.labels))
        predicted.append(_of_whole(answer))
    gold_sums = _by_label(true, labels)
    _, groups = np.unique([document.group for document in gold], return_inverse=True)
    macro = _macro_by_seat(true, predicted, labels, gold_sums, evaluated)
    return _permuted(macro, partial(_by_group, groups), len(gold), seed)


def _of_whole(labels: Iterable[str]) -> list[Place]:
    """The labels of a whole document, each once."""
    return [(0, 0, label) for label in set(labels)]


def mentions_beat_permuted(
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    evaluated: BoolArray,
    seed: int,
) -> Tested:
    """Whether a baseline's macro F1 is higher than with its mentions, by word positions, permuted
    among documents of similar length.
    """
    spans_of = {p.document: p.spans for p in predictions}
    true = []
    predicted = []
    sizes = []
    mentions: list[set[Span]] = []
    for document in gold:
        words = Words.of(document)
        answer = spans_of.get(document.id, ())
        sizes.append(len(words))
        true.append(words.places(document.spans))
        predicted.append(words.places(answer))
        # a mention without words of its own is gold that nothing can hit
        mentions.append(set(document.spans))
    gold_sums = _by_label(mentions, labels)
    macro = _macro_by_seat(true, predicted, labels, gold_sums, evaluated)
    return _permuted(macro, partial(_within_lengths, np.array(sizes)), len(gold), seed)


def _by_label(rows: Sequence[Iterable[tuple[int, int, str]]], labels: Sequence[str]) -> IntArray:
    """How many of the rows' items have each label, (labels,)."""
    counted = Counter(label for _, _, label in chain.from_iterable(rows))
    return np.array([counted[label] for label in labels])


def _macro_by_seat(
    true: Sequence[Sequence[Place]],
    predicted: Sequence[Sequence[Place]],
    labels: Sequence[str],
    gold_sums: IntArray,
    evaluated: BoolArray,
) -> Callable[[IntArray], float]:
    """From seats, (documents,), to macro F1 with the predictions of document i laid on document
    seat[i].
    """
    places = dict.fromkeys(chain(*true, *predicted))
    number = {place: i for i, place in enumerate(places)}
    column = {label: i for i, label in enumerate(labels)}
    # an item and its document as one number; the last of the sorted ones is beyond all
    keys = {np.iinfo(np.int64).max}
    rows = []
    for position, (gold_items, answers) in enumerate(zip(true, predicted, strict=True)):
        first_key = position * len(number)
        for place in gold_items:
            keys.add(first_key + number[place])
        for place in answers:
            _, _, label_name = place
            rows.append((position, number[place], column[label_name]))
    gold_keys = np.array(sorted(keys), dtype=np.int64)
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    document, item, label = table.T
    predicted_sums = np.bincount(label, minlength=len(labels))

    def macro(seat: IntArray) -> float:
        laid = seat[document] * len(number) + item
        nearest = gold_keys[np.searchsorted(gold_keys, laid)]
        is_gold = nearest == laid
        hits = np.bincount(label[is_gold], minlength=len(labels))
        return float(_macro(hits, predicted_sums, gold_sums, evaluated))

    return macro


def types_beat_permuted(
    gold: Sequence[Document], predictions: Sequence[Prediction], seed: int
) -> Tested | None:
    """Whether mentions found with the right boundaries have the right type more often than with
    types permuted among them. Shares, not F1. None where no boundary was found or all found ones
    are of one type.
    """
    types_at: dict[tuple[str, int, int], set[str]] = defaultdict(set)
    for document in gold:
        for start, end, label in document.spans:
            types_at[document.id, start, end].add(label)
    labels: list[str] = []
    found: list[set[str]] = []
    for prediction in predictions:
        for start, end, label in prediction.spans:
            true_types = types_at.get((prediction.document, start, end))
            if true_types is not None:
                labels.append(label)
                found.append(true_types)
    names, types = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return None
    fits = np.array([[name in true_types for name in names] for true_types in found])
    rows = np.arange(len(types))

    def share_right(order: IntArray) -> float:
        return float(fits[rows, types[order]].mean())

    return _permuted(share_right, None, len(types), seed)


def beats_permuted_score(
    predictions: Sequence[Prediction], score: Callable[[Sequence[Prediction]], float], seed: int
) -> Tested:
    """Whether a baseline's score is higher than with its predictions permuted among the documents,
    one by one.
    """

    def moved(order: IntArray) -> float:
        answers = []
        for prediction, number in zip(predictions, order, strict=True):
            answers.append(replace(predictions[number], document=prediction.document))
        return score(answers)

    return _permuted(moved, None, len(predictions), seed)


def _permuted(
    score: Callable[[IntArray], float],
    seats: Callable[[np.random.Generator], IntArray] | None,
    size: int,
    seed: int,
) -> Tested:
    """The score of things in their order, and in the orders that `seats` draws (None: any)."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(PERMUTATIONS):
        order = rng.permutation(size) if seats is None else seats(rng)
        drawn.append(score(order))
    observed = score(np.arange(size))
    permuted = np.array(drawn)
    return Tested(observed, float(permuted.mean()), _p(observed, permuted))


def _p(observed: float, drawn: FloatArray) -> float:
    # Sums in another order differ in the last digits; a draw that equals the observed one counts as
    # equal.
    as_large = int((drawn >= observed - 1e-12).sum())
    return (1 + as_large) / (1 + drawn.size)


def _macro(
    hits: ArrayLike, predicted: ArrayLike, gold: IntArray, evaluated: BoolArray
) -> FloatArray:
    """Macro F1 from true positives, predicted and gold counts, (..., labels)."""
    tp = np.asarray(hits)
    sums = np.asarray(predicted) + gold
    return np.asarray(f1_from_sums(tp, sums, gold, "macro", evaluated))


def _by_group(groups: NDArray[np.int64], rng: np.random.Generator) -> IntArray:
    """Seats: the documents in order of group, laid on the documents in a random order of groups.

    With one document a group this is a plain permutation; larger groups stay side by side.
    """
    rank = rng.permutation(int(groups.max()) + 1)
    by_rank = np.argsort(rank[groups], kind="stable")
    by_group = np.argsort(groups, kind="stable")
    seat = np.empty(len(groups), dtype=np.int64)
    seat[by_rank] = by_group
    return seat


def _within_lengths(lengths: IntArray, rng: np.random.Generator) -> IntArray:
    """Seats: a permutation within neighbours by length; equally long documents in random order."""
    size = len(lengths)
    order = np.lexsort((rng.random(size), lengths))
    blocks = np.arange(size) // _STRATUM
    within_blocks = np.lexsort((rng.random(size), blocks))
    seat = np.empty(size, dtype=np.int64)
    seat[order] = order[within_blocks]
    return seat
