"""Other fine-tuning runs: the spread of scores over seeds and splits, and runs that failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.types import (
    LEVEL,
    Estimand,
    Interval,
    Part,
    as_values,
    is_zero,
)

SINGLE = "one value: its spread is unknown, so there is neither interval nor test"
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


def t_from_se(
    estimate: float,
    se: float,
    df: float,
    *,
    n: int,
    estimand: Estimand,
    sd: float | None = None,
) -> MeanTest:
    """Interval and p from an estimate, its standard error and the error's degrees of freedom.

    A standard error of zero gives an interval of no width and p 1 (estimate zero) or 0.
    """
    if is_zero(se, 0.0):
        interval = Interval(estimate, estimate, LEVEL, "no variation", estimand)
        p = 0.0
        note = CONSTANT
        if is_zero(abs(estimate), 0.0):
            p = 1.0
            note = IDENTICAL
        return MeanTest(n, estimate, sd, 0.0, None, interval, p, estimand, note)
    # what stats.t.ppf and stats.t.sf come to, without the checks of arguments that take a hundred
    # times as long
    half = float(special.stdtrit(df, (1 + LEVEL) / 2)) * se
    p = float(2 * special.stdtr(df, -abs(estimate) / se))
    interval = Interval(estimate - half, estimate + half, LEVEL, "t", estimand)
    return MeanTest(n, estimate, sd, se, df, interval, min(p, 1.0), estimand)


def mean_test(values: ArrayLike, *, estimand: Estimand) -> MeanTest:
    """Student's one-sample t on ``values``.

    The answers where the t has none: one value gives neither interval nor p; values all zero give p
    1 and the interval [0, 0]; equal values other than zero give the limit of the t, p 0 and an
    interval of no width.
    """
    x = as_values(values, "values of a mean")
    mean = float(x.mean())
    n = x.size
    if n == 1:
        return MeanTest(1, mean, None, None, None, None, None, estimand, SINGLE)
    sd = float(x.std(ddof=1))
    if is_zero(sd, float(abs(x).max())):
        sd = 0.0  # float subtraction leaves crumbs: 0.8 - 0.7 is not 0.1
    return t_from_se(mean, sd / math.sqrt(n), n - 1, n=n, sd=sd, estimand=estimand)


def resampled_se(sd: float, n: int, ratio: float) -> float:
    """Standard error of the mean over ``n`` splits of one corpus: sd times the root of 1/n + ratio.

    The splits share training documents, so their scores are correlated and sd / sqrt(n) is too
    small. ratio: test documents to training documents of a split (Nadeau and Bengio, Machine
    Learning 52, 2003); 0 for independent runs.
    """
    return sd * math.sqrt(1 / n + ratio)


def pooled_df(parts: Sequence[Part]) -> float:
    """Welch-Satterthwaite degrees of freedom of a sum of variances, ``parts`` = (variance, its
    df)."""
    total = sum(variance for variance, _ in parts)
    error = sum(variance**2 / df for variance, df in parts if variance > 0)
    return total**2 / error if error > 0 else math.inf


@dataclass(frozen=True)
class SeedSummary:
    """Mean and spread over seeds; sd is None for one seed, interval for one or equal scores."""

    mean: float
    sd: float | None
    interval: Interval | None


def seed_interval(scores: ArrayLike, *, resolution: float = 0.0, ratio: float = 0.0) -> SeedSummary:
    """Mean, sd (n - 1) and 95% t interval over the seeds' scores, in the scores' unit.

    Estimand: the mean score of this recipe over all seeds, on this test set. Nominal (0.95 at 3, 5,
    9 seeds) for normal seed noise; a normal or percentile interval covers 0.74 to 0.91 there.
    resolution: the step of the scores (one document of the test set); the interval is never
    narrower than its rounding error makes it. A single score gives no interval, and neither do
    equal ones: a t would have no width, which says nothing of the spread over further seeds. ratio:
    where the scores are of several splits of one corpus, test documents to training documents (see
    ``resampled_se``); the interval is then of the mean score over corpora like this one.
    """
    x = as_values(scores, "scores over seeds")
    n = x.size
    mean = float(x.mean())
    if n == 1:
        return SeedSummary(mean, None, None)
    sd = float(x.std(ddof=1))
    if is_zero(sd, float(abs(x).max())):
        return SeedSummary(mean, 0.0, None)
    se = resampled_se(max(sd, resolution / math.sqrt(12)), n, ratio)
    estimand = Estimand.THIS_TASK if ratio else Estimand.NEW_SEEDS
    interval = t_from_se(mean, se, n - 1, n=n, estimand=estimand).interval
    return SeedSummary(mean, sd, interval)


def seed_part(scores: ArrayLike, *, resolution: float = 0.0) -> Part:
    """Variance of the mean over independent seeds, and its degrees of freedom.

    scores: two or more. resolution: the step of the scores; the variance of one score is never
    taken below that of rounding to such a step, resolution² / 12.
    """
    x = as_values(scores, "scores over seeds", minimum=2)
    return max(float(x.var(ddof=1)), resolution**2 / 12) / x.size, x.size - 1.0


def splits_part(differences: ArrayLike, ratio: float, *, resolution: float = 0.0) -> Part:
    """Variance of the mean difference over several splits of one corpus, and its degrees of
    freedom.

    differences: of two models on the same splits, two or more. ratio: test documents to training
    documents of a split (see ``resampled_se``). resolution: the step of the scores; a difference
    carries a rounding variance of resolution² / 6.
    """
    x = as_values(differences, "differences over splits", minimum=2)
    sd = max(float(x.std(ddof=1)), resolution / math.sqrt(6))
    return resampled_se(sd, x.size, ratio) ** 2, x.size - 1.0


#: How far below the median of its siblings a failed run lies, in units of their spread (1.4826 x
#: MAD) ...
FAR = 6.0
#: ... and at least so far, as a fraction: seeds of a working recipe differ by less (fifteen
#: points).
LEAST = 0.15


def failed_runs(scores: ArrayLike) -> tuple[bool, ...]:
    """Which runs of one model on one task failed, in the order of the seeds.

    scores: fractions. A run failed that lies below the median of its siblings by more than 15
    points and 6 robust standard deviations of theirs. Half of the runs or more are never far below
    the rest, and of two runs neither is. Whether a model as a whole is above guessing is another
    question, which no single run decides.
    """
    x = as_values(scores, "scores over seeds").tolist()
    if len(x) < 3 or max(x) - min(x) <= LEAST:
        return (False,) * len(x)
    failed = []
    for index, score in enumerate(x):
        siblings = x[:index] + x[index + 1 :]
        middle = median(siblings)
        spread = 1.4826 * median(abs(sibling - middle) for sibling in siblings)
        failed.append(middle - score > max(LEAST, FAR * spread))
    return tuple(failed)


def without_failed(scores: Sequence[float], failed: Sequence[bool]) -> tuple[float, ...]:
    """The scores of the runs that did not fail."""
    return tuple(score for score, lost in zip(scores, failed, strict=True) if not lost)
