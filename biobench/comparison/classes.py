"""Two models class by class: which labels a difference of averages comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biobench.report.entrants import Entrant
from biobench.report.groups import RunGroup
from biobench.stats import compare_seeds


@dataclass(frozen=True, slots=True)
class ClassLine:
    """One label. first, second: mean F1 over seeds; difference: first minus second. All fractions (0-1).

    support: gold in the test split. low, high: 95% interval over seeds on this test set, for this label alone
    (nothing is corrected for their number); None where the seeds do not give one.
    """

    label: str
    support: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None


def comparable_groups(first: Entrant, second: Entrant, task: str) -> tuple[RunGroup, RunGroup] | None:
    """The runs of both on one state of the task and its data; None where either has no such runs."""
    sides: list[Sequence[RunGroup]] = [first.groups.get(task, ()), second.groups.get(task, ())]
    return next(((a, b) for a in sides[0] for b in sides[1] if _state(a) == _state(b)), None)


def _state(group: RunGroup) -> tuple[str, str, int | None, str]:
    brief = group.briefs[0]
    return brief.spec, brief.data, brief.limit, brief.track


def class_differences(first: RunGroup, second: RunGroup) -> list[ClassLine]:
    """The labels that both sides scored, the largest differences first.

    Seeds pair where both sides ran the same ones. Raises StoreError where a record is gone or damaged.
    """
    a, b = first.records, second.records
    paired = first.seeds == second.seeds
    lines = []
    for label in a[0].task.labels:
        mine, other = ([r.per_label[label] for r in side if label in r.per_label] for side in (a, b))
        if len(mine) < len(a) or len(other) < len(b):
            continue  # not every run has a score of it
        scores = [row["f1"] for row in mine], [row["f1"] for row in other]
        test = compare_seeds(*scores, paired=paired)
        # equal scores of one seed each say nothing of others
        interval = test.interval if min(len(mine), len(other)) > 1 else None
        lines.append(
            ClassLine(
                label=label,
                support=int(mine[0]["support"]),
                first=sum(scores[0]) / len(mine),
                second=sum(scores[1]) / len(other),
                difference=test.estimate,
                low=None if interval is None else float(interval.low),
                high=None if interval is None else float(interval.high),
            )
        )
    return sorted(lines, key=lambda line: -abs(line.difference))
