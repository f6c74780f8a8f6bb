"""The small types that every statistic here is made of, and the checks on what comes in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.errors import BioBenchError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

LEVEL = 0.95
"""Of an interval of which no correction decides."""
#: (variance, degrees of freedom) of what adds up.
Part = tuple[float, float]

#: A spread below this share of the numbers' own size is rounding of the arithmetic, not variation.
ROUNDING = 1e-12


class StatsInputError(BioBenchError):
    """Numbers handed to a statistic are not finite, or do not fit together."""


class Estimand(StrEnum):
    """What an interval or a p value is about: which of the three sources of noise may vary."""

    NEW_SEEDS = "this task and this test set, other seeds"
    NEW_DOCUMENTS = "these runs, another test set of this task"
    THIS_TASK = "this task: other seeds and another test set"
    THESE_TEST_SETS = "these tasks and test sets, other seeds"
    THESE_RUNS = "these tasks and runs, other test sets"
    THESE_TASKS = "these tasks: other seeds and other test sets"
    TASKS_LIKE_THESE = "tasks like these"


@dataclass(frozen=True)
class Interval:
    """Two ends around an estimate, in the unit of the scores handed in.

    level: 0.95 for a 95% interval. method: how it was made, in words. estimand: what it is about.
    """

    low: float
    high: float
    level: float
    method: str
    estimand: Estimand

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.high - self.low) / 2


def as_values(values: ArrayLike, name: str, *, minimum: int = 1) -> FloatArray:
    """``values`` as a one-dimensional float array. Raises StatsInputError where it is not flat,
    not finite or shorter than ``minimum``. name: what they are, in words.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < minimum:
        raise StatsInputError(
            f"{name}: an array of shape {array.shape}",
            hint=f"pass a flat list of at least {minimum}",
        )
    if not np.isfinite(array).all():
        position = int(np.flatnonzero(~np.isfinite(array))[0])
        raise StatsInputError(
            f"{name}: value {position} is {array[position]}",
            hint="leave missing scores out, for every model alike; a missing score is never a "
            "number here",
        )
    return array


def is_zero(spread: float, scale: float) -> bool:
    """Whether ``spread`` is nothing beside numbers of the size ``scale``."""
    return spread <= ROUNDING * max(1.0, abs(scale))
