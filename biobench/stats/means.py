"""The one t test behind every interval of a mean, with a defined answer where a t has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.types import (
    ROUNDING,
    Estimand,
    FloatArray,
    IntArray,
    Interval,
    Samples,
    StatsInputError,
    as_values,
    check_level,
    is_zero,
)

SINGLE = "one value: its spread is unknown, so there is neither interval nor test"
EQUAL = "all scores are equal: the spread over further seeds is unknown, so there is no interval"
CONSTANT = "all values are equal: the interval is that value"
IDENTICAL = "no difference anywhere: p is 1 by definition"


@dataclass(frozen=True)
class MeanTest:
    """A mean with its t interval and the two-sided p of "the true mean is zero".

    estimate, sd, se: in the unit of the values; sd and se are None for one value.
    df: degrees of freedom, None where no t was used.
    interval, p: None where they cannot be had; ``note`` then says why.
    """

    n: int
    estimate: float
    sd: float | None
    se: float | None
    df: float | None
    interval: Interval | None
    p: float | None
    estimand: Estimand
    note: str | None = None


def mean_test(
    values: ArrayLike, *, estimand: Estimand, level: float = 0.95, resolution: float = 0.0, ratio: float = 0.0
) -> MeanTest:
    """Student's one-sample t on ``values``.

    ratio: test documents to training documents where the values come from several splits of one corpus (see
    ``resampled_se``); 0 where they are independent.

    resolution: the step to which the scores behind the values were rounded (0.1 for a printed table in
    percent). The difference of two scores rounded to a step r carries a rounding sd of r/sqrt(6) (two
    uniform errors of variance r²/12 each); the sd is never taken below it, so two tasks that agree by
    rounding alone are no proof.

    The answers where the t has none: values all zero give p 1 and the interval [0, 0] (whatever their
    number); one value gives neither interval nor p; equal values other than zero give the limit of the t,
    p 0 and an interval of no width.
    """
    x = as_values(values, "values of a mean")
    check_level(level)
    mean = float(x.mean())
    n = x.size
    floor = resolution / math.sqrt(6)
    # float subtraction leaves crumbs: 0.8 - 0.7 is not 0.1
    if all(is_zero(abs(float(v)), 0.0) for v in x) and (floor == 0.0 or n == 1):
        interval = Interval(0.0, 0.0, level, "no difference", estimand)
        return MeanTest(n, 0.0, 0.0, 0.0, None, interval, 1.0, estimand, IDENTICAL)
    if n == 1:
        return MeanTest(1, mean, None, None, None, None, None, estimand, SINGLE)
    sd = float(spread_of(x.std(ddof=1), abs(x).max(), resolution))
    se, method = float(resampled_se(sd, n, ratio)), RESAMPLED if ratio else "t"
    return t_from_se(mean, se, n - 1, n=n, sd=sd, estimand=estimand, level=level, method=method)


def spread_of(sd: ArrayLike, largest: ArrayLike, resolution: ArrayLike) -> FloatArray:
    """The sd of differences of scores: 0 where rounding of the arithmetic explains it, never below that of the scores.

    largest: the largest size of a difference. resolution: as of ``mean_test``. Numbers or arrays of one shape.
    """
    floor = np.divide(resolution, math.sqrt(6))
    return np.maximum(np.where(np.less_equal(sd, ROUNDING * np.maximum(1.0, largest)), 0.0, sd), floor)


RESAMPLED = "t corrected for training documents that splits share"


def resampled_se(sd: ArrayLike, n: ArrayLike, ratio: ArrayLike) -> FloatArray:
    """Standard error of the mean over ``n`` splits of one corpus: sd times the root of 1/n + ratio.

    The splits share training documents, so their scores are correlated and sd / sqrt(n) is too small. ratio: test
    documents to training documents of a split (Nadeau and Bengio, Machine Learning 52, 2003); 0 for independent runs.
    """
    return np.multiply(sd, np.sqrt(np.divide(1, n) + ratio))


def t_from_se(
    estimate: float,
    se: float,
    df: float,
    *,
    n: int,
    estimand: Estimand,
    level: float = 0.95,
    sd: float | None = None,
    method: str = "t",
) -> MeanTest:
    """Interval and p from an estimate, its standard error and the error's degrees of freedom.

    A standard error of zero gives an interval of no width and p 1 (estimate zero) or 0.
    """
    check_level(level)
    if is_zero(se, 0.0):
        same = is_zero(abs(estimate), 0.0)
        interval = Interval(estimate, estimate, level, "no variation", estimand)
        note = IDENTICAL if same else CONSTANT
        return MeanTest(n, estimate, sd, 0.0, None, interval, 1.0 if same else 0.0, estimand, note)
    # what stats.t.ppf and stats.t.sf come to, without the checks of arguments that take a hundred times as long
    half = float(special.stdtrit(df, (1 + level) / 2)) * se
    p = float(2 * special.stdtr(df, -abs(estimate) / se))
    interval = Interval(estimate - half, estimate + half, level, method, estimand)
    return MeanTest(n, estimate, sd, se, df, interval, min(p, 1.0), estimand)


def pooled_df(parts: Sequence[tuple[float, float]]) -> float:
    """Welch-Satterthwaite degrees of freedom of a sum of variances, ``parts`` = (variance, its df)."""
    total = sum(variance for variance, _ in parts)
    below = sum(variance**2 / df for variance, df in parts if variance > 0)
    return total**2 / below if below > 0 else math.inf


def in_a_row(scores: Samples) -> tuple[FloatArray, IntArray]:
    """All tasks' scores one after the other, and how many each has. Raises StatsInputError where one has none."""
    sizes = np.array([len(task) for task in scores])
    if not sizes.all():
        raise StatsInputError("a task without scores", hint="leave it out, for every model alike")
    return as_values(np.concatenate(scores), "scores over seeds"), sizes


def moments(values: FloatArray, sizes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, sd (NaN for one value) and largest size of samples that stand one after the other, (samples,) each."""
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(values, starts) / sizes
    squares = np.add.reduceat((values - np.repeat(means, sizes)) ** 2, starts)
    sds = np.sqrt(squares / np.where(sizes > 1, sizes - 1.0, math.nan))
    return means, sds, np.maximum.reduceat(np.abs(values), starts)
