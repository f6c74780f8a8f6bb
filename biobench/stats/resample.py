"""Resampling of document groups from stored counts: bootstrap draws and the grouped jackknife.

Counts are sums over documents, so a resampled test set is a matrix product (draw weights x counts)
and F1 is computed anew in every draw without touching a prediction.

Label set in a draw: that of the full test split (it is a property of the task). A label of which a
draw holds neither gold nor prediction says nothing about the model there; it keeps its value on the
full test split. With 0 in its place, a perfect model would score below 1 in most draws of a task
with rare labels, and the draws of any model would lie below its score (in a simulation of 100
labels on 130 documents, the percentile interval then held the expected score in half of the
samples).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.stats.counts import FLOAT32_EXACT, Average, Counts, evaluated_labels, f1_from_sums
from biobench.stats.types import BoolArray, FloatArray

#: Bytes of intermediate results held at a time; what bounds memory whatever the number of draws.
CHUNK_BYTES = 32 * 2**20


def group_weights(
    n_groups: int, draws: int, rng: np.random.Generator, *, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[NDArray[np.float32]]:
    """How often each group is drawn: chunks of (some draws, groups), each row summing to
    ``n_groups``.

    Every row is one multinomial sample of ``n_groups`` groups with replacement. The rows do not
    depend on the size of the chunks.
    """
    rows = max(1, chunk_bytes // (16 * n_groups))
    for start in range(0, draws, rows):
        count = min(rows, draws - start)
        picks = rng.integers(0, n_groups, size=(count, n_groups), dtype=np.int64)
        picks += np.arange(count, dtype=np.int64)[:, None] * n_groups
        tally = np.bincount(picks.ravel(), minlength=count * n_groups)
        yield tally.reshape(count, n_groups).astype(np.float32)


def score_draws(
    counts: Counts,
    weights: NDArray[np.float32],
    average: Average,
    evaluated: ArrayLike | None = None,
    *,
    chunk_bytes: int = CHUNK_BYTES,
) -> FloatArray:
    """The score of every seed in every draw, (draws, seeds). weights: (draws, groups).

    All seeds see the same documents in a draw.
    """
    mask = evaluated_labels(counts, evaluated)
    tp, doubled, gold = _selected(counts, average, mask)
    seeds, groups, labels = tp.shape
    full_tp, full_doubled, full_gold = tp.sum(axis=1), doubled.sum(axis=1), gold.sum(axis=0)
    every = np.ones(labels, dtype=np.bool_)
    full = f1_from_sums(full_tp, full_doubled, full_gold, average, every)
    missing = 2.0 * full_tp / np.where(full_doubled > 0, full_doubled, 1)
    # float32 products of whole numbers are exact, and twice as fast, while no sum can pass 2^24
    dtype = (
        np.float32
        if int(doubled.max()) * float(weights.sum(axis=1).max()) < FLOAT32_EXACT
        else np.float64
    )
    columns = np.concatenate(
        [
            tp.transpose(1, 0, 2).reshape(groups, -1),
            doubled.transpose(1, 0, 2).reshape(groups, -1),
            gold,
        ],
        axis=1,
        dtype=dtype,
    )
    rows = max(1, chunk_bytes // (24 * columns.shape[1]))
    result = np.empty((weights.shape[0], seeds))
    for start in range(0, weights.shape[0], rows):
        sums: NDArray[Any] = np.matmul(
            weights[start : start + rows].astype(dtype, copy=False), columns
        )
        count, width = sums.shape[0], seeds * labels
        drawn_tp = sums[:, :width].reshape(count, seeds, labels)
        drawn_doubled: NDArray[Any] = sums[:, width : 2 * width].reshape(count, seeds, labels)
        drawn_gold = sums[:, None, 2 * width :]
        scores = f1_from_sums(drawn_tp, drawn_doubled, drawn_gold, average, every, missing)
        empty = ~(drawn_doubled > 0).any(axis=-1)
        result[start : start + rows] = np.where(empty, full, scores)
    return result


def leave_one_out(
    counts: Counts, average: Average, evaluated: ArrayLike | None = None
) -> FloatArray:
    """The score of every seed with one group left out, (groups, seeds); labels as in
    ``score_draws``.
    """
    tp, doubled, gold = _selected(counts, average, evaluated_labels(counts, evaluated))
    full_tp, full_doubled, full_gold = tp.sum(axis=1), doubled.sum(axis=1), gold.sum(axis=0)
    every = np.ones(tp.shape[2], dtype=np.bool_)
    full = f1_from_sums(full_tp, full_doubled, full_gold, average, every)
    missing = 2.0 * full_tp / np.where(full_doubled > 0, full_doubled, 1)
    rest = full_doubled - doubled.transpose(1, 0, 2)
    scores = f1_from_sums(
        full_tp - tp.transpose(1, 0, 2), rest, (full_gold - gold)[:, None], average, every, missing
    )
    result: FloatArray = np.where((rest > 0).any(axis=-1), scores, full)
    return result


def jackknife_se(left_out: FloatArray) -> float:
    """Standard error from the values with one group left out, (groups,): Efron and Stein 1981.

    Its variance is never too small on average, which the bootstrap's is when labels are rare.
    """
    n = left_out.size
    return float(np.sqrt((n - 1) / n * np.square(left_out - left_out.mean()).sum()))


def interaction_variance(left_out: FloatArray) -> float:
    """What the interaction of seeds and documents adds to the variance of a mean over both.

    left_out: (groups, seeds). The seed variance and the document variance of that mean each contain
    it, so their sum counts it twice (the two-way clustering of Cameron, Gelbach and Miller 2011). 0
    for one seed.
    """
    groups, seeds = left_out.shape
    if seeds < 2 or groups < 2:
        return 0.0
    influence = (groups - 1) * (left_out.mean(axis=0) - left_out)
    rest = influence - influence.mean(axis=1, keepdims=True)  # over groups it is centred already
    return float(np.square(rest).sum() / ((groups - 1) * (seeds - 1)) / (groups * seeds))


def rare_labels(
    counts: Counts, average: Average, evaluated: ArrayLike | None, fewer_than: int
) -> int:
    """Labels that weigh in the average although fewer than ``fewer_than`` groups hold gold of
    them."""
    if average == "micro":
        return 0
    support = (counts.gold > 0).sum(axis=0)
    mask = evaluated_labels(counts, evaluated)
    weighs = np.ones_like(mask) if average == "macro_all" else mask
    # a label that no document and no prediction holds adds the same 0 to every draw
    seen = counts.doubled.sum(axis=(0, 1)) > 0
    return int((weighs & seen & (support < fewer_than)).sum())


def _selected(
    counts: Counts, average: Average, evaluated: BoolArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """tp, doubled (seeds, groups, labels) and gold (groups, labels), only the columns the average
    needs.
    """
    tp, doubled, gold = counts.tp.astype(np.int64), counts.doubled, counts.gold
    if average == "micro":
        return (
            tp.sum(axis=2, keepdims=True),
            doubled.sum(axis=2, keepdims=True),
            gold.sum(axis=1, keepdims=True),
        )
    if average == "macro":
        return tp[..., evaluated], doubled[..., evaluated], gold[:, evaluated]
    return tp, doubled, gold
