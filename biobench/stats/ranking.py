"""Many models on a suite: corrected tests over the pairs shown, tie groups, mean ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from biobench.stats.heterogeneity import shrunken
from biobench.stats.letters import letters
from biobench.stats.moderated import moderated_p
from biobench.stats.multiplicity import holm
from biobench.stats.suite import SuiteComparison, cluster_means, compare_suite, suite_means, task_weights
from biobench.stats.types import Estimand, FloatArray, StatsInputError, SuiteScores, check_names


@dataclass(frozen=True)
class Pair:
    """One pair shown: first minus second. p_holm: the t's p, corrected over all pairs shown.

    p_moderated: the p of the t on a variance moderated by all pairs (``moderated_p``), corrected likewise; None where
    that does not apply. different: p_moderated, or p_holm where there is none, is at most alpha, and nothing forbids to
    speak of tasks like these as a whole.
    """

    first: str
    second: str
    comparison: SuiteComparison
    p_holm: float | None
    different: bool
    p_moderated: float | None = None


@dataclass(frozen=True)
class Standing:
    """score: mean of cluster means; task_mean: plain mean over tasks; both in the unit of the scores.

    rank: 1 is best, ties share the best. mean_rank: ranks within tasks (ties averaged), mean of cluster
    means. ties: letters, shared by models that were not told apart; None unless all pairs were tested.
    shrunken: the score drawn to the others' mean as far as its own seeds leave it uncertain; None below four models or
    where some task has one seed.
    """

    model: str
    score: float
    task_mean: float
    rank: int
    mean_rank: float
    ties: str | None
    shrunken: float | None = None


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
    owners = clusters if clusters is not None else tasks
    return gather_pairs(scores, labels, compared, clusters=owners, alpha=alpha, resolution=resolution)


def gather_pairs(
    scores: Sequence[SuiteScores],
    names: Sequence[str],
    compared: Mapping[tuple[str, str], SuiteComparison],
    *,
    clusters: Sequence[str] | None = None,
    alpha: float = 0.05,
    resolution: float = 0.0,
    unspoken: Collection[tuple[str, str]] = (),
) -> ManyComparison:
    """Several models of which pairs were compared, each on the seeds that its two share.

    scores: models, tasks, seeds, for the standings. compared: (first, second) -> their comparison on these tasks
    at level 1 - alpha; the corrections count these pairs. resolution: as in ``mean_test``. unspoken: pairs of which
    nothing is said about tasks like these as a whole, because the parts of the suite disagree; they stay untold.
    """
    labels = check_names(names, len(scores), "model")
    place = {name: index for index, name in enumerate(labels)}
    means = [suite_means(model) for model in scores]
    _check_pairs(list(compared), place)
    corrected = holm([one.test.p for one in compared.values()])
    complete = {frozenset(pair) for pair in compared} == {frozenset(pair) for pair in combinations(labels, 2)}
    complete &= all(p is not None for p in corrected)
    moderated = _moderated(list(compared.values()), len(labels), resolution) if complete else None
    results = tuple(
        Pair(a, b, one, p, decided is not None and decided <= alpha and (a, b) not in unspoken, q)
        for ((a, b), one), p, q in zip(compared.items(), corrected, moderated or (None,) * len(corrected), strict=True)
        for decided in [p if q is None else q]
    )
    owners = check_names(clusters, means[0].size, "task")
    notes = [] if complete else ["tie groups need all pairs tested"]
    apart = [(place[p.first], place[p.second]) for p in results if p.different] if complete else None
    standings = _standings(labels, np.array(means), owners, apart, _errors(scores, owners))
    return ManyComparison(standings, results, alpha, Estimand.TASKS_LIKE_THESE, tuple(notes))


def _moderated(compared: Sequence[SuiteComparison], models: int, resolution: float) -> tuple[float | None, ...] | None:
    """Holm-corrected p of all pairs with moderated variances, none below what the noise of these tasks gives."""
    moderated = moderated_p([one.cluster_differences for one in compared], models, resolution)
    if moderated is None:
        return None
    own_p = [one.within_p for one in compared]
    return holm([p if q is None else max(p, q) for p, q in zip(moderated, own_p, strict=True)])


def _errors(scores: Sequence[SuiteScores], owners: Sequence[str]) -> FloatArray | None:
    """Variance of each model's suite score over seeds, (models,); None where some task has one seed."""
    if any(len(task) < 2 for model in scores for task in model):
        return None
    weights = task_weights(owners)
    return np.array([sum(w**2 * np.var(x, ddof=1) / len(x) for w, x in zip(weights, m, strict=True)) for m in scores])


def task_ranks(means: FloatArray) -> FloatArray:
    """Ranks of the models within each task, (models, tasks): 1 is best, ties share their mean rank."""
    # equal scores must tie whatever the order in which their seeds were added
    rounded = np.round(means, 9)
    above = (rounded[None] > rounded[:, None]).sum(axis=1)
    level = (rounded[None] == rounded[:, None]).sum(axis=1)
    ranks: FloatArray = above + (level + 1) / 2
    return ranks


def _standings(
    labels: Sequence[str],
    means: FloatArray,
    owners: Sequence[str],
    apart: list[tuple[int, int]] | None,
    errors: FloatArray | None,
) -> tuple[Standing, ...]:
    score = np.array([cluster_means(row, owners)[1].mean() for row in means])
    mean_rank = np.array([cluster_means(row, owners)[1].mean() for row in task_ranks(means)])
    rounded = np.round(score, 9)
    rank = 1 + (rounded[None] > rounded[:, None]).sum(axis=1)
    order = sorted(range(len(labels)), key=lambda i: (rank[i], labels[i]))
    position = {model: index for index, model in enumerate(order)}
    ties: tuple[str | None, ...] = (None,) * len(labels)
    if apart is not None:
        ties = letters(len(labels), [(position[i], position[j]) for i, j in apart])
    drawn = shrunken(score, errors) if errors is not None and len(labels) > 3 else None
    return tuple(
        Standing(
            labels[i],
            float(score[i]),
            float(means[i].mean()),
            int(rank[i]),
            float(mean_rank[i]),
            ties[position[i]],
            None if drawn is None else float(drawn[i]),
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
