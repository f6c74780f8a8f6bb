"""The one rule about what no file can show: a submission that would lead waits for a run that a
maintainer makes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from statistics import fmean
from typing import NamedTuple

from biobench.report.literature.published import load_published
from biobench.report.tasks import shipped
from biobench.schema.record import RunRecord


class Leading(NamedTuple):
    """Runs of one submission on one task under one set of conditions, and what they would lead."""

    task: str
    task_hash: str
    """Of the spec with the overrides of the runs."""
    track: str
    what: str


def by_conditions(records: Iterable[RunRecord]) -> dict[tuple[str, str, str], list[RunRecord]]:
    """The runs of each (task, hash of its spec with overrides, track), in their order."""
    groups: dict[tuple[str, str, str], list[RunRecord]] = defaultdict(list)
    for record in records:
        groups[record.task.id, record.task.hash, record.track].append(record)
    return groups


def leading(records: Sequence[RunRecord], earlier: Iterable[RunRecord]) -> list[Leading]:
    """Where the mean over seeds lies above the best published value, or above every other model's
    mean.

    earlier: runs of the results folder on the same tasks and data. Other models are those that ran
    under the same conditions, or where none did, under any. Each average by which the board ranks
    the task counts.
    """
    rivals: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    names = {record.model.id for record in records}
    for record in earlier:
        if record.model.id not in names and (record.origin, record.split) == ("run", "test"):
            rivals[
                record.task.id, record.task.hash, record.track, record.model.id, record.model.hash
            ].append(record)
    leads = []
    for (task, spec, track), runs in by_conditions(records).items():
        others = [key for key in rivals if key[0] == task]
        others = [key for key in others if key[1:3] == (spec, track)] or others
        for metric in dict.fromkeys((runs[0].task.primary, runs[0].task.paper, "micro_f1")):
            means = [mean for key in others if (mean := _mean(rivals[key], metric)) > -inf]
            bars = {
                "every other model": max(means, default=inf),
                "the best published": _published(task, metric),
            }
            mean = _mean(runs, metric)
            passed = [f"{name} ({100 * bar:.2f})" for name, bar in bars.items() if mean > bar]
            if passed:
                what = (
                    f"mean {metric} {100 * mean:.2f} of {len(runs)} seeds lies above "
                    f"{' and '.join(passed)}"
                )
                leads.append(Leading(task, spec, track, what))
                break
    return leads


def _mean(runs: Sequence[RunRecord], metric: str) -> float:
    return fmean(r.scores.get(metric, -inf) for r in runs)


def _published(task: str, metric: str) -> float:
    info = shipped().get(task)  # of a task of one's own no paper has a value
    values = [
        v.value
        for v in load_published()
        if info and (v.task, v.comparable) == (info.published_as, metric)
    ]
    return max(values, default=inf)
