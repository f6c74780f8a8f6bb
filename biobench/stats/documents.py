"""Other test sets: the noise of one model's score, and of the difference of two.

Groups of documents (files, patients) are left out one at a time, the same ones for all models and
seeds; tasks of a corpus that share documents leave them out together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from biobench.stats.counts import Average, Counts, check_average, evaluated_labels, f1_scores
from biobench.stats.jackknife import interaction_variance, jackknife_se, leave_one_out
from biobench.stats.types import (
    Estimand,
    FloatArray,
    Interval,
    Part,
    StatsInputError,
    check_level,
    is_zero,
)

UNMOVED = 2.0
"""Standard error, in groups, where no group moves the score: 2 / groups. Its interval at 95% is
what a sign test and the rule of three leave possible: all of 5 documents may be chance, all of 6
are not; of 500 equal answers up to 0.8% may still differ.
"""


@dataclass(frozen=True)
class LeftOut:
    """One model's scores on one task, in full and with each group of documents left out.

    full: (seeds,), on the whole test split. without: (groups, seeds). groups: the id of each group,
    by which tasks of a corpus know what they share.
    """

    full: FloatArray
    without: FloatArray
    groups: tuple[str, ...]

    def of(self, seeds: Sequence[int]) -> LeftOut:
        """These seeds alone, by their positions."""
        chosen = list(seeds)
        return LeftOut(self.full[chosen], self.without[:, chosen], self.groups)

    @cached_property
    def change(self) -> FloatArray:
        """How far the mean over seeds moves without each group, (groups,)."""
        moved: FloatArray = self.without.mean(axis=1) - self.full.mean()
        return moved

    @cached_property
    def interaction(self) -> float:
        """Variance of the mean over seeds that seeds and documents both hold."""
        return interaction_variance(self.without)


def left_out(
    counts: Counts,
    average: Average,
    *,
    groups: Sequence[str],
    evaluated: ArrayLike | None = None,
) -> LeftOut:
    """The scores of the runs in ``counts`` without each of its groups.

    groups: an id per group, in the order of the counts. Raises StatsInputError where they do not
    fit the counts.
    """
    if len(groups) != counts.n_groups or len(set(groups)) != len(groups):
        raise StatsInputError(
            f"{len(groups)} group ids ({len(set(groups))} distinct) for {counts.n_groups} groups",
            hint="give each group of documents one id, in the order of the counts",
        )
    average = check_average(average)
    mask = evaluated_labels(counts, evaluated)
    return LeftOut(
        full=f1_scores(counts, average, mask),
        without=leave_one_out(counts, average, mask),
        groups=tuple(groups),
    )


@dataclass(frozen=True)
class DocumentNoise:
    """Variance, over other test sets, of a mean over the tasks of one corpus.

    variance: in squared units of the scores. df: groups - 1. in_seeds: the part of the variance
    that the variance over seeds holds too.
    """

    variance: float
    df: float
    in_seeds: float

    @property
    def part(self) -> Part:
        """Variance and degrees of freedom."""
        return self.variance, self.df


def document_noise(
    first: Sequence[LeftOut], second: Sequence[LeftOut] | None = None
) -> DocumentNoise | None:
    """Noise of one model's mean over the tasks of a corpus, or of its difference to a second model.

    first, second: a model's scores, one entry a task, the tasks in the same order. None for a
    single group of documents. Raises StatsInputError where two models were scored on other
    documents. Groups that all agree are no certainty (`UNMOVED`).
    """
    sides = [list(first)] if second is None else [list(first), list(second)]
    for tasks in zip(*sides, strict=True):
        if any(side.groups != tasks[0].groups for side in tasks):
            raise StatsInputError(
                "the models were scored on other documents", hint="repeat the runs"
            )
    groups = tuple(dict.fromkeys(group for task in first for group in task.groups))
    if len(groups) < 2:
        return None
    position = {group: index for index, group in enumerate(groups)}
    count = len(first)
    changes = np.zeros(len(groups))
    in_seeds = 0.0
    for sign, tasks_of_side in zip((1.0, -1.0), sides, strict=False):
        for task in tasks_of_side:
            changes[[position[group] for group in task.groups]] += sign * task.change / count
            in_seeds += task.interaction / count**2
    se = jackknife_se(changes)
    if is_zero(se, 0.0):
        se = UNMOVED / len(groups)
    return DocumentNoise(se**2, len(groups) - 1.0, in_seeds)


@dataclass(frozen=True)
class DocumentSummary:
    """What another test set of the same size would do to the score (the mean over these seeds).

    score, se: fractions. interval: t with groups - 1 degrees of freedom, on the logit scale, so
    that it stays in [0, 1] and is the longer on the side of one half.
    """

    score: float
    se: float | None
    interval: Interval | None
    n_groups: int
    note: str | None


def document_interval(
    counts: Counts,
    average: Average,
    *,
    evaluated: ArrayLike | None = None,
    level: float = 0.95,
) -> DocumentSummary:
    """Test-set noise of the mean score over the runs in ``counts``, one group left out at a time.

    Estimand: the expected score of these runs on another test set of this size from the same
    source. Nominal coverage from about 50 groups and twenty errors on, a little wide below and with
    rare labels. One group: no interval. A score that no group changes (a perfect one) has an
    interval of no width and a note with the rule of three (3 / groups).
    """
    check_level(level)
    score, groups = float(f1_scores(counts, average, evaluated).mean()), counts.n_groups
    if groups == 1:
        note = "one group of documents: nothing to leave out"
        return DocumentSummary(score, None, None, groups, note)
    se = jackknife_se(leave_one_out(counts, average, evaluated).mean(axis=1))
    if is_zero(se, 0.0):
        note = f"no group changes the score; up to {3 / groups:.1%} of documents could still do so"
        interval = Interval(score, score, level, "no variation", Estimand.NEW_DOCUMENTS)
        return DocumentSummary(score, se, interval, groups, note)
    half = float(special.stdtrit(groups - 1, (1 + level) / 2)) * se / (score * (1 - score))
    centre = special.logit(score)
    interval = Interval(
        low=float(special.expit(centre - half)),
        high=float(special.expit(centre + half)),
        level=level,
        method="t on the standard error of the logit",
        estimand=Estimand.NEW_DOCUMENTS,
    )
    return DocumentSummary(score, se, interval, groups, None)
