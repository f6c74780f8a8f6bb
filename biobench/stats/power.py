"""What a design can see: the smallest detectable difference, and the seeds or tasks a wanted one needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from scipy import special

from biobench.stats.types import StatsInputError

#: More seeds than this are reported as unaffordable.
MOST = 10_000
#: More seeds a task than anybody runs: such a number is not said.
MOST_SAID = 100

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


@dataclass(frozen=True)
class SuiteVariance:
    """Where the variance of one corpus cluster's mean difference comes from.

    between: variance between clusters that more seeds cannot lower (tasks and test sets), score unit².
    seed: variance that one seed adds to one cluster's difference; with S seeds it adds seed / S.
    clusters: independent corpora in the suite. between_low, between_high: what ``between`` may be at 90%, the spread
    of few corpora being badly known; None where it is taken as known.
    """

    between: float
    seed: float
    clusters: int
    between_low: float | None = None
    between_high: float | None = None

    def sd(self, seeds: float) -> float:
        """Standard deviation of a cluster's mean difference with so many seeds (``math.inf`` allowed)."""
        return math.sqrt(self.between + (0.0 if math.isinf(seeds) else self.seed / seeds))

    def detectable(self, seeds: float, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
        """Smallest true suite difference found with this power; None for one cluster."""
        return detectable_difference(self.sd(seeds), self.clusters, alpha=alpha, power=power)


@dataclass(frozen=True)
class DetectableRange:
    """The difference found with 80% power, for the smallest and largest spread that the corpora allow at 90%."""

    low: float
    high: float


@dataclass(frozen=True)
class SeedPlan:
    """seeds: per task, None where no number suffices or none can be told. limit: what unlimited seeds could detect.

    certain: the answer is the same for all spreads between corpora that the data allow (at 90%).
    """

    wanted: float
    seeds: int | None
    limit: float | None
    note: str | None
    certain: bool = True


def t_power(difference: float, sd: float, n: int, *, alpha: float = 0.05) -> float:
    """Power of the two-sided one-sample (or paired) t on ``n`` values, its true mean being ``difference``."""
    _check(sd, alpha)
    if n < 2:
        raise StatsInputError(f"a t test on {n} value", hint="at least two clusters, seeds or tasks")
    if sd == 0:
        return 1.0 if difference else 0.0
    return _power(abs(difference) / sd * math.sqrt(n), n - 1, alpha)


def detectable_difference(sd: float, n: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """The true mean difference that the t on ``n`` values of spread ``sd`` finds with this power.

    In the unit of ``sd``. None for n < 2 (no test); 0 where nothing varies.
    """
    _check(sd, alpha)
    if not alpha < power < 1:
        raise StatsInputError(f"power {power} is not between alpha {alpha} and 1", hint="0.8 is usual")
    if n < 2:
        return None
    if sd == 0:
        return 0.0
    return _detectable_shift(n - 1, alpha, power) * sd / math.sqrt(n)


def detectable_from_se(se: float, df: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The true difference that a t test with this standard error and degrees of freedom (> 0) finds."""
    _check(se, alpha)
    if not alpha < power < 1 or not df > 0:
        raise StatsInputError(f"power {power}, {df} degrees of freedom", hint="power from alpha to 1, df above 0")
    return _detectable_shift(min(df, MOST), alpha, power) * se if se else 0.0


def values_needed(wanted: float, sd: float, *, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Values (seeds of one task, or clusters of a suite) that the t needs to detect ``wanted``.

    None where more than 10,000 would be needed.
    """
    _check_wanted(wanted)
    _check(sd, alpha)
    return _smallest(lambda n: sd == 0 or t_power(wanted, sd, n, alpha=alpha) >= power, start=2)


def detectable_range(sd: float, n: int, *, alpha: float = 0.05, power: float = 0.8) -> DetectableRange | None:
    """``detectable_difference`` for both ends of the 90% interval of the true sd; None for n < 2."""
    if n < 2:
        return None
    low, high = (detectable_difference(end, n, alpha=alpha, power=power) for end in sd_range(sd, n))
    return None if low is None or high is None else DetectableRange(low, high)


def sd_range(sd: float, n: int, level: float = 0.9) -> tuple[float, float]:
    """The chi-squared interval of a true standard deviation from that of ``n`` normal values."""
    tail = (1 - level) / 2
    low, high = ((n - 1) / float(special.chdtri(n - 1, p)) for p in (tail, 1 - tail))
    return sd * math.sqrt(low), sd * math.sqrt(high)


#: Powers at which "N seeds a task find it in 4 of 5 cases" is near enough to be said.
NEAR = (0.7, 0.9)


def seeds_needed(wanted: float, variance: SuiteVariance, *, alpha: float = 0.05, power: float = 0.8) -> SeedPlan:
    """Seeds per task with which the suite's t detects a true difference of ``wanted``.

    Where the variance comes with what it may be, a number is given only if it has 70 to 90% power at both ends; else
    the plan says that so few corpora cannot tell. "No number suffices" is said where that holds at the lower end.
    """
    _check_wanted(wanted)
    limit = variance.detectable(math.inf, alpha=alpha, power=power)
    if limit is None:
        return SeedPlan(wanted, None, None, "one corpus cluster: no number of seeds makes a suite test")
    between = variance.between if variance.between_low is None else variance.between_low
    least = replace(variance, between=between).detectable(math.inf, alpha=alpha, power=power)
    if least is not None and least > wanted:
        note = "more seeds cannot get there: the spread between tasks limits this suite; more corpora would"
        return SeedPlan(wanted, None, limit, note)
    seeds = None if limit > wanted else _smallest(lambda n: _enough(n, wanted, variance, alpha, power), start=1)
    if variance.between_high is not None and not _near(seeds, wanted, variance, alpha):
        note = f"the number of seeds cannot be told from {variance.clusters} corpora"
        return SeedPlan(wanted, None, limit, note, certain=False)
    return SeedPlan(wanted, seeds, limit, None if seeds else f"more than {MOST} seeds")


def _enough(seeds: int, wanted: float, variance: SuiteVariance, alpha: float, power: float) -> bool:
    detectable = variance.detectable(seeds, alpha=alpha, power=power)
    return detectable is not None and detectable <= wanted


def _near(seeds: int | None, wanted: float, variance: SuiteVariance, alpha: float) -> bool:
    """Whether the power of so many seeds is near 80% whatever the spread between corpora is."""
    if seeds is None or seeds > MOST_SAID:
        return False
    ends = (replace(variance, between=v or 0.0).sd(seeds) for v in (variance.between_low, variance.between_high))
    return all(NEAR[0] <= t_power(wanted, sd, variance.clusters, alpha=alpha) <= NEAR[1] for sd in ends)


def _power(shift: float, df: float, alpha: float) -> float:
    """P(|T| > critical) for T = (Z + shift) / S, with df S² chi-squared on df degrees of freedom.

    By quadrature over S: the series behind scipy's noncentral t gives NaN for few degrees of freedom
    and large shifts.
    """
    critical = float(special.stdtrit(df, 1 - alpha / 2))
    spread = 12 / math.sqrt(2 * df)
    low, high = max(0.0, 1 - spread), 1 + spread
    s = low + (high - low) * (_NODES + 1) / 2
    log_density = (
        math.log(2) + df / 2 * math.log(df / 2) - special.gammaln(df / 2) + special.xlogy(df - 1, s) - df * s**2 / 2
    )
    tails = special.ndtr(shift - critical * s) + special.ndtr(-shift - critical * s)
    return min(1.0, float((high - low) / 2 * (_WEIGHTS * np.exp(log_density) * tails).sum()))


@lru_cache(maxsize=1024)
def _detectable_shift(df: float, alpha: float, power: float) -> float:
    """Detectable difference in units of the standard error."""

    def shortfall(shift: float) -> float:
        return _power(shift, df, alpha) - power

    high = 2.0 * float(special.stdtrit(df, 1 - alpha / 2)) + 2.0
    while shortfall(high) < 0:
        high *= 2
    return float(scipy.optimize.brentq(shortfall, 0.0, high, xtol=1e-10))


def _smallest(enough: Callable[[int], bool], *, start: int) -> int | None:
    """The smallest whole number from ``start`` that is enough, by doubling and halving."""
    if enough(start):
        return start
    low, high = start, start * 2
    while not enough(high):
        if high >= MOST:
            return None
        low, high = high, min(high * 2, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(sd: float, alpha: float) -> None:
    if not (math.isfinite(sd) and sd >= 0):
        raise StatsInputError(f"standard deviation {sd}", hint="zero or more, and finite")
    if not 0 < alpha < 1:
        raise StatsInputError(f"alpha {alpha} is not between 0 and 1", hint="0.05 is usual")


def _check_wanted(wanted: float) -> None:
    if not (math.isfinite(wanted) and wanted > 0):
        raise StatsInputError(f"wanted difference {wanted}", hint="above zero, in the unit of the scores")
