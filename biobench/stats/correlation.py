"""Measures of numeric predictions, and their noise over other documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from biobench.stats.documents import DRAWS, Redrawn
from biobench.stats.types import StatsInputError

Numbers = NDArray[np.float64]
Measure = Callable[[Numbers, Numbers], float]


def pearson(gold: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation of two (documents,) arrays; 0 where one of them is constant, and below
    two documents.
    """
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
    """Mean of 1 - |gold - found| / the largest distance that `found` can have on the scale (DEFT
    2020).

    A prediction outside the scale scores 0.
    """
    farthest = np.maximum(predicted - low, high - predicted)
    inside = (low <= predicted) & (predicted <= high)
    return float(np.where(inside, 1 - np.abs(gold - predicted) / farthest, 0.0).mean())


def redraw_numbers(
    gold: Numbers,
    models: Sequence[Numbers],
    groups: Sequence[str],
    measure: Measure,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[Redrawn, ...]:
    """Each model's scores by a measure of numbers with other documents; models: (seeds, documents)
    each.

    A draw takes groups of documents with replacement, the same ones for all models and seeds. What
    seeds and documents both contain is counted twice, so that the noise of both is too wide rather
    than too narrow.
    """
    if any(predicted.shape[1:] != gold.shape for predicted in models) or len(groups) != len(gold):
        raise StatsInputError(
            "predictions and gold are of unequal length", hint="one number a document and seed"
        )
    names, owner = np.unique(np.asarray(groups), return_inverse=True)
    members = [np.flatnonzero(owner == i) for i in range(len(names))]
    rng = np.random.default_rng(seed)
    drawn = [np.empty((draws, len(predicted))) for predicted in models]
    for i in range(draws):
        rows = np.concatenate([members[g] for g in rng.integers(0, len(names), len(names))])
        for out, predicted in zip(drawn, models, strict=True):
            out[i] = [measure(gold[rows], run[rows]) for run in predicted]
    places = np.arange(len(names))
    return tuple(
        Redrawn(np.array([measure(gold, run) for run in predicted]), out, None, places, len(names))
        for out, predicted in zip(drawn, models, strict=True)
    )
