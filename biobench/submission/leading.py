"""The one rule about what no file can show: a submission that would lead waits for a run that a
maintainer makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from statistics import fmean
from typing import NamedTuple

from biobench.core.grouped import grouped
from biobench.reporting.literature.published import load_published
from biobench.reporting.tasks import shipped
from biobench.schema.kind import traits_of
from biobench.schema.record import RunRecord
from biobench.store import Brief

NEAR_ORACLE = 0.01
"""Copied gold comes this close to the oracle's score; few honest models do."""


class Leading(NamedTuple):
    """Runs of one submission on one task under one set of conditions, and what they would lead."""

    task: str
    task_hash: str
    """Of the spec with the overrides of the runs."""
    track: str
    what: str


def by_conditions(records: Iterable[RunRecord]) -> dict[tuple[str, str, str], list[RunRecord]]:
    """The runs of each (task, hash of its spec with overrides, track), in their order."""
    return grouped(records, lambda record: (record.task.id, record.task.hash, record.track))


def leading(records: Sequence[RunRecord], earlier: Iterable[Brief] | None) -> list[Leading]:
    """Where the mean over seeds lies above the best published value, above every other model's
    mean, or within a point of what is possible. The first model on a task leads it.

    earlier: runs of the results folder, of which those on the same tasks and data count; None: no
    folder was named, so nobody can be led. Rivals are all runs but those of the same name and the
    same weights: of those under the same conditions, or where there are none, under any. Each
    average by which the board
    ranks the task counts.
    """
    rivals = None if earlier is None else _rivals(records, earlier)
    leads = []
    for (task, spec, track), runs in by_conditions(records).items():
        compared = None if rivals is None else _compared(rivals, runs[0])
        led = _led(runs, compared)
        if led:
            leads.append(Leading(task, spec, track, led))
    return leads


def _rivals(records: Sequence[RunRecord], earlier: Iterable[Brief]) -> list[Brief]:
    """The earlier runs of other models on the same data."""
    own_models = set()
    tested = set()
    for record in records:
        own_models.add((record.model.id, record.model.hash))
        tested.add((record.task.id, record.task.data_hash))
    rivals = []
    for run in earlier:
        is_own = (run.model, run.weights) in own_models
        is_tested = (run.task, run.data) in tested
        if is_tested and not is_own and run.origin == "run" and run.split == "test":
            rivals.append(run)
    return rivals


def _compared(rivals: Sequence[Brief], run: RunRecord) -> list[list[Brief]]:
    """The rivals on a run's task, one list a model: those under its conditions, or where there are
    none, under any.
    """
    of_task = grouped(rivals, lambda rival: rival.task).get(run.task.id, [])
    of_conditions = grouped(of_task, lambda rival: (rival.spec, rival.track))
    compared = of_conditions.get((run.task.hash, run.track), of_task)
    by_model = grouped(
        compared, lambda rival: (rival.spec, rival.track, rival.model, rival.weights)
    )
    return list(by_model.values())


def _led(runs: Sequence[RunRecord], rivals: Sequence[Sequence[Brief]] | None) -> str:
    """What these runs would lead on their task, in words; empty where nothing."""
    task = runs[0].task
    macro = _mean(runs, "macro_f1")
    for metric in dict.fromkeys((task.paper, task.primary, "micro_f1")):
        mean = _mean(runs, metric)
        passed = " and ".join(_passed(runs, rivals, metric))
        if not passed:
            continue
        number = f"mean {metric} {100 * mean:.2f} of {len(runs)} seeds"
        if metric != "macro_f1" and macro > -inf:
            number += f" (macro_f1 {100 * macro:.2f})"
        return f"{number} {passed}"
    return ""


def _passed(
    runs: Sequence[RunRecord], rivals: Sequence[Sequence[Brief]] | None, metric: str
) -> Iterator[str]:
    """What a mean passes, in words; nothing where a run lacks the score."""
    mean = _mean(runs, metric)
    if mean == -inf:
        return
    published = _published(runs[0].task.id, metric)
    if mean > published:
        yield f"lies above the best published ({100 * published:.2f})"
    if rivals is not None:
        best = max((_mean(rival, metric) for rival in rivals), default=-inf)
        if best == -inf:
            yield "is the first on this task"
        elif mean > best:
            yield f"lies above every other run here ({100 * best:.2f})"
    if mean >= _possible(runs, metric) - NEAR_ORACLE:
        yield "is within a point of what is possible"


def _possible(runs: Sequence[RunRecord], metric: str) -> float:
    """The score of the oracle: 1, or what the window leaves of the gold spans of a document."""
    if not traits_of(runs[0].task.type).spans:
        return 1.0
    return min(run.windows.ceiling.get(metric, 1.0) for run in runs)


def _mean(runs: Sequence[RunRecord | Brief], metric: str) -> float:
    return fmean(run.scores.get(metric, -inf) for run in runs)


def _published(task: str, metric: str) -> float:
    """The best published value; infinite where there is none, as of a task of one's own."""
    info = shipped().get(task)
    if info is None:
        return inf
    of_task = [value for value in load_published() if value.task == info.published_as]
    comparable = [value.value for value in of_task if value.comparable == metric]
    return max(comparable, default=inf)
