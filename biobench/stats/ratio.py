"""The ratio of two paired means, with an interval that says so when the ratio is not known at
all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.types import (
    LEVEL,
    Estimand,
    Interval,
    StatsInputError,
    as_values,
    is_zero,
)

UNKNOWN = "the denominator may be zero: the ratio has no bounded interval"
ONE = "one pair of values: the spread of the ratio is unknown"
NOTHING = "the denominator is zero: there is no ratio"


@dataclass(frozen=True)
class Ratio:
    """value: mean of the numerators over that of the denominators. interval None: ``note`` says
    why.
    """

    n: int
    value: float | None
    interval: Interval | None
    note: str | None = None


def paired_ratio(numerators: ArrayLike, denominators: ArrayLike, *, estimand: Estimand) -> Ratio:
    """Fieller's interval (1954) of the ratio of two means over pairs of values.

    The set of ratios that a paired t does not refuse at 5%. It is bounded only where the
    denominator itself differs from zero at that level; otherwise there is no interval.
    """
    x = as_values(numerators, "numerators")
    y = as_values(denominators, "denominators")
    if x.size != y.size:
        raise StatsInputError(
            f"{x.size} and {y.size} values do not pair", hint="keep the shared seeds"
        )
    top = float(x.mean())
    bottom = float(y.mean())
    if is_zero(abs(bottom), float(abs(y).max())):
        return Ratio(x.size, None, None, NOTHING)
    value = top / bottom
    if x.size == 1:
        return Ratio(1, value, None, ONE)
    n = x.size
    dx = x - top
    dy = y - bottom
    scale = float(special.stdtrit(n - 1, (1 + LEVEL) / 2)) ** 2 / (n * (n - 1))
    xx, xy, yy = (scale * float(v) for v in (dx @ dx, dx @ dy, dy @ dy))
    leading = bottom**2 - yy
    if leading <= 0:
        return Ratio(n, value, None, UNKNOWN)
    middle = top * bottom - xy
    half = math.sqrt(max(0.0, middle**2 - leading * (top**2 - xx)))
    interval = Interval(
        (middle - half) / leading, (middle + half) / leading, LEVEL, "Fieller, paired t", estimand
    )
    return Ratio(n, value, interval)
