"""Measures of numeric predictions, and their noise over other documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from biobench.stats.documents import LeftOut
from biobench.stats.types import StatsInputError

Numbers = NDArray[np.float64]
Measure = Callable[[Numbers, Numbers], float]


def pearson(gold: Numbers, predicted: Numbers) -> float:
    """Pearson's correlation of two (documents,) arrays; 0 where one of them is constant, and below
    two documents.
    """
    if len(gold) < 2 or np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    a = gold - gold.mean()
    b = predicted - predicted.mean()
    # Sums and not inner products, whose last bit depends on where in memory the arrays lie.
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    if norm == 0:
        return 0.0
    return min(max(float((a * b).sum()) / norm, -1.0), 1.0)


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


def numbers_left_out(
    gold: Numbers, predicted: Numbers, groups: Sequence[str], measure: Measure
) -> LeftOut:
    """A model's scores by a measure of numbers without each group of documents.

    gold: (documents,). predicted: (seeds, documents). groups: the group of each document. Raises
    StatsInputError where these are of unequal length.
    """
    if predicted.shape[1:] != gold.shape or len(groups) != len(gold):
        raise StatsInputError(
            "predictions and gold are of unequal length", hint="one number a document and seed"
        )
    names, owners = np.unique(np.asarray(groups), return_inverse=True)
    without = np.empty((len(names), len(predicted)))
    for index in range(len(names)):
        remaining = owners != index
        without[index] = [measure(gold[remaining], run[remaining]) for run in predicted]
    full = np.array([measure(gold, run) for run in predicted])
    return LeftOut(full, without, tuple(names.tolist()))
