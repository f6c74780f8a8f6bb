"""Measures of numeric predictions, and two models compared by one of them on the same documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from biobench.stats.paired import TaskComparison, compare_seeds, joined
from biobench.stats.types import FloatArray, StatsInputError

Numbers = NDArray[np.float64]
DRAWS = 1000
"""Draws of the bootstrap."""
Measure = Callable[[Numbers, Numbers], float]


def pearson(gold: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation of two (documents,) arrays; 0 where one of them is constant, and below two documents."""
    if len(gold) < 2 or np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    a, b = gold - gold.mean(), predicted - predicted.mean()
    # Sums and not inner products, whose last bit depends on where in memory the arrays lie.
    below = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return min(max(float((a * b).sum()) / below, -1.0), 1.0) if below > 0 else 0.0


def spearman(gold: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation of the ranks; equal numbers share the mean of their ranks."""
    return pearson(scipy.stats.rankdata(gold), scipy.stats.rankdata(predicted))


def edrm(gold: Numbers, predicted: Numbers, low: float, high: float) -> float:
    """Mean of 1 - |gold - found| / the largest distance that `found` can have on the scale (DEFT 2020).

    A prediction outside the scale scores 0.
    """
    farthest = np.maximum(predicted - low, high - predicted)
    inside = (low <= predicted) & (predicted <= high)
    return float(np.where(inside, 1 - np.abs(gold - predicted) / farthest, 0.0).mean())


def scores_of(gold: Numbers, predicted: Numbers, measure: Measure) -> FloatArray:
    """The score of each seed, (seeds,). found: (seeds, documents)."""
    return np.array([measure(gold, row) for row in predicted])


def bootstrap_se(
    gold: Numbers, first: Numbers, second: Numbers, groups: Sequence[str], measure: Measure, draws: int, seed: int
) -> float | None:
    """Standard error of the difference of two models' mean scores over other documents; None for a single group.

    first, second: (seeds, documents). A draw takes groups with replacement, the same ones for both models and all
    seeds (paired bootstrap).
    """
    names, owner = np.unique(np.asarray(groups), return_inverse=True)
    if len(names) < 2:
        return None
    members = [np.flatnonzero(owner == i) for i in range(len(names))]
    rng = np.random.default_rng(seed)
    drawn = np.empty(draws)
    for i in range(draws):
        rows = np.concatenate([members[g] for g in rng.integers(0, len(names), len(names))])
        mean = [scores_of(gold[rows], predicted[:, rows], measure).mean() for predicted in (first, second)]
        drawn[i] = mean[0] - mean[1]
    return float(drawn.std(ddof=1))


def compare_numbers(
    gold: Numbers,
    first: Numbers,
    second: Numbers,
    groups: Sequence[str],
    measure: Measure,
    *,
    paired_seeds: bool = True,
    level: float = 0.95,
    resolution: float = 0.0,
    draws: int = DRAWS,
    seed: int = 0,
) -> TaskComparison:
    """Two models on one task by a measure of numbers; first, second: (seeds, documents).

    Documents pair: each draw of the bootstrap takes the same groups for both models. What seeds and documents both
    contain is counted twice, so that the total is too wide rather than too narrow.
    """
    if first.shape[1:] != gold.shape or second.shape[1:] != gold.shape or len(groups) != len(gold):
        raise StatsInputError("predictions and gold are of unequal length", hint="one number a document and seed")
    a, b = (scores_of(gold, predicted, measure) for predicted in (first, second))
    seeds = compare_seeds(a, b, paired=paired_seeds, level=level, resolution=resolution)
    se = bootstrap_se(gold, first, second, groups, measure, draws, seed)
    return joined(a, b, seeds, se, "bootstrap", len(set(groups)), 0.0, level)
