"""The within-task part of a suite comparison: these tasks, with other seeds and other test sets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from biobench.stats.counts import f1_scores
from biobench.stats.intervals import SE_DRAWS, Method
from biobench.stats.means import MeanTest, t_from_se
from biobench.stats.paired import compare_seeds, crossed, document_se, interaction
from biobench.stats.runs import TaskRuns, by_cluster, shared_groups
from biobench.stats.types import Estimand, FloatArray, StatsInputError, SuiteScores, check_names


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
        scores = [
            [f1_scores(task.models[m], task.average, task.evaluated) for m in (first, second)] for task in cluster
        ]
        parts = _seed_parts(scores, [task.paired_seeds for task in cluster], [task.resolution for task in cluster])
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
        means.append(float(np.mean([a.mean() - b.mean() for a, b in scores])))
    if not means:
        raise StatsInputError("no task", hint="a suite has at least one task")
    if not seeds_known:
        notes.append("some task has one seed: seed noise is left out")
    if not documents_known:
        notes.append("some task has one group of documents: test-set noise is left out")
    seeds = _scaled(seed_parts, len(means)) if seeds_known else None
    documents = _scaled(document_parts, len(means)) if documents_known else None
    # nothing is counted twice where a source is unknown, and `crossed` then takes nothing off
    return _combined(means, seeds, documents, twice / len(means) ** 2, level, notes)


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
    if weights is not None:
        return _weighted(first, second, weights, paired_seeds, resolutions, level, ratios)
    parts, means = [], []
    drawn: list[Parts] = []
    for label in dict.fromkeys(owners):
        rows = [i for i, owner in enumerate(owners) if owner == label]
        scores = [[np.asarray(side[i], dtype=np.float64) for side in (first, second)] for i in rows]
        steps = [0.0 if resolutions is None else resolutions[i] for i in rows]
        shared = [0.0 if ratios is None else ratios[i] for i in rows]
        parts.append(_seed_parts(scores, [paired_seeds or r > 0 for r in shared], steps, shared))
        means.append(float(np.mean([a.mean() - b.mean() for a, b in scores])))
        if documents is not None:
            drawn.append([(documents[i][0] / len(rows) ** 2, documents[i][1]) for i in rows])
    resampled = ratios is not None and min(ratios) > 0
    notes = ["no counts: test-set noise is left out"] if documents is None and not resampled else []
    known = [part for part in parts if part is not None]
    seeds = _scaled(known, len(means)) if len(known) == len(parts) else None
    if seeds is None:
        notes.append("some task has one seed or a published mean: seed noise is unknown")
    noise = None if documents is None else _scaled(drawn, len(means))
    return _combined(means, seeds, noise, 0.0, level, notes, Estimand.THESE_TASKS if resampled else None)


Parts = list[tuple[float, float]]


def _weighted(
    first: SuiteScores,
    second: SuiteScores,
    weights: Sequence[float],
    paired_seeds: bool,
    resolutions: Sequence[float] | None,
    level: float,
    ratios: Sequence[float] | None,
) -> WithinTasks:
    """Each task with its share of the sum of the weights."""
    if len(weights) != len(first) or not all(math.isfinite(w) and w > 0 for w in weights):
        raise StatsInputError(f"weights {list(weights)}", hint="one above zero for each task")
    shares = [w / math.fsum(weights) for w in weights]
    steps = [0.0] * len(first) if resolutions is None else resolutions
    pairs = [[np.asarray(side, dtype=np.float64) for side in pair] for pair in zip(first, second, strict=True)]
    shared = [0.0] * len(first) if ratios is None else ratios
    parts = [
        _seed_parts([pair], [paired_seeds or ratio > 0], [step], [ratio])
        for pair, step, ratio in zip(pairs, steps, shared, strict=True)
    ]
    known = [part for part in parts if part is not None]
    noise = [(s**2 * v, df) for s, part in zip(shares, known, strict=False) for v, df in part]
    notes = ["no counts: test-set noise is left out"]
    if len(known) < len(parts):
        notes.append("some task has one seed or a published mean: seed noise is unknown")
    difference = math.fsum(s * float(a.mean() - b.mean()) for s, (a, b) in zip(shares, pairs, strict=True))
    return _combined([difference], noise if len(known) == len(parts) else None, None, 0.0, level, notes)


def _seed_parts(
    scores: Sequence[Sequence[FloatArray]],
    paired: Sequence[bool],
    resolutions: Sequence[float],
    ratios: Sequence[float] | None = None,
) -> Parts | None:
    """(variance, df) that each task's seeds add to the cluster mean; None where a task has one seed."""
    parts: Parts = []
    for (a, b), pair, step, ratio in zip(scores, paired, resolutions, ratios or [0.0] * len(scores), strict=True):
        test = compare_seeds(a, b, paired=pair, resolution=step, ratio=ratio).test
        # one seed on both sides with equal scores has a test (p 1) but still no seed noise to speak of
        if test.se is None or min(a.size, b.size) == 1:
            return None
        parts.append((test.se**2 / len(scores) ** 2, math.inf if test.df is None else test.df))
    return parts


def _scaled(parts: Sequence[Parts], clusters: int) -> Parts:
    return [(variance / clusters**2, df) for part in parts for variance, df in part]


def _combined(
    means: Sequence[float],
    seeds: Parts | None,
    documents: Parts | None,
    twice: float,
    level: float,
    notes: list[str],
    estimand: Estimand | None = None,
) -> WithinTasks:
    """estimand: what the parts are about; None: what follows from which of them are known."""
    difference = float(np.mean(means))
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
        n=len(means),
        estimand=estimand,
        level=level,
        method="t on variances summed over tasks",
    )
    return WithinTasks(difference, test, se_seeds, se_documents, tuple(notes))
