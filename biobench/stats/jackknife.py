"""One group of documents left out at a time: the scores that remain, and what they say of noise.

Counts are sums over documents, so a test set without a group is a subtraction, and F1 is computed
anew without touching a prediction.

Label set: that of the full test split (it is a property of the task). A label of which the rest
holds neither gold nor prediction says nothing about the model there; it keeps its value on the full
test split. With 0 in its place, a perfect model would score below 1 without the only document of a
rare label.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from biobench.stats.counts import Average, Counts, f1_from_sums
from biobench.stats.types import FloatArray


def leave_one_out(counts: Counts, average: Average) -> FloatArray:
    """The score of every seed with one group left out, (groups, seeds)."""
    tp, doubled, gold = _selected(counts, average)
    full_tp = tp.sum(axis=1)
    full_doubled = doubled.sum(axis=1)
    full_gold = gold.sum(axis=0)
    every = np.ones(tp.shape[2], dtype=np.bool_)
    full = f1_from_sums(full_tp, full_doubled, full_gold, average, every)
    missing = 2.0 * full_tp / np.where(full_doubled > 0, full_doubled, 1)
    remaining = full_doubled - doubled.transpose(1, 0, 2)
    scores = f1_from_sums(
        full_tp - tp.transpose(1, 0, 2),
        remaining,
        (full_gold - gold)[:, None],
        average,
        every,
        missing,
    )
    result: FloatArray = np.where((remaining > 0).any(axis=-1), scores, full)
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
    # over groups it is centred already
    residuals = influence - influence.mean(axis=1, keepdims=True)
    return float(np.square(residuals).sum() / ((groups - 1) * (seeds - 1)) / (groups * seeds))


def _selected(
    counts: Counts, average: Average
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """tp, doubled (seeds, groups, labels) and gold (groups, labels), only the columns the average
    needs.
    """
    tp = counts.tp.astype(np.int64)
    doubled = counts.doubled
    gold = counts.gold
    if average == "micro":
        tp = tp.sum(axis=2, keepdims=True)
        doubled = doubled.sum(axis=2, keepdims=True)
        return tp, doubled, gold.sum(axis=1, keepdims=True)
    if average == "macro":
        labels = counts.evaluated
        return tp[..., labels], doubled[..., labels], gold[:, labels]
    return tp, doubled, gold
