"""What is exported of a model: its full runs, task by task."""

from __future__ import annotations

from dataclasses import dataclass

from biobench.errors import UsageError
from biobench.report.entrants import find_entrants
from biobench.report.groups import RunGroup
from biobench.report.rows import AverageName, Row
from biobench.report.table import Results, build
from biobench.report.tasks import TaskInfo

AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted")


@dataclass(frozen=True, slots=True)
class Result:
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
        repos = {s.hub.repo for s in self.info.spec.all_sources if s.id in used and s.hub is not None}
        return repos.pop() if len(repos) == 1 else None


def model_results(held: Results, model: str) -> list[Result]:
    """The full runs of a model (as the report names it, with or without its revision, or its folder), in the
    order of the catalogue. Raises UsageError where there are none."""
    entrant = find_entrants([model], held)[0]
    if entrant.is_published:
        raise UsageError(
            f"'{entrant.label}' has no runs here, its scores are published ones", hint="export models that were run"
        )
    groups = {task: [g for g in members if not g.variant] for task, members in entrant.groups.items()}
    full = {task: members[0] for task, members in groups.items() if members}
    if not full:
        raise UsageError(
            f"'{entrant.label}' has only limited or overridden runs", hint="run it in full; only such runs are exported"
        )
    rows: dict[str, list[Row]] = {}
    for average in AVERAGES:
        for row in build(held, average, models=[entrant.model], sources=[entrant.source]).rows:
            if not row.variant:
                rows.setdefault(row.task, []).append(row)
    found = [
        Result(info, full[task], tuple(rows[task]))
        for task, info in held.infos.items()
        if task in full and len(rows.get(task, ())) == len(AVERAGES)
    ]
    if not found:
        raise UsageError(f"the records of '{entrant.label}' have no scores", hint="run `biobench rescore`")
    return found
