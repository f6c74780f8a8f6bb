"""Tests that may be looked at after every run: when enough seeds have been run.

The t test with a normal prior on the effect size and the right Haar prior on the variance. For independent normal
differences its Bayes factor is an e-process (Perez-Ortiz, Lardy, de Heide and Gruenwald 2024, Ann.
Statist. 52, "E-statistics, group invariance and anytime-valid testing"; Wang and Ramdas 2025, Sequential Analysis,
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance"): the chance that it ever
reaches 1/alpha without a difference is at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from biobench.stats.means import pooled_df
from biobench.stats.types import Estimand, FloatArray, Interval, StatsInputError, as_values

#: Variance of the prior on the effect size: the suite's difference in standard deviations of one round of seeds.
PRIOR = 4.0
#: Seeds of each task before the first look.
FIRST = 3
#: How many seeds a task may be ahead of the others: tasks left at few seeds because these happened to agree bring the
#: share of false positives from 2 to 7%.
LEAD = 2


def e_value(t: float, df: float, rounds: float, prior: float = PRIOR) -> float:
    """The Bayes factor for a difference. t, df: of the t statistic; rounds: observations behind it."""
    spread = 1 + rounds * prior
    gain = (math.log1p(t * t / df) - math.log1p(t * t / (df * spread))) * (df + 1) / 2
    return math.exp(min(700.0, gain - math.log(spread) / 2))


def critical_t(df: float, rounds: float, alpha: float, prior: float = PRIOR) -> float:
    """The t whose e-value is 1 / alpha: the half-width of the confidence sequence in standard errors.

    Infinite where no t reaches it.
    """
    spread = 1 + rounds * prior
    power = (math.log(1 / alpha) + math.log(spread) / 2) * 2 / (df + 1)
    ratio = math.exp(min(700.0, power))
    return math.sqrt(df * (ratio - 1) / (1 - ratio / spread)) if ratio < spread else math.inf


@dataclass(frozen=True)
class Look:
    """What the runs so far show. decision: ``different``, ``same`` (within the rope) or None: not decided.

    interval: of the confidence sequence, None while it is unbounded. e: against no difference.
    rounds: seeds a task, in effect. shares: (tasks,) of each task in the variance of the mean.
    """

    estimate: float
    interval: Interval | None
    e: float
    rounds: float
    decision: Literal["different", "same"] | None
    shares: FloatArray


def look(
    differences: Sequence[Sequence[float]],
    weights: Sequence[float],
    *,
    rope: float = 0.0,
    alpha: float = 0.05,
    prior: float = PRIOR,
) -> Look:
    """The test after any number of seeds. differences: per task first minus second model, paired over seeds.

    weights: of each task in the suite's mean. Estimand: these tasks and test sets, other seeds. Exact for tasks with
    equal numbers of seeds and equal variances; for others the variances add up with Welch and Satterthwaite's
    degrees of freedom, which holds its level in simulation. Decides nothing below ``FIRST`` seeds of every task.
    """
    values = [as_values(d, f"differences of task {i + 1}", minimum=2) for i, d in enumerate(differences)]
    if len(values) != len(weights):
        raise StatsInputError(f"{len(weights)} weights for {len(values)} tasks", hint="give each task one")
    w = np.asarray(weights, dtype=np.float64)
    n = np.array([d.size for d in values])
    single = w**2 * np.array([float(d.var(ddof=1)) for d in values])
    parts = single / n
    estimate = float(w @ np.array([float(d.mean()) for d in values]))
    variance = float(parts.sum())
    shares = parts / variance if variance > 0 else np.full(n.size, 1 / n.size)
    if variance == 0 or n.min() < FIRST:
        return Look(estimate, None, 1.0, float(n.min()), None, shares)
    df = pooled_df([(float(v), float(k - 1)) for v, k in zip(parts, n, strict=True)])
    rounds = float(single.sum()) / variance
    se = math.sqrt(variance)
    half = critical_t(df, rounds, alpha, prior) * se
    interval = None
    decision: Literal["different", "same"] | None = None
    if math.isfinite(half):
        ends = estimate - half, estimate + half
        interval = Interval(*ends, 1 - alpha, "confidence sequence of the t", Estimand.THESE_TEST_SETS)
        if ends[0] > 0 or ends[1] < 0:
            decision = "different"
        elif rope > 0 and -rope < ends[0] and ends[1] < rope:
            decision = "same"
    return Look(estimate, interval, e_value(estimate / se, df, rounds, prior), rounds, decision, shares)


def next_task(differences: Sequence[Sequence[float]], weights: Sequence[float], seconds: Sequence[float]) -> int:
    """Where a further seed takes most variance off the mean for its time: the place of a task.

    seconds: of one more pair of runs on each task. A task whose seeds agree is taken to vary as a tenth of the median
    task does, so that it is not left out for good.
    """
    n = np.array([len(d) for d in differences])
    spread = np.array([float(np.var(d, ddof=1)) for d in differences])
    spread = np.maximum(spread, 0.1 * float(np.median(spread)))
    gain = np.asarray(weights) ** 2 * spread * (1 / n - 1 / (n + 1)) / np.asarray(seconds, dtype=np.float64)
    return int(np.argmax(np.where(n - n.min() >= LEAD, -1.0, gain)))
