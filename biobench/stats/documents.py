"""Other test sets: the noise of one model's score, and of the difference of two.

Groups of documents (files, patients) are left out one at a time, the same ones for all models and
seeds; tasks of a corpus that share documents leave them out together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from biobench.stats.counts import Average, Counts, f1_scores
from biobench.stats.jackknife import interaction_variance, jackknife_se, leave_one_out
from biobench.stats.types import (
    LEVEL,
    Estimand,
    FloatArray,
    Interval,
    Part,
    StatsInputError,
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

    @cached_property
    def change(self) -> FloatArray:
        """How far the mean over seeds moves without each group, (groups,)."""
        moved: FloatArray = self.without.mean(axis=1) - self.full.mean()
        return moved

    @cached_property
    def interaction(self) -> float:
        """Variance of the mean over seeds that seeds and documents both hold."""
        return interaction_variance(self.without)


def left_out(counts: Counts, average: Average, *, groups: Sequence[str]) -> LeftOut:
    """The scores of the runs in ``counts`` without each of its groups.

    groups: an id per group, in the order of the counts. Raises StatsInputError where they do not
    fit the counts.
    """
    if len(groups) != counts.n_groups or len(set(groups)) != len(groups):
        raise StatsInputError(
            f"{len(groups)} group ids ({len(set(groups))} distinct) for {counts.n_groups} groups",
            hint="give each group of documents one id, in the order of the counts",
        )
    return LeftOut(
        full=f1_scores(counts, average),
        without=leave_one_out(counts, average),
        groups=tuple(groups),
    )


@dataclass(frozen=True)
class DocumentNoise:
    """Variance, over other test sets, of a mean over the tasks of one corpus.

    part: in squared units of the scores, and groups - 1 degrees of freedom. in_seeds: what of the
    variance the variance over seeds holds too.
    """

    part: Part
    in_seeds: float


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
    return DocumentNoise((se**2, len(groups) - 1.0), in_seeds)


def document_interval(counts: Counts, average: Average) -> Interval | None:
    """The 95% interval of the mean score over the runs in ``counts`` for another test set of this
    size from the same source: a t on the logit scale, so that it stays in [0, 1] and is the longer
    on the side of one half.

    Nominal coverage from about 50 groups and twenty errors on, a little wide below and with rare
    labels. None for one group. A score that no group changes (a perfect one) has an interval of no
    width.
    """
    score = float(f1_scores(counts, average).mean())
    groups = counts.n_groups
    if groups == 1:
        return None
    se = jackknife_se(leave_one_out(counts, average).mean(axis=1))
    if is_zero(se, 0.0):
        return Interval(score, score, LEVEL, "no variation", Estimand.NEW_DOCUMENTS)
    half = float(special.stdtrit(groups - 1, (1 + LEVEL) / 2)) * se / (score * (1 - score))
    centre = special.logit(score)
    return Interval(
        low=float(special.expit(centre - half)),
        high=float(special.expit(centre + half)),
        level=LEVEL,
        method="t on the standard error of the logit",
        estimand=Estimand.NEW_DOCUMENTS,
    )
