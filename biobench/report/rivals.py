"""What a model's score stands against: the best and all others under the same conditions, and the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from biobench.report.frame import Report
from biobench.report.groups import Condition
from biobench.report.row import Row

Alike = tuple[Condition, tuple[int, ...]]
"""What rows share that are held against each other: the runs' condition, and the lengths that a needle run reads."""


def _conditions(report: Report) -> Callable[[Row], Sequence[Alike | None]]:
    """Under which conditions a row may be compared with others, its own first.

    Limited runs and needle runs of another window saw other documents, overridden ones another protocol; they are
    held against their like. Printed scores stand beside full runs of the shipped protocol.
    """
    conditions = {(g.model, g.variant, g.source, g.task): (g.condition, g.lengths) for g in report.groups}
    specs = {info.id: set(info.hashes.values()) for info in report.columns}
    full: dict[str, set[Alike]] = {}
    for (*_, task), condition in conditions.items():
        (spec, _, limit, track, _, split), _ = condition
        if limit is None and track == "fixed" and split == "test" and spec in specs.get(task, ()):
            full.setdefault(task, set()).add(condition)

    def alike(row: Row) -> Sequence[Alike | None]:
        condition = conditions.get((*row.line, row.task))
        shipped = full.get(row.task, set())
        if condition is None:
            return [None, *shipped]
        return [condition, None] if condition in shipped else [condition]

    return alike


class Rivals:
    """The other lines of a report under the conditions of a row."""

    def __init__(self, report: Report) -> None:
        self._alike = _conditions(report)
        self._best: dict[tuple[str, Alike | None], Row] = {}
        self.baselines: dict[str, Row] = {}
        """Task -> the best policy that does not read as an encoder does."""
        for row in report.rows:
            if row.source == "baseline":
                self.baselines[row.task] = max(self.baselines.get(row.task, row), row, key=lambda r: r.mean)
            if row.source not in ("oracle", "baseline"):
                for at in ((row.task, condition) for condition in self._alike(row)):
                    if at not in self._best or row.mean > self._best[at].mean:
                        self._best[at] = row

    def best(self, row: Row) -> Row:
        """The best score under the row's conditions, the row itself where it is that."""
        return self._best[row.task, self._alike(row)[0]]
