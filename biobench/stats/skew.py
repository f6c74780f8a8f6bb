"""The guard of a t test against skewed values: Hall's transformation with a shrunken skewness."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from biobench.stats.types import FloatArray, is_zero


def shrunken_skewness(values: FloatArray) -> float:
    """Third central moment over the cubed sd (unbiased moments), times n / (n + 6); 0 below three values.

    6/n is the variance of a normal sample's skewness, so that of few values, which is mostly chance, counts little.
    """
    n = values.size
    sd = float(values.std(ddof=1)) if n > 2 else 0.0
    if n < 3 or is_zero(sd, float(abs(values).max())):
        return 0.0
    third = float(((values - values.mean()) ** 3).sum()) * n / ((n - 1) * (n - 2))
    return third / sd**3 * n / (n + 6)


def skewed_t(estimate: float, se: float, n: int, skewness: float) -> float:
    """The t of ``estimate`` / ``se`` under Hall's cubic transformation (1992, J. R. Statist. Soc. B 54, 221-228)."""
    s = estimate / (se * math.sqrt(n))
    return math.sqrt(n) * (s + skewness * s**2 / 3 + skewness**2 * s**3 / 27 + skewness / (6 * n))


def skewed_ends(estimate: float, se: float, n: int, skewness: float, level: float) -> tuple[float, float]:
    """The interval of all means that ``skewed_t`` does not reject: the transformation inverted."""
    quantile = float(special.stdtrit(n - 1, (1 + level) / 2)) / math.sqrt(n)
    low, high = (_inverse(end, n, skewness) * se * math.sqrt(n) for end in (-quantile, quantile))
    return estimate - high, estimate - low


def _inverse(value: float, n: int, skewness: float) -> float:
    shifted = value - skewness / (6 * n)
    if abs(skewness) < 1e-8:
        return shifted
    return 3 / skewness * (float(np.cbrt(1 + skewness * shifted)) - 1)
