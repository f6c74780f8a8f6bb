"""The within-task part of a suite comparison: these tasks, with other seeds and other test sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from biobench.stats.counts import f1_scores
from biobench.stats.intervals import SE_DRAWS, Method
from biobench.stats.means import MeanTest, in_a_row, moments, resampled_se, spread_of, t_from_se
from biobench.stats.paired import cannot_pair, crossed, document_se, interaction, never_independent, welch
from biobench.stats.runs import TaskRuns, by_cluster, shared_groups
from biobench.stats.suite import task_weights
from biobench.stats.types import ROUNDING, Estimand, FloatArray, Samples, StatsInputError, SuiteScores, check_names


@dataclass(frozen=True)
class WithinTasks:
    """First minus second model, mean of cluster means, the tasks held fixed.

    test: interval and p over what could vary (its estimand says what). se_seeds, se_documents: the two
    parts, None where unknown; ``notes`` say why.
    """

    difference: float
    test: MeanTest | None
    se_seeds: float | None
    se_documents: float | None
    notes: tuple[str, ...]


def within_tasks(
    tasks: Iterable[TaskRuns],
    first: int = 0,
    second: int = 1,
    *,
    method: Method = "auto",
    draws: int = SE_DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> WithinTasks:
    """Seed and test-set noise of the suite difference, from counts; tasks of a cluster must be adjacent.

    Documents that tasks of a cluster share are drawn together; runs on different tasks count as
    independent. The variances of the clusters add up, less the interaction of seeds and documents, with
    Welch-Satterthwaite degrees of freedom.
    """
    rng = np.random.default_rng(seed)
    means, seed_parts, document_parts, twice = [], [], [], 0.0
    notes: list[str] = []
    seeds_known = documents_known = True
    for cluster in by_cluster(tasks):
        noise = seed_noise(
            [f1_scores(task.models[first], task.average, task.evaluated) for task in cluster],
            [f1_scores(task.models[second], task.average, task.evaluated) for task in cluster],
            paired=[task.paired_seeds for task in cluster],
            resolutions=[task.resolution for task in cluster],
            ratios=[0.0] * len(cluster),
        )
        parts = _parts(noise, np.full(len(cluster), 1 / len(cluster)))
        if parts is None:
            seeds_known = False
        else:
            seed_parts.append(parts)
        se, _ = document_se(cluster, first, second, method=method, draws=draws, rng=rng)
        if se is None:
            documents_known = False
        else:
            document_parts.append([(se**2, shared_groups(cluster)[0] - 1.0)])
        twice += sum(interaction(task, first, second) for task in cluster) / len(cluster) ** 2
        means.append(float(noise.differences.mean()))
    if not means:
        raise StatsInputError("no task", hint="a suite has at least one task")
    if not seeds_known:
        notes.append("some task has one seed: seed noise is left out")
    if not documents_known:
        notes.append("some task has one group of documents: test-set noise is left out")
    seeds = _scaled(seed_parts, len(means)) if seeds_known else None
    documents = _scaled(document_parts, len(means)) if documents_known else None
    # nothing is counted twice where a source is unknown, and `crossed` then takes nothing off
    return _combined(float(np.mean(means)), len(means), seeds, documents, twice / len(means) ** 2, level, notes)


def _scaled(parts: Sequence[Parts], clusters: int) -> Parts:
    return [(variance / clusters**2, df) for part in parts for variance, df in part]


def within_tasks_seeds(
    first: SuiteScores,
    second: SuiteScores,
    *,
    clusters: Sequence[str] | None = None,
    paired_seeds: bool = True,
    level: float = 0.95,
    resolutions: Sequence[float] | None = None,
    documents: Sequence[tuple[float, float]] | None = None,
    weights: Sequence[float] | None = None,
    ratios: Sequence[float] | None = None,
) -> WithinTasks:
    """As ``within_tasks`` from the scores alone: other seeds, these tasks and these test sets.

    weights: of each task in the mean, in any unit, in the place of the mean over clusters (and without `documents`).

    resolutions: the step of each task's scores (see ``mean_test``). documents: (variance, df) of each task's
    difference over other test sets, where it is known for all; they count as independent, and what seeds and
    documents both contain is counted twice, so the interval is too wide rather than too narrow. ratios: of each task
    as in ``compare_seeds``; where none is 0, the differences over splits hold the noise of test sets too.
    """
    if len(first) != len(second) or not len(first):
        raise StatsInputError(f"{len(first)} and {len(second)} tasks", hint="give both models the same tasks")
    names = check_names(None, len(first), "task")
    owners = names if clusters is None else check_names(clusters, len(first), "cluster")
    shares = task_weights(owners) if weights is None else _shares(weights, len(first))
    corrections = [0.0] * len(first) if ratios is None else ratios
    noise = seed_noise(
        first,
        second,
        paired=[paired_seeds or ratio > 0 for ratio in corrections],
        resolutions=[0.0] * len(first) if resolutions is None else resolutions,
        ratios=corrections,
    )
    resampled = min(corrections) > 0
    notes = ["no counts: test-set noise is left out"] if documents is None and not resampled else []
    seeds = _parts(noise, shares)
    if seeds is None:
        notes.append("some task has one seed or a published mean: seed noise is unknown")
    drawn = None
    if documents is not None:
        drawn = [(share**2 * variance, df) for share, (variance, df) in zip(shares.tolist(), documents, strict=True)]
    estimand = Estimand.THESE_TASKS if resampled else None
    return _combined(float(shares @ noise.differences), len(set(owners)), seeds, drawn, 0.0, level, notes, estimand)


Parts = list[tuple[float, float]]
"""(variance, degrees of freedom) of what adds up."""


def _shares(weights: Sequence[float], tasks: int) -> FloatArray:
    """Of each task in the weighted mean."""
    if len(weights) != tasks or not all(math.isfinite(w) and w > 0 for w in weights):
        raise StatsInputError(f"weights {list(weights)}", hint="one above zero for each task")
    return np.array(weights) / math.fsum(weights)


def _parts(noise: SeedNoise, shares: FloatArray) -> Parts | None:
    """What the seeds of each task add to the mean with these shares; None where a task has one seed."""
    variances = shares**2 * noise.variances
    return None if np.isnan(variances).any() else list(zip(variances.tolist(), noise.df.tolist(), strict=True))


class SeedNoise(NamedTuple):
    """Of each task, (tasks,). differences: first minus second model, of the means over seeds. variances: of these over
    other seeds, NaN where a model has one seed; df: their degrees of freedom, infinite where nothing varies."""

    differences: FloatArray
    variances: FloatArray
    df: FloatArray


def seed_noise(
    first: Samples,
    second: Samples,
    *,
    paired: Sequence[bool],
    resolutions: Sequence[float],
    ratios: Sequence[float],
) -> SeedNoise:
    """``compare_seeds`` of many tasks at once, without intervals; the last three as there, one a task."""
    noise = np.empty((3, len(first)))
    for together, of in ((True, _paired_noise), (False, _welch_noise)):
        rows = [i for i, pair in enumerate(paired) if pair is together]
        if rows:
            steps, shared = (np.array([values[i] for i in rows]) for values in (resolutions, ratios))
            noise[:, rows] = of([first[i] for i in rows], [second[i] for i in rows], steps, shared)
    variances, df = noise[1], noise[2]
    nothing = np.sqrt(variances) <= ROUNDING
    variances[nothing], df[nothing] = 0.0, math.inf
    return SeedNoise(noise[0], variances, df)


def _paired_noise(
    first: Samples, second: Samples, resolutions: FloatArray, ratios: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    (a, sizes), (b, others) = in_a_row(first), in_a_row(second)
    for size, other in zip(sizes, others, strict=True):
        if size != other:
            raise cannot_pair(size, other)
    means, sds, largest = moments(a - b, sizes)
    return means, resampled_se(spread_of(sds, largest, resolutions), sizes, ratios) ** 2, sizes.astype(np.float64) - 1.0


def _welch_noise(
    first: Samples, second: Samples, resolutions: FloatArray, ratios: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if ratios.any():
        raise never_independent()
    rows = [in_a_row(side) for side in (first, second)]
    (mean, sd, _), (other_mean, other_sd, _) = (moments(*row) for row in rows)
    variances, df = welch(np.square([sd, other_sd]), [sizes for _, sizes in rows], resolutions)
    return mean - other_mean, variances, df


def _combined(
    difference: float,
    clusters: int,
    seeds: Parts | None,
    documents: Parts | None,
    twice: float,
    level: float,
    notes: list[str],
    estimand: Estimand | None = None,
) -> WithinTasks:
    """clusters: how many means the difference is of. estimand: what the parts are about; None: what follows from which
    of them are known."""
    se_seeds = None if seeds is None else math.sqrt(sum(v for v, _ in seeds))
    se_documents = None if documents is None else math.sqrt(sum(v for v, _ in documents))
    if seeds is None and documents is None:
        return WithinTasks(difference, None, None, None, tuple(notes))
    if estimand is not None:
        pass
    elif documents is not None and seeds is not None:
        estimand = Estimand.THESE_TASKS
    elif documents is None:
        estimand = Estimand.THESE_TEST_SETS
    else:
        estimand = Estimand.THESE_RUNS
    variance, df = crossed([seeds or [], documents or []], twice)
    test = t_from_se(
        difference,
        math.sqrt(variance),
        df,
        n=clusters,
        estimand=estimand,
        level=level,
        method="t on variances summed over tasks",
    )
    return WithinTasks(difference, test, se_seeds, se_documents, tuple(notes))
