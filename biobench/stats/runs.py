"""Counts of several models on the tasks of a suite, with the corpora that tie tasks together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.stats.counts import Average, Counts, check_average, evaluated_labels
from biobench.stats.types import BoolArray, StatsInputError


@dataclass(frozen=True)
class TaskRuns:
    """One task: the counts of each model on it (in the suite's order of models).

    cluster: the corpus; tasks of one corpus are one cluster. groups: an id per group of documents, by
    which tasks of a cluster that share documents are resampled together; None means shared with nobody.
    paired_seeds: seed i of one model goes with seed i of the others (same head, same data order).
    """

    task: str
    cluster: str
    models: tuple[Counts, ...]
    average: Average
    evaluated: BoolArray
    groups: tuple[str, ...] | None
    paired_seeds: bool
    resolution: float = 0.0
    """The step of the scores (see ``mean_test``): seeds that agree to less agree by chance."""

    @classmethod
    def of(
        cls,
        task: str,
        models: Sequence[Counts],
        average: Average,
        *,
        cluster: str | None = None,
        groups: Sequence[str] | None = None,
        evaluated: ArrayLike | None = None,
        paired_seeds: bool = True,
        resolution: float = 0.0,
    ) -> TaskRuns:
        """Checked runs: one test split for all models, one id a group, equal seeds where they pair."""
        if not models:
            raise StatsInputError(f"{task}: no model", hint="give the counts of at least one model")
        first = models[0]
        for index, counts in enumerate(models):
            if counts.gold.shape != first.gold.shape or (counts.gold != first.gold).any():
                raise StatsInputError(
                    f"{task}: model {index + 1} was scored on other gold than model 1",
                    hint="compare runs of the same task version and data only",
                )
            if paired_seeds and counts.n_seeds != first.n_seeds:
                raise StatsInputError(
                    f"{task}: model {index + 1} has {counts.n_seeds} seeds, model 1 has {first.n_seeds}",
                    hint="keep the seeds both have, or say paired_seeds=False",
                )
        if groups is not None and (len(groups) != first.n_groups or len(set(groups)) != len(groups)):
            raise StatsInputError(
                f"{task}: {len(groups)} group ids ({len(set(groups))} distinct) for {first.n_groups} groups",
                hint="give each group of documents one id, in the order of the counts",
            )
        return cls(
            task=task,
            cluster=task if cluster is None else cluster,
            models=tuple(models),
            average=check_average(average),
            evaluated=evaluated_labels(first, evaluated),
            groups=None if groups is None else tuple(groups),
            paired_seeds=paired_seeds,
            resolution=resolution,
        )


def by_cluster(tasks: Iterable[TaskRuns]) -> Iterator[list[TaskRuns]]:
    """The tasks, one cluster at a time, so that an iterator's counts need not all be in memory.

    Raises StatsInputError where the tasks of a cluster do not follow each other.
    """
    done: set[str] = set()
    current: list[TaskRuns] = []
    for task in tasks:
        if current and task.cluster != current[0].cluster:
            done.add(current[0].cluster)
            yield current
            current = []
        if task.cluster in done:
            raise StatsInputError(
                f"{task.task}: cluster {task.cluster!r} came up before other clusters already",
                hint="sort the tasks by cluster",
            )
        current.append(task)
    if current:
        yield current


def shared_groups(tasks: Sequence[TaskRuns]) -> tuple[int, list[NDArray[np.int64]]]:
    """How many distinct groups a cluster has, and where each task's groups stand among them."""
    places: dict[tuple[str, str | int], int] = {}
    rows = []
    for task in tasks:
        keys: list[tuple[str, str | int]]
        if task.groups is None:
            keys = [(task.task, index) for index in range(task.models[0].n_groups)]
        else:
            keys = [("", group) for group in task.groups]
        rows.append(np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.int64))
    return len(places), rows
