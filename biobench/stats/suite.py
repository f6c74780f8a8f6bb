"""A mean over several tasks: on these tasks, and on tasks like these.

Runs on different tasks are independent, so variances add up, with Welch-Satterthwaite degrees of
freedom.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from biobench.stats.answer import Answer, Noise
from biobench.stats.documents import DocumentNoise, LeftOut, document_noise
from biobench.stats.types import Estimand, FloatArray, Part

#: Differences closer to zero than this come from float subtraction, not from the scores.
TOUCH = 1e-9


@dataclass(frozen=True)
class TaskNoise:
    """What one model's score on a task, or the difference of two models' scores, varies by.

    seeds: parts (variance, degrees of freedom) that add up; None where unknown, empty where nothing
    varies over seeds (a model without training). documents: the scores without each group of
    documents, one entry a model; None where unknown. splits: where the runs are several splits of
    one corpus, which vary seed and test documents at once; the other two are then not looked at.
    """

    corpus: str
    seeds: tuple[Part, ...] | None
    documents: tuple[LeftOut, ...] | None
    splits: Part | None = None


@dataclass(frozen=True)
class Variances:
    """What a mean over tasks varies by, as parts (variance, degrees of freedom) that add up.

    seeds, documents: None where unknown, empty where nothing of the kind varies. in_both: variance
    that seeds and documents both hold. splits: parts of tasks with several splits.
    """

    seeds: tuple[Part, ...] | None
    documents: tuple[Part, ...] | None
    in_both: float = 0.0
    splits: tuple[Part, ...] = ()


def task_weights(clusters: Sequence[str]) -> FloatArray:
    """Weight of each task in the mean over corpora of their tasks' means, (tasks,).

    clusters: the corpus of each task. The weights add up to 1.
    """
    sizes = Counter(clusters)
    return np.array([1 / (len(sizes) * sizes[label]) for label in clusters])


def mean_variances(tasks: Sequence[TaskNoise], weights: FloatArray) -> Variances:
    """The noises of a mean over tasks. weights: of each task in it, (tasks,).

    Tasks of a corpus share documents, so theirs are left out together.
    """
    splits: list[Part] = []
    # one task whose noise is unknown leaves that of the mean unknown
    seeds: list[Part] | None = []
    by_corpus: dict[str, list[tuple[TaskNoise, float]]] = {}
    for task, weight in zip(tasks, weights.tolist(), strict=True):
        if task.splits is not None:
            splits.append(_scaled(task.splits, weight))
            continue
        by_corpus.setdefault(task.corpus, []).append((task, weight))
        if task.seeds is None:
            seeds = None
        elif seeds is not None:
            seeds += [_scaled(part, weight) for part in task.seeds]
    documents, in_both = _document_parts(by_corpus.values())
    return Variances(
        seeds=None if seeds is None else tuple(seeds),
        documents=documents,
        in_both=in_both,
        splits=tuple(splits),
    )


def _document_parts(
    corpora: Iterable[Sequence[tuple[TaskNoise, float]]],
) -> tuple[tuple[Part, ...] | None, float]:
    """Variance over other documents of each corpus (its tasks, weighted), and what of it the
    variance over seeds holds too. None where it is unknown for one of them.
    """
    documents: list[Part] = []
    in_both = 0.0
    for weighted_tasks in corpora:
        noise = _corpus_noise([task for task, _ in weighted_tasks])
        if noise is None:
            return None, 0.0
        share = math.fsum(weight for _, weight in weighted_tasks)
        documents.append(_scaled(noise.part, share))
        in_both += share**2 * noise.in_seeds
    return tuple(documents), in_both


def _corpus_noise(tasks: Sequence[TaskNoise]) -> DocumentNoise | None:
    """Over other documents of these tasks of one corpus; None where it is unknown, as for a single
    group of documents, which tells nothing of others.
    """
    models: list[tuple[LeftOut, ...]] = []
    for task in tasks:
        if task.documents is None or len(task.documents[0].groups) < 2:
            return None
        models.append(task.documents)
    return document_noise(*zip(*models, strict=True))


def _scaled(part: Part, weight: float) -> Part:
    variance, df = part
    return weight**2 * variance, df


def these_tasks(estimate: float, variances: Variances) -> Answer | None:
    """A mean over tasks that are held fixed: other seeds, other test documents, both together.

    None where neither kind of noise is known.
    """
    noises = []
    if variances.seeds is not None:
        noises.append(_noise("seeds", [*variances.seeds, *variances.splits]))
    if variances.documents is not None:
        noises.append(_noise("documents", [*variances.documents, *variances.splits]))
    if not noises:
        return None
    if variances.seeds is None:
        return Answer(estimate, tuple(noises), Estimand.THESE_RUNS)
    if variances.documents is None:
        return Answer(estimate, tuple(noises), Estimand.THESE_TEST_SETS)
    parts = [*variances.seeds, *variances.documents, *variances.splits]
    # sampling noise in what is taken off must not bring the sum below one of the two alone
    least = max(noise.se**2 for noise in noises)
    both = _noise("seeds and documents", parts, taken_off=variances.in_both, least=least)
    return Answer(estimate, (*noises, both), Estimand.THESE_TASKS)


def tasks_like_these(
    differences: FloatArray, clusters: Sequence[str], within: Answer, *, resolution: float = 0.0
) -> Answer | None:
    """The same mean over other corpora: the t over the means of corpora, and all noises of
    ``within``.

    differences: (tasks,). clusters: the corpus of each task. within: the answer about these tasks;
    the wider question is subject to its noises too. resolution: the step of the scores; the spread
    over corpora is never taken below the rounding of a difference, resolution / sqrt(6). None for
    one corpus.
    """
    settled = np.where(np.abs(differences) < TOUCH, 0.0, differences)
    means = cluster_means(settled, clusters)
    if means.size < 2:
        return None
    spread = max(float(means.std(ddof=1)), resolution / math.sqrt(6))
    corpora = Noise("corpora", spread / math.sqrt(means.size), means.size - 1.0)
    return Answer(within.estimate, (*within.noises, corpora), Estimand.TASKS_LIKE_THESE)


def cluster_means(values: FloatArray, clusters: Sequence[str]) -> FloatArray:
    """The mean of ``values`` (tasks,) in each cluster, in order of first appearance."""
    owners = np.array(list(clusters))
    return np.array([values[owners == label].mean() for label in dict.fromkeys(clusters)])


def _noise(
    name: str, parts: Sequence[Part], *, taken_off: float = 0.0, least: float = 0.0
) -> Noise:
    """All parts together, less the variance ``taken_off`` that two of them hold.

    Degrees of freedom: Welch-Satterthwaite's 2 V^2 / Var(V), where V is the variance that is used
    and Var(V) the error of all parts. least: what the variance is never taken below.
    """
    variance = max(math.fsum(part for part, _ in parts) - taken_off, least)
    error = math.fsum(part**2 / df for part, df in parts if part > 0)
    df = variance**2 / error if error > 0 else math.inf
    return Noise(name, math.sqrt(variance), df)
