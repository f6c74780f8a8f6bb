"""The hierarchical bootstrap of a suite: corpus clusters, their tasks, seeds, documents.

Two stages, so that 50 models x 19 tasks x 9 seeds stay affordable. First, cluster by cluster, a pool of
document draws: each resamples the cluster's documents (those that tasks share, together) and recomputes
F1 for every model and seed. Then every suite draw picks clusters, tasks within them, seeds within these
and one document draw of the pool a picked cluster. Only one cluster's counts are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from biobench.stats.counts import f1_scores
from biobench.stats.resample import group_weights, score_draws
from biobench.stats.runs import TaskRuns, by_cluster, shared_groups
from biobench.stats.types import Estimand, FloatArray, StatsInputError, as_values, check_names

#: Document draws kept for each cluster; suite draws pick among them.
DOCUMENT_DRAWS = 1_000
#: Suite draws handled at a time.
CHUNK = 500


@dataclass(frozen=True)
class TaskPool:
    """One task's scores under document draws.

    scores: (document draws, models, seeds), zero-padded where a model has fewer seeds; n_seeds: (models,).
    full: (models,), the mean over seeds on the whole test split. Pools of one cluster share their draws.
    """

    task: str
    cluster: str
    scores: NDArray[np.float32]
    n_seeds: NDArray[np.int64]
    full: FloatArray
    paired_seeds: bool


@dataclass(frozen=True)
class SuiteDraws:
    """estimate: (models,), mean of cluster means; draws: (draws, models), the same in each draw.

    clusters: how many were drawn from.
    """

    estimate: FloatArray
    draws: FloatArray
    estimand: Estimand
    clusters: int


@dataclass(frozen=True)
class RankInterval:
    """rank: 1 is best, models with equal scores share the best rank of the tie. low, high: bootstrap ends.

    best: share of draws in which the model is first, alone or in a tie.
    """

    model: str
    score: float
    rank: int
    low: int
    high: int
    best: float
    level: float
    estimand: Estimand


def document_pools(tasks: Iterable[TaskRuns], *, document_draws: int = DOCUMENT_DRAWS, seed: int = 0) -> list[TaskPool]:
    """The first stage, from counts. ``tasks`` may be a generator; tasks of a cluster must be adjacent."""
    rng = np.random.default_rng(seed)
    pools = []
    for cluster in by_cluster(tasks):
        size, rows = shared_groups(cluster)
        shapes = [(len(t.models), max(m.n_seeds for m in t.models)) for t in cluster]
        scores = [np.zeros((document_draws, *shape), dtype=np.float32) for shape in shapes]
        start = 0
        for weights in group_weights(size, document_draws, rng):
            stop = start + weights.shape[0]
            for task, places, out in zip(cluster, rows, scores, strict=True):
                task_weights = np.ascontiguousarray(weights[:, places])
                for index, counts in enumerate(task.models):
                    drawn = score_draws(counts, task_weights, task.average, task.evaluated)
                    out[start:stop, index, : counts.n_seeds] = drawn
            start = stop
        for task, out in zip(cluster, scores, strict=True):
            n_seeds = np.array([counts.n_seeds for counts in task.models])
            full = np.array([f1_scores(m, task.average, task.evaluated).mean() for m in task.models])
            pools.append(TaskPool(task.task, task.cluster, out, n_seeds, full, task.paired_seeds))
    return pools


def score_pool(
    task: str, scores: Sequence[Sequence[float]], *, cluster: str | None = None, paired_seeds: bool = True
) -> TaskPool:
    """A pool without documents: per model, its scores over seeds (a published mean is one score)."""
    values = [as_values(x, f"{task}, model {i + 1}") for i, x in enumerate(scores)]
    n_seeds = np.array([x.size for x in values])
    if paired_seeds and len(set(n_seeds.tolist())) > 1:
        raise StatsInputError(
            f"{task}: models have {sorted(set(n_seeds.tolist()))} seeds",
            hint="keep the seeds all have, or paired_seeds=False",
        )
    padded = np.zeros((1, len(values), int(n_seeds.max())), dtype=np.float32)
    for index, x in enumerate(values):
        padded[0, index, : x.size] = x
    full = np.array([x.mean() for x in values])
    return TaskPool(task, task if cluster is None else cluster, padded, n_seeds, full, paired_seeds)


def suite_draws(
    pools: Sequence[TaskPool],
    *,
    estimand: Estimand = Estimand.TASKS_LIKE_THESE,
    draws: int = 10_000,
    seed: int = 0,
) -> SuiteDraws:
    """The second stage. ``TASKS_LIKE_THESE`` draws clusters and tasks anew, ``THESE_TASKS`` keeps them.

    Of n clusters, tasks or seeds, n - 1 are drawn with replacement: the variance of their mean then is
    s²/n and not s²(n-1)/n² (Rao and Wu 1988), which matters for 5 seeds or 6 clusters.
    """
    if estimand not in (Estimand.TASKS_LIKE_THESE, Estimand.THESE_TASKS):
        raise StatsInputError(f"no suite draws for {estimand}", hint="TASKS_LIKE_THESE or THESE_TASKS")
    clusters = _clusters(pools)
    redraw = estimand is Estimand.TASKS_LIKE_THESE
    models = pools[0].full.size
    estimate = np.mean([np.mean([pool.full for pool in members], axis=0) for members in clusters], axis=0)
    rng = np.random.default_rng(seed)
    result = np.empty((draws, models))
    for start in range(0, draws, CHUNK):
        count = min(CHUNK, draws - start)
        slots = max(1, len(clusters) - 1) if redraw else len(clusters)
        total = np.zeros((count, models))
        for slot in range(slots):
            picks = rng.integers(0, len(clusters), size=count) if redraw else np.full(count, slot)
            for index, members in enumerate(clusters):
                chosen = np.flatnonzero(picks == index)
                if chosen.size:
                    total[chosen] += _cluster_draw(members, chosen.size, redraw, rng)
        result[start : start + count] = total / slots
    return SuiteDraws(estimate, result, estimand, len(clusters))


def rank_intervals(
    draws: SuiteDraws, names: Sequence[str] | None = None, *, level: float = 0.95
) -> tuple[RankInterval, ...]:
    """Each model's rank by suite score with its interval over the draws, in the order of the models.

    Where clusters were drawn, the draws are first stretched around the estimate from the normal's to the t's
    width on that many clusters: the percentiles of a few clusters are too sure of themselves, and would exclude
    ranks that the t test leaves open. Ranks are whole numbers, so the intervals cover at least the level where
    models differ by more than their noise; equal models get each other's rank into their intervals.
    """
    models = draws.estimate.size
    labels = check_names(names, models, "model")
    low = np.empty(draws.draws.shape, dtype=np.int32)
    high = np.empty_like(low)
    stretch = _stretch(draws, level)
    for start in range(0, draws.draws.shape[0], CHUNK):
        moved = draws.estimate + stretch * (draws.draws[start : start + CHUNK] - draws.estimate)
        low[start : start + CHUNK], high[start : start + CHUNK] = _ranks(moved)
    ranks, _ = _ranks(draws.estimate[None])
    tail = (1 - level) / 2
    ends_low = np.quantile(low, tail, axis=0, method="inverted_cdf")
    ends_high = np.quantile(high, 1 - tail, axis=0, method="inverted_cdf")
    best = (low == 1).mean(axis=0)
    return tuple(
        RankInterval(
            labels[i],
            float(draws.estimate[i]),
            int(ranks[0, i]),
            int(ends_low[i]),
            int(ends_high[i]),
            float(best[i]),
            level,
            draws.estimand,
        )
        for i in range(models)
    )


def _stretch(draws: SuiteDraws, level: float) -> float:
    """How much wider the t on the clusters is than the normal; 1 where no cluster was drawn, or none can be."""
    if draws.estimand is not Estimand.TASKS_LIKE_THESE or draws.clusters < 2:
        return 1.0
    t = float(special.stdtrit(draws.clusters - 1, (1 + level) / 2))
    # of two clusters each draw is one, which lies a standard error from the mean and never further
    return t if draws.clusters == 2 else t / float(special.ndtri((1 + level) / 2))


def _clusters(pools: Sequence[TaskPool]) -> list[list[TaskPool]]:
    if not pools:
        raise StatsInputError("no task", hint="a suite has at least one task")
    grouped: dict[str, list[TaskPool]] = {}
    for pool in pools:
        if pool.full.size != pools[0].full.size:
            raise StatsInputError(
                f"{pool.task} has {pool.full.size} models, {pools[0].task} {pools[0].full.size}",
                hint="rank on the tasks that all models have",
            )
        grouped.setdefault(pool.cluster, []).append(pool)
    for cluster, members in grouped.items():
        if len({pool.scores.shape[0] for pool in members}) > 1:
            raise StatsInputError(
                f"cluster {cluster!r} mixes pools of different draws", hint="build its pools in one call"
            )
    return list(grouped.values())


def _cluster_draw(members: Sequence[TaskPool], count: int, redraw: bool, rng: np.random.Generator) -> FloatArray:
    """``count`` draws of one cluster's mean, (count, models): one document draw for all its tasks."""
    documents = rng.integers(0, members[0].scores.shape[0], size=count)
    slots = max(1, len(members) - 1) if redraw else len(members)
    total = np.zeros((count, members[0].full.size))
    for slot in range(slots):
        picks = rng.integers(0, len(members), size=count) if redraw else np.full(count, slot)
        for index, pool in enumerate(members):
            chosen = np.flatnonzero(picks == index)
            if chosen.size:
                weights = _seed_weights(pool, chosen.size, rng)
                total[chosen] += np.einsum("dms,dms->dm", pool.scores[documents[chosen]], weights)
    return total / slots


def _seed_weights(pool: TaskPool, count: int, rng: np.random.Generator) -> FloatArray:
    """Share of each seed in a draw, (count, models or 1, seeds)."""
    widest = pool.scores.shape[2]
    if pool.paired_seeds:
        shared = _shares(widest, (count,), rng)[:, None, :]
        return np.broadcast_to(shared, (count, pool.full.size, widest))
    weights = np.zeros((count, pool.full.size, widest))
    for seeds in np.unique(pool.n_seeds):
        of = np.flatnonzero(pool.n_seeds == seeds)
        weights[:, of, :seeds] = _shares(int(seeds), (count, of.size), rng)
    return weights


def _shares(seeds: int, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    drawn = max(1, seeds - 1)
    return rng.multinomial(drawn, np.full(seeds, 1 / seeds), size=shape) / drawn


def _ranks(scores: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Best and worst rank of each model given ties, (draws, models)."""
    # the sums of equal models may differ in their last bits
    rounded = np.round(scores, 9)
    better = (rounded[:, None, :] > rounded[:, :, None]).sum(axis=2, dtype=np.int32)
    worse = (rounded[:, None, :] < rounded[:, :, None]).sum(axis=2, dtype=np.int32)
    return better + 1, scores.shape[1] - worse
