"""Two models on several tasks: on these tasks, with other seeds and test sets; and on tasks like
these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from biobench.stats.seeds import MeanTest, compare_seeds, mean_test, pooled_df, t_from_se
from biobench.stats.types import Estimand, FloatArray, Part, Samples, StatsInputError

#: Differences closer to zero than this come from float subtraction, not from the scores.
TOUCH = 1e-9


@dataclass(frozen=True)
class TheseTasks:
    """First minus second model, weighted mean over the tasks, which are held fixed.

    test: interval and p over what could vary (its estimand says what); None where neither seeds nor
    documents are known. se_seeds, se_documents: the two parts, None where unknown.
    """

    difference: float
    test: MeanTest | None
    se_seeds: float | None
    se_documents: float | None


def task_weights(clusters: Sequence[str]) -> FloatArray:
    """Of each task in the mean over corpora of their tasks' means, (tasks,); they add up to 1."""
    sizes = {label: list(clusters).count(label) for label in clusters}
    return np.array([1 / (len(sizes) * sizes[label]) for label in clusters])


def cluster_means(
    values: FloatArray, clusters: Sequence[str]
) -> tuple[tuple[str, ...], FloatArray]:
    """Clusters in order of first appearance and the mean of ``values`` (tasks,) in each."""
    labels = tuple(dict.fromkeys(clusters))
    owner = np.array([labels.index(cluster) for cluster in clusters])
    sums = np.bincount(owner, weights=values, minlength=len(labels))
    return labels, sums / np.bincount(owner, minlength=len(labels))


def these_tasks(
    first: Samples,
    second: Samples,
    *,
    weights: Sequence[float] | None = None,
    paired: Sequence[bool] | None = None,
    resolutions: Sequence[float] | None = None,
    ratios: Sequence[float] | None = None,
    documents: Sequence[Part] | None = None,
    twice: float = 0.0,
    level: float = 0.95,
) -> TheseTasks:
    """Seed and test-set noise of the mean difference; first, second: the scores over seeds of each
    task.

    weights: of each task in the mean, adding up to 1 (default: all alike). paired, resolutions,
    ratios: one a task, as in ``compare_seeds``. documents: the parts of the mean's variance over
    other test sets, each with its degrees of freedom, None where they are unknown; tasks with a
    ratio need none, as their splits redraw the test documents.
    twice: the variance that seeds and documents both hold. Runs on different tasks are independent,
    so variances add up, with Welch-Satterthwaite degrees of freedom. Raises StatsInputError where
    the tasks do not match.
    """
    count = len(first)
    if not count or len(second) != count:
        raise StatsInputError(
            f"{count} and {len(second)} tasks", hint="give both models the same tasks"
        )
    shares = [1 / count] * count if weights is None else list(weights)
    tests = [
        compare_seeds(a, b, paired=together, resolution=step, ratio=ratio)
        for a, b, together, step, ratio in zip(
            first,
            second,
            paired or [True] * count,
            resolutions or [0.0] * count,
            ratios or [0.0] * count,
            strict=True,
        )
    ]
    difference = math.fsum(share * test.estimate for share, test in zip(shares, tests, strict=True))
    parts = [test.part for test in tests]
    known = [part for part in parts if part is not None]
    seeds = (
        [(s**2 * v, df) for s, (v, df) in zip(shares, known, strict=True)]
        if len(known) == count
        else None
    )
    if seeds is None and documents is None:
        return TheseTasks(difference, None, None, None)
    variance, df = crossed([seeds or [], documents or []], twice)
    estimand = Estimand.THESE_TASKS
    if seeds is None:
        estimand = Estimand.THESE_RUNS
    elif documents is None and not (ratios and min(ratios) > 0):
        estimand = Estimand.THESE_TEST_SETS
    method = "t on variances summed over tasks"
    test = t_from_se(
        difference, math.sqrt(variance), df, n=count, estimand=estimand, level=level, method=method
    )
    se_seeds, se_documents = (
        None if p is None else math.sqrt(sum(v for v, _ in p)) for p in (seeds, documents)
    )
    return TheseTasks(difference, test, se_seeds, se_documents)


def crossed(sources: Sequence[Sequence[Part]], twice: float) -> Part:
    """Variance and degrees of freedom of all ``sources`` of noise together, ``twice`` being counted
    twice in them.

    sources: seeds and documents, each as parts (variance, df) that add up. Never less than any
    source's variance, which sampling noise in ``twice`` could otherwise bring about. The degrees of
    freedom are Welch-Satterthwaite's for the parts, lowered as the subtraction lowers the variance
    but not the error of the parts, and lowered to a source's own where that alone has the wider 95%
    interval (two seeds, whose t has a degree of freedom or two): more noise cannot make a result
    surer.
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
    return math.sqrt(variance) * float(special.stdtrit(min(df, 1e9), 0.975))


def tasks_like_these(
    differences: FloatArray,
    clusters: Sequence[str],
    within: MeanTest | None,
    *,
    level: float = 0.95,
    resolution: float = 0.0,
) -> MeanTest:
    """The t over the means of corpora of (tasks,) differences, never surer than ``within``.

    within: the test of the same difference on these tasks. The wider question has no narrower
    answer: half the interval is the larger of the two, and so is the p; se and df are those of the
    t that set the width. resolution: the step of the scores. One corpus gives neither interval nor
    p.
    """
    d = np.where(np.abs(differences) < TOUCH, 0.0, differences)
    means = cluster_means(d, clusters)[1]
    suite = mean_test(means, estimand=Estimand.TASKS_LIKE_THESE, level=level, resolution=resolution)
    if (
        suite.interval is None
        or suite.p is None
        or within is None
        or within.interval is None
        or within.p is None
    ):
        return suite
    p, half = max(suite.p, within.p), within.interval.half_width
    if half <= suite.interval.half_width:
        return replace(suite, p=p)
    method = "t on the noise of these tasks, which is wider than the t over corpora"
    low, high = suite.estimate - half, suite.estimate + half
    interval = replace(suite.interval, low=low, high=high, method=method)
    return replace(suite, se=within.se, df=within.df, p=p, interval=interval, note=None)
