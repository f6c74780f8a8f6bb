"""What is exported of a model: its full runs, task by task."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from biobench.errors import UsageError
from biobench.report.entrants import find_entrants, line_name
from biobench.report.escape import plain
from biobench.report.frame import build
from biobench.report.groups import RunGroup
from biobench.report.results import Results
from biobench.report.row import AverageName, Row
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import has_f1

AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted")


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One model on one task: its row for each average, in the order macro, micro, weighted."""

    info: TaskInfo
    group: RunGroup
    rows: tuple[Row, ...]

    @property
    def date(self) -> str:
        """When the last of the runs was started, ISO 8601."""
        return max(r.provenance.started for r in self.group.records)

    @property
    def hub_repo(self) -> str | None:
        """The dataset repository of the source that the runs read, None where it is on no hub."""
        if self.info.spec is None:
            return None
        used = {r.task.source for r in self.group.records}
        repos = {
            s.hub.repo for s in self.info.spec.all_sources if s.id in used and s.hub is not None
        }
        return repos.pop() if len(repos) == 1 else None


def model_results(results: Results, model: str) -> list[TaskResult]:
    """The full runs of a model (as the report names it, with or without its revision, or its
    folder), in the order of the catalogue. Raises UsageError where there are none.
    """
    entrant = find_entrants([model], results)[0]
    if entrant.is_published:
        what = f"'{entrant.label}' has no runs here, its scores are published ones"
        raise UsageError(what, hint="export models that were run")
    groups = [g for members in entrant.groups.values() for g in members if g.departures.whole]
    several = sorted({line_name(g.model, g.variant) for g in groups})
    if len(several) > 1:
        raise UsageError(
            f"'{entrant.label}' names {len(several)} different weights or submissions here",
            hint="name one: " + ", ".join(f"'{plain(name)}'" for name in several),
        )
    full = {g.task: g for g in groups}
    if not full:
        what = f"'{entrant.label}' has only limited or overridden runs"
        raise UsageError(what, hint="run it in full; only such runs are exported")
    rows: dict[str, list[Row]] = defaultdict(list)
    for average in AVERAGES:
        for row in build(results, average, models=[entrant.model], sources=[entrant.source]).rows:
            shown = row.task in full and row.variant == full[row.task].variant
            # kinds without F1 have one score whatever the average
            if shown and row.metric not in {r.metric for r in rows[row.task]}:
                rows[row.task].append(row)
    listed = [
        TaskResult(info, full[task], tuple(rows[task]))
        for task, info in results.infos.items()
        if task in full and len(rows[task]) == (len(AVERAGES) if has_f1(info.type) else 1)
    ]
    if not listed:
        raise UsageError(
            f"the records of '{entrant.label}' have no scores", hint="run `biobench rescore`"
        )
    return listed
