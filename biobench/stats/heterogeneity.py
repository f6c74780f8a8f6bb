"""Whether one number speaks for all corpora: parts that differ, and corpora that carry the result alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from biobench.stats.means import mean_test
from biobench.stats.types import Estimand, FloatArray, StatsInputError, as_values


@dataclass(frozen=True)
class Interaction:
    """How a difference varies over parts of the suite (languages, kinds of task).

    parts: name -> mean difference over its corpora. p: of "all parts have the same mean", by the F test of a one-way
    analysis of variance over corpora; None where a part too few leaves nothing to test.
    """

    parts: dict[str, float]
    corpora: dict[str, int]
    p: float | None


def interaction_of(differences: Sequence[float], parts: Sequence[str]) -> Interaction:
    """One-way analysis of variance of corpus differences; needs two parts and two corpora more than parts."""
    d = as_values(differences, "differences of corpora")
    if len(parts) != d.size:
        raise StatsInputError(f"{len(parts)} parts for {d.size} corpora", hint="give one part for each corpus")
    groups = {name: d[[part == name for part in parts]] for name in dict.fromkeys(parts)}
    p = None
    if len(groups) > 1 and d.size >= len(groups) + 2:
        within = sum(float(((g - g.mean()) ** 2).sum()) for g in groups.values())
        p = float(scipy.stats.f_oneway(*groups.values()).pvalue) if within > 0 else None
    return Interaction({k: float(g.mean()) for k, g in groups.items()}, {k: g.size for k, g in groups.items()}, p)


def without_each(differences: Sequence[float], resolution: float = 0.0) -> tuple[float | None, ...]:
    """The p of the t over the other corpora, for each corpus left out; None below three corpora."""
    d = as_values(differences, "differences of corpora")
    if d.size < 3:
        return (None,) * d.size
    rest = [np.delete(d, place) for place in range(d.size)]
    return tuple(mean_test(r, estimand=Estimand.TASKS_LIKE_THESE, resolution=resolution).p for r in rest)


def variance_shares(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Each task's share of the variance over models of the weighted mean, (tasks,); they add up to 1.

    values: (models, tasks) mean scores. weights: (tasks,) of each task in the mean. The share is the covariance of
    the task's weighted score with the mean, over the variance of the mean; negative where a task pulls against it.
    All zero where the means do not vary.
    """
    parts = (values - values.mean(axis=0)) * weights
    total = parts.sum(axis=1)
    variance = float(total @ total)
    shares: FloatArray = parts.T @ total / variance if variance > 0 else np.zeros(values.shape[1])
    return shares


def shrunken(scores: FloatArray, variances: FloatArray) -> FloatArray:
    """Scores of several models drawn to their mean by how much of their spread is noise, (models,).

    Efron and Morris 1973: each model's own variance (of its score's error) against the variance between models, by
    moments, with the correction (k - 3) / (k - 1) for estimating it; the highest score is expected to be lucky, and
    falls most where it is least certain. As they are for fewer than four models.
    """
    k = scores.size
    if k < 4:
        return scores.copy()
    between = max(0.0, float(scores.var(ddof=1)) - float(variances.mean()))
    keep = 1 - (k - 3) / (k - 1) * variances / np.maximum(between + variances, 1e-300)
    result: FloatArray = scores.mean() + keep * (scores - scores.mean())
    return result
