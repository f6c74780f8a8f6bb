"""Two models on one task: the difference, paired over seeds and over documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.counts import Average, Counts, f1_scores
from biobench.stats.intervals import RARE, SE_DRAWS, Method, choose_method
from biobench.stats.means import SINGLE, MeanTest, mean_test, pooled_df, t_from_se
from biobench.stats.power import detectable_from_se
from biobench.stats.resample import (
    group_weights,
    interaction_variance,
    jackknife_se,
    leave_one_out,
    rare_labels,
    score_draws,
)
from biobench.stats.runs import TaskRuns, shared_groups
from biobench.stats.types import Estimand, FloatArray, StatsInputError, as_values

_LARGE = 1e9
"""Degrees of freedom beyond which a t is a normal distribution."""


@dataclass(frozen=True)
class SeedDifference:
    """First minus second model, over seeds."""

    test: MeanTest
    paired: bool


@dataclass(frozen=True)
class TaskComparison:
    """First minus second model on one task; scores and differences are fractions.

    seeds: other seeds, same test set. documents: same runs, another test set. total: both may change
    (None where either part is unknown; ``notes`` say which). detectable: smallest true difference that so
    many seeds and documents find at 1 - level with 80% power (by the total; None without one).
    """

    first: float
    second: float
    difference: float
    seeds: SeedDifference
    documents: MeanTest | None
    total: MeanTest | None
    detectable: float | None
    method: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class McNemar:
    """only_first, only_second: examples that one model alone gets right. p: exact, two-sided."""

    only_first: int
    only_second: int
    n: int
    p: float


def compare_seeds(
    first: ArrayLike,
    second: ArrayLike,
    *,
    paired: bool = True,
    level: float = 0.95,
    resolution: float = 0.0,
    ratio: float = 0.0,
) -> SeedDifference:
    """Difference of two models' mean scores over seeds: paired t, or Welch's t where seeds do not pair.

    ratio: where the scores are of several splits of one corpus, test documents to training documents (see
    ``resampled_se``). Such splits always pair, and the estimand is the mean difference over corpora like this one.

    Estimand: the two recipes' mean scores over all seeds, on this test set. Degenerate cases as in
    ``mean_test``; with unpaired seeds, a model with one seed leaves no interval and no p.
    """
    a, b = as_values(first, "scores of the first model"), as_values(second, "scores of the second model")
    if paired:
        if a.size != b.size:
            raise cannot_pair(a.size, b.size)
        estimand = Estimand.THIS_TASK if ratio else Estimand.NEW_SEEDS
        test = mean_test(a - b, estimand=estimand, level=level, resolution=resolution, ratio=ratio)
        return SeedDifference(test, True)
    if ratio:
        raise never_independent()
    estimate = float(a.mean() - b.mean())
    n = int(a.size + b.size)
    if min(a.size, b.size) == 1:
        test = MeanTest(n, estimate, None, None, None, None, None, Estimand.NEW_SEEDS, SINGLE)
        return SeedDifference(test, False)
    variance, df = welch([a.var(ddof=1), b.var(ddof=1)], [a.size, b.size], resolution)
    test = t_from_se(
        estimate, math.sqrt(variance), float(df), n=n, estimand=Estimand.NEW_SEEDS, level=level, method="Welch t"
    )
    return SeedDifference(test, False)


def welch(variances: ArrayLike, sizes: ArrayLike, resolution: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Variance of the difference of two means over independent seeds, and its degrees of freedom.

    variances, sizes: of the two models' scores, (2,) or (2, tasks). resolution: as of ``mean_test``, (tasks,).
    """
    parts = np.maximum(variances, np.square(resolution) / 12) / sizes
    total = parts.sum(axis=0)
    below = (parts**2 / np.subtract(sizes, 1.0)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return total, np.where(below > 0, total**2 / below, math.inf)


def cannot_pair(first: int, second: int) -> StatsInputError:
    """The error for two models with other numbers of seeds."""
    return StatsInputError(
        f"{first} and {second} seeds cannot be paired", hint="keep the shared seeds, or paired=False"
    )


def never_independent() -> StatsInputError:
    """The error for splits that the two models do not share."""
    return StatsInputError("splits of one corpus that do not pair", hint="compare on the splits that both have")


def compare_task(
    first: Counts,
    second: Counts,
    average: Average,
    *,
    evaluated: ArrayLike | None = None,
    paired_seeds: bool = True,
    method: Method = "auto",
    draws: int = SE_DRAWS,
    level: float = 0.95,
    seed: int = 0,
    resolution: float = 0.0,
) -> TaskComparison:
    """Two models on one task, from counts of the same test split.

    Documents always pair: a draw takes the same groups for both models and all seeds. The total adds the
    two variances less their interaction (seeds are crossed with documents), with Welch-Satterthwaite
    degrees of freedom. Bootstrap or jackknife as in ``document_interval``; coverage nominal under the same
    conditions. resolution: as in ``mean_test``, for the seed part.
    """
    runs = TaskRuns.of("task", (first, second), average, evaluated=evaluated, paired_seeds=paired_seeds)
    a = f1_scores(first, runs.average, runs.evaluated)
    b = f1_scores(second, runs.average, runs.evaluated)
    seeds = compare_seeds(a, b, paired=paired_seeds, level=level, resolution=resolution)
    se, chosen = document_se([runs], 0, 1, method=method, draws=draws, rng=np.random.default_rng(seed))
    twice = interaction(runs, 0, 1)
    return joined(a, b, seeds, se, chosen, first.n_groups, twice, level)


def joined(
    first: FloatArray,
    second: FloatArray,
    seeds: SeedDifference,
    se: float | None,
    chosen: str,
    groups: int,
    twice: float,
    level: float,
) -> TaskComparison:
    """Seed and test-set noise of the difference of two models' scores, (seeds,) each, as one comparison.

    se: test-set standard error by the method `chosen` over `groups`, None for a single group. twice: the variance
    that both sources contain.
    """
    difference = float(first.mean() - second.mean())
    notes = []
    documents = total = detectable = None
    if se is None:
        notes.append("one group of documents: test-set noise is unknown")
    else:
        documents = t_from_se(
            difference,
            se,
            groups - 1,
            n=groups,
            estimand=Estimand.NEW_DOCUMENTS,
            level=level,
            method=f"t on the {chosen} standard error",
        )
    # one seed each with equal scores has a seed p of 1 by definition, yet its seed noise is unknown
    lone = min(first.size, second.size) == 1 and (se is None or se > 0)
    if seeds.test.se is None or lone:
        notes.append("one seed: seed noise is unknown, so nothing is said about other seeds")
    elif se is not None:
        seed_df = seeds.test.df if seeds.test.df is not None else math.inf
        parts = [[(seeds.test.se**2, seed_df)], [(se**2, groups - 1.0)]]
        variance, df = crossed(parts, twice)
        detectable = detectable_from_se(math.sqrt(variance), df, alpha=1 - level)
        total = t_from_se(
            difference,
            math.sqrt(variance),
            df,
            n=groups,
            estimand=Estimand.THIS_TASK,
            level=level,
            method="t on seed and document variance",
        )
    return TaskComparison(
        float(first.mean()), float(second.mean()), difference, seeds, documents, total, detectable, chosen, tuple(notes)
    )


def document_se(
    tasks: Sequence[TaskRuns], first: int, second: int, *, method: Method, draws: int, rng: np.random.Generator
) -> tuple[float | None, str]:
    """Test-set standard error of the mean difference over the tasks of one cluster, and how it was made.

    Documents that tasks share are drawn together. None for a single group.
    """
    size, rows = shared_groups(tasks)
    if size == 1:
        return None, "none"
    rare = max(rare_labels(t.models[m], t.average, t.evaluated, RARE) for t in tasks for m in (first, second))
    chosen = choose_method(method, rare)
    if chosen == "jackknife":
        left_out = np.zeros(size)
        for task, places in zip(tasks, rows, strict=True):
            a, b = (leave_one_out(task.models[m], task.average, task.evaluated) for m in (first, second))
            full = [f1_scores(task.models[m], task.average, task.evaluated).mean() for m in (first, second)]
            without = np.full(size, full[0] - full[1])
            without[places] = a.mean(axis=1) - b.mean(axis=1)
            left_out += without / len(tasks)
        return jackknife_se(left_out), chosen
    parts = []
    for weights in group_weights(size, draws, rng):
        drawn: FloatArray = np.zeros(weights.shape[0])
        for task, places in zip(tasks, rows, strict=True):
            task_weights = weights[:, places]
            a, b = (score_draws(task.models[m], task_weights, task.average, task.evaluated) for m in (first, second))
            drawn += (a.mean(axis=1) - b.mean(axis=1)) / len(tasks)
        parts.append(drawn)
    return float(np.concatenate(parts).std(ddof=1)), chosen


def interaction(task: TaskRuns, first: int, second: int) -> float:
    """Variance of the mean difference that its seed part and its document part both contain."""
    a, b = (leave_one_out(task.models[m], task.average, task.evaluated) for m in (first, second))
    if task.paired_seeds:
        return interaction_variance(a - b)
    return interaction_variance(a) + interaction_variance(b)


def crossed(sources: Sequence[Sequence[tuple[float, float]]], twice: float) -> tuple[float, float]:
    """Variance and degrees of freedom of all ``sources`` of noise together, ``twice`` being counted twice in them.

    sources: seeds and documents, each as parts (variance, df) that add up. Never less than any source's
    variance, which sampling noise in ``twice`` could otherwise bring about. The degrees of freedom are
    Welch-Satterthwaite's for the parts, lowered as the subtraction lowers the variance but not the error of
    the parts, and lowered to a source's own where that alone has the wider 95% interval (two seeds, whose t has
    a degree of freedom or two): more noise cannot make a result surer.
    """
    parts = [part for source in sources for part in source]
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return 0.0, math.inf
    sums = [(sum(variance for variance, _ in source), pooled_df(source)) for source in sources]
    variance = max([total - twice, *(v for v, _ in sums)])
    lowest = min(df for part, df in parts if part > 0)
    df = max(lowest, pooled_df(parts) * (variance / total) ** 2)
    wider = [d for v, d in sums if _half(v, d) > _half(variance, df)]
    return variance, min([df, *wider])


def _half(variance: float, df: float) -> float:
    """Half the width of the 95% t interval."""
    return math.sqrt(variance) * float(special.stdtrit(min(df, _LARGE), 0.975))


def mcnemar(first_right: ArrayLike, second_right: ArrayLike) -> McNemar:
    """Exact McNemar test on which examples each of two single-label classifiers gets right.

    Assumes independent examples (one a group) and looks at one run of each model. No discordant example
    gives p 1.
    """
    a, b = np.asarray(first_right, dtype=np.bool_), np.asarray(second_right, dtype=np.bool_)
    if a.ndim != 1 or a.shape != b.shape or not a.size:
        raise StatsInputError(
            f"shapes {a.shape} and {b.shape}", hint="give one yes or no for each example, for both models"
        )
    only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
    discordant = only_a + only_b
    p = float(scipy.stats.binomtest(only_a, discordant, 0.5).pvalue) if discordant else 1.0
    return McNemar(only_a, only_b, int(a.size), p)
