"""Many models on a suite: corrected tests over the pairs shown, tie groups, mean ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from biobench.stats.letters import letters
from biobench.stats.multiplicity import holm
from biobench.stats.suite import SuiteComparison, cluster_means, compare_suite, suite_means
from biobench.stats.types import Estimand, FloatArray, StatsInputError, SuiteScores, check_names


@dataclass(frozen=True)
class Pair:
    """One pair shown: first minus second. p_holm: the t's p, corrected over all pairs shown.

    different: p_holm is below alpha (False where there is no test).
    """

    first: str
    second: str
    comparison: SuiteComparison
    p_holm: float | None
    different: bool


@dataclass(frozen=True)
class Standing:
    """score: mean of cluster means; task_mean: plain mean over tasks; both in the unit of the scores.

    rank: 1 is best, ties share the best. mean_rank: ranks within tasks (ties averaged), mean of cluster
    means. ties: letters, shared by models that were not told apart; None unless all pairs were tested.
    """

    model: str
    score: float
    task_mean: float
    rank: int
    mean_rank: float
    ties: str | None


@dataclass(frozen=True)
class ManyComparison:
    """standings: best first. pairs: as asked for. estimand: tasks like these."""

    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    alpha: float
    estimand: Estimand
    notes: tuple[str, ...]


def compare_many(
    scores: Sequence[SuiteScores],
    names: Sequence[str],
    *,
    tasks: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    alpha: float = 0.05,
    rope: float = 0.0,
    resolution: float = 0.0,
    paired_seeds: bool = True,
) -> ManyComparison:
    """Several models on the same tasks. scores: models, tasks, seeds.

    pairs: those shown and corrected for; default: all. Choose them before looking (a candidate against
    its baselines costs fewer comparisons than all against all). Intervals of the pairs have level
    1 - alpha each and are not widened for their number; the corrected p is.
    """
    labels = check_names(names, len(scores), "model")
    if len(set(labels)) != len(labels):
        raise StatsInputError("two models have one name", hint="give every model its own name")
    means = [suite_means(model) for model in scores]
    if len({m.size for m in means}) > 1:
        raise StatsInputError(
            f"models have {sorted({m.size for m in means})} tasks", hint="compare on the tasks that all have"
        )
    place = {name: index for index, name in enumerate(labels)}
    chosen = list(combinations(labels, 2)) if pairs is None else list(pairs)
    _check_pairs(chosen, place)
    compared = {
        (a, b): compare_suite(
            scores[place[a]],
            scores[place[b]],
            tasks=tasks,
            clusters=clusters,
            rope=rope,
            level=1 - alpha,
            resolution=resolution,
            paired_seeds=paired_seeds,
        )
        for a, b in chosen
    }
    return gather_pairs(scores, labels, compared, clusters=clusters if clusters is not None else tasks, alpha=alpha)


def gather_pairs(
    scores: Sequence[SuiteScores],
    names: Sequence[str],
    compared: Mapping[tuple[str, str], SuiteComparison],
    *,
    clusters: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> ManyComparison:
    """Several models of which pairs were compared, each on the seeds that its two share.

    scores: models, tasks, seeds, for the standings. compared: (first, second) -> their comparison on these tasks
    at level 1 - alpha; the corrections count these pairs.
    """
    labels = check_names(names, len(scores), "model")
    place = {name: index for index, name in enumerate(labels)}
    means = [suite_means(model) for model in scores]
    _check_pairs(list(compared), place)
    corrected = holm([one.test.p for one in compared.values()])
    results = tuple(
        Pair(a, b, one, p, p is not None and p <= alpha)
        for ((a, b), one), p in zip(compared.items(), corrected, strict=True)
    )
    owners = check_names(clusters, means[0].size, "task")
    complete = {frozenset(pair) for pair in compared} == {frozenset(pair) for pair in combinations(labels, 2)}
    complete &= all(p is not None for p in corrected)
    notes = [] if complete else ["tie groups need all pairs tested"]
    apart = [(place[p.first], place[p.second]) for p in results if p.different] if complete else None
    return ManyComparison(
        _standings(labels, np.array(means), owners, apart), results, alpha, Estimand.TASKS_LIKE_THESE, tuple(notes)
    )


def task_ranks(means: FloatArray) -> FloatArray:
    """Ranks of the models within each task, (models, tasks): 1 is best, ties share their mean rank."""
    # equal scores must tie whatever the order in which their seeds were added
    ranks: FloatArray = stats.rankdata(-np.round(means, 9), axis=0)
    return ranks


def _standings(
    labels: Sequence[str], means: FloatArray, owners: Sequence[str], apart: list[tuple[int, int]] | None
) -> tuple[Standing, ...]:
    score = np.array([cluster_means(row, owners)[1].mean() for row in means])
    mean_rank = np.array([cluster_means(row, owners)[1].mean() for row in task_ranks(means)])
    rank = stats.rankdata(-np.round(score, 9), method="min")
    order = sorted(range(len(labels)), key=lambda i: (rank[i], labels[i]))
    position = {model: index for index, model in enumerate(order)}
    ties: tuple[str | None, ...] = (None,) * len(labels)
    if apart is not None:
        ties = letters(len(labels), [(position[i], position[j]) for i, j in apart])
    return tuple(
        Standing(
            labels[i], float(score[i]), float(means[i].mean()), int(rank[i]), float(mean_rank[i]), ties[position[i]]
        )
        for i in order
    )


def _check_pairs(pairs: Sequence[tuple[str, str]], known: dict[str, int]) -> None:
    seen: set[frozenset[str]] = set()
    for a, b in pairs:
        for name in (a, b):
            if name not in known:
                raise StatsInputError(f"no model {name!r}", hint=f"one of {', '.join(known)}")
        if a == b or frozenset((a, b)) in seen:
            raise StatsInputError(f"pair {a!r}, {b!r} repeats a model or a pair", hint="name each pair once")
        seen.add(frozenset((a, b)))
