"""The scores that are compared: one model on one task, and two models on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from biobench.errors import UsageError
from biobench.reporting.evidence import LEAST_SEEDS, Evidence, seed_noise
from biobench.reporting.groups import RunGroup
from biobench.reporting.guessing import TaskScores
from biobench.reporting.tasks import TaskInfo
from biobench.stats import LeftOut, Part, TaskNoise, splits_part

COUNTS = ("no seeds", "one seed", "two seeds")
"""What a model has too little of, in words."""


@dataclass(frozen=True, slots=True)
class Cell(TaskScores):
    """One model on one task.

    scores: fractions, one a seed; of a published model its printed mean alone. group: its runs.
    printed: the published value; one of the two is there.
    """

    seeds: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """Over the seeds, exactly the same in whichever order they come."""
        return math.fsum(self.scores) / len(self.scores)

    @property
    def seed_noise(self) -> tuple[Part, ...] | None:
        """Variance of the mean over seeds, as parts; None where it is unknown, empty where seeds
        play no part.
        """
        return seed_noise(self.scores, self.group, self.printed)

    @property
    def is_untrained(self) -> bool:
        """Whether seeds play no part on this side."""
        return self.group is not None and self.group.is_untrained

    def on_splits(self, seeds: Sequence[int]) -> Cell:
        """With the scores of these seeds alone; a printed score stays as it is."""
        if self.group is None:
            return self
        score_of = dict(zip(self.seeds, self.scores, strict=True))
        return replace(self, scores=tuple(map(score_of.__getitem__, seeds)), seeds=tuple(seeds))

    @property
    def lack(self) -> str:
        """What it has where the spread over seeds is unknown: ``two seeds``; empty where it is
        known or plays no part.
        """
        if self.seed_noise is not None:
            return ""
        if self.group is not None:
            return COUNTS[len(self.scores)]
        if self.printed is not None and self.printed.sd is not None:
            return "a printed spread over fewer than three seeds"
        return "a printed mean without spread"


@dataclass(frozen=True, slots=True)
class PairedTask:
    """Two models on one task.

    Seeds are independent, so all of both sides count. Splits of one corpus pair: both sides have
    the same ones (`on_common_splits`). documents: the scores of both sides without each group of
    documents; None where they are unknown, for the reason in `unread`.
    """

    sides: tuple[Cell, Cell]
    documents: tuple[LeftOut, LeftOut] | None = None
    unread: str = ""

    @property
    def info(self) -> TaskInfo:
        """The task."""
        return self.sides[0].info

    @property
    def difference(self) -> float:
        """First minus second mean, a fraction."""
        return self.sides[0].mean - self.sides[1].mean

    @property
    def is_printed(self) -> bool:
        """Whether a side is known from print alone."""
        return len(self.groups) < 2

    @property
    def groups(self) -> list[RunGroup]:
        """The runs of the sides that have some."""
        return [side.group for side in self.sides if side.group is not None]

    @property
    def unit(self) -> float:
        """The coarsest step of their scores."""
        return max((group.unit for group in self.groups), default=0.0)

    @property
    def ratio(self) -> float:
        """Test to training documents where the runs are several splits of one corpus, else 0."""
        return max((group.ratio for group in self.groups), default=0.0)

    @property
    def lacks(self) -> list[str]:
        """What keeps the difference over seeds from being tested, of each side; empty where nothing
        does. A printed score is tested over seeds alone, so a side without seeds keeps it from it.
        """
        lacks = []
        for side in self.sides:
            if self.is_printed and side.is_untrained:
                lacks.append(COUNTS[0])
            else:
                lacks.append(side.lack)
        return lacks

    @property
    def seed_noise(self) -> tuple[Part, ...] | None:
        """Variance of the difference over seeds (Welch); None where a side's is unknown."""
        variances: list[Part] = []
        for side, lack in zip(self.sides, self.lacks, strict=True):
            if lack or side.seed_noise is None:
                return None
            variances += side.seed_noise
        return tuple(variances)

    @property
    def noise(self) -> TaskNoise:
        """What the difference varies by."""
        if self.ratio:
            return TaskNoise(self.info.corpus, None, None, splits=self.splits_noise)
        return TaskNoise(self.info.corpus, self.seed_noise, self.documents)

    @property
    def splits_noise(self) -> Part | None:
        """Variance of the difference over splits; None without splits that both sides have, and for
        fewer than three.
        """
        if not self.ratio or self.is_printed or len(self.sides[0].scores) < LEAST_SEEDS:
            return None
        differences = np.subtract(self.sides[0].scores, self.sides[1].scores)
        return splits_part(differences, self.ratio, resolution=self.unit)


def paired_task(sides: tuple[Cell, Cell], evidence: Evidence) -> PairedTask:
    """Two models on one task, with what stored predictions say of both."""
    documents = []
    for cell in sides:
        if cell.group is None:
            return PairedTask(sides, unread="a printed score has no predictions")
        left_out = evidence.left_out(cell.group, cell.metric)
        if isinstance(left_out, str):
            return PairedTask(sides, unread=left_out)
        documents.append(left_out)
    groups = documents[0].groups
    if documents[1].groups != groups:
        reason = "the models were scored on other documents; repeat the runs"
        return PairedTask(sides, unread=reason)
    if len(groups) < 2:
        return PairedTask(sides, unread="one group of documents")
    return PairedTask(sides, (documents[0], documents[1]))


def on_common_splits(cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """One task's cells by model, with the splits alone that all models have where its runs are
    several splits of one corpus: on others no order of the models would be just.

    Raises UsageError where they share none.
    """
    groups = [cell.group for cell in cells.values() if cell.group is not None]
    if not any(group.folds for group in groups):
        return dict(cells)
    shared = set.intersection(*(set(group.seeds) for group in groups))
    if not shared:
        raise UsageError(
            "the models have no split in common",
            hint="run all on all splits; several splits are never independent",
        )
    return {label: cell.on_splits(sorted(shared)) for label, cell in cells.items()}
