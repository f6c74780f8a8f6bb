"""What is exported of a model: its full runs, task by task."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from biobench.errors import UsageError
from biobench.reporting.entrants import Entrant, ambiguous, find_entrants, line_name
from biobench.reporting.frame import build
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName, Row
from biobench.reporting.tasks import TaskInfo
from biobench.schema.kind import has_f1

AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted")
"""Those that an F1 has besides the published one, which is often one of them."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One model on one task: its row for each average, the published one first."""

    info: TaskInfo
    group: RunGroup
    rows: tuple[Row, ...]

    def row_of(self, metric: str) -> Row | None:
        """The row of a metric; None where the task has another score."""
        return next((row for row in self.rows if row.metric == metric), None)

    @property
    def date(self) -> str:
        """When the last of the runs was started, ISO 8601."""
        return max(r.provenance.started for r in self.group.records)

    @property
    def hub_repo(self) -> str | None:
        """The dataset repository of the source that the runs read, None where it is on no hub."""
        if self.info.spec is None:
            return None
        used = {record.task.source for record in self.group.records}
        repositories = set()
        for source in self.info.spec.all_sources:
            if source.id in used and source.hub is not None:
                repositories.add(source.hub.repo)
        return repositories.pop() if len(repositories) == 1 else None


def model_results(results: Results, model: str) -> list[TaskResult]:
    """The full runs of a model (as the report names it, with or without its revision, or its
    folder), in the order of the catalogue. Raises UsageError where there are none.
    """
    entrant = find_entrants([model], results)[0]
    if entrant.is_published:
        message = f"'{entrant.label}' has no runs here, its scores are published ones"
        raise UsageError(message, hint="export models that were run")
    full_runs = _full_runs(entrant)
    rows = _rows_by_task(results, entrant, full_runs)
    exported: list[TaskResult] = []
    for task, info in results.infos.items():
        needed = len(AVERAGES) if has_f1(info.type) else 1
        if len(rows.get(task, ())) >= needed:
            exported.append(TaskResult(info, full_runs[task], tuple(rows[task])))
    if not exported:
        message = f"the records of '{entrant.label}' have no scores"
        raise UsageError(message, hint="run `biobench rescore`")
    return exported


def _full_runs(entrant: Entrant) -> dict[str, RunGroup]:
    """Task -> the model's full runs. Raises UsageError where there are none, or of several
    variants.
    """
    full_runs = []
    is_trained = False
    for of_task in entrant.groups.values():
        for group in of_task:
            is_trained |= not group.is_untrained
            if group.departures.whole:
                full_runs.append(group)
    if not is_trained:
        raise UsageError(
            f"nothing was trained here for the scores of '{entrant.label}'",
            hint="exports hold fine-tuned models: run it without --track",
        )
    if not full_runs:
        raise UsageError(
            f"'{entrant.label}' has only limited or overridden runs",
            hint="run it in full; only such runs are exported",
        )
    lines = {line_name(group.model, group.variant) for group in full_runs}
    if len(lines) > 1:
        message = f"'{entrant.label}' names {len(lines)} different weights or submissions here"
        raise ambiguous(message, lines)
    return {group.task: group for group in full_runs}


def _rows_by_task(
    results: Results, entrant: Entrant, full_runs: dict[str, RunGroup]
) -> dict[str, list[Row]]:
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    published_first: tuple[AverageName, ...] = ("paper", *AVERAGES)
    for average in published_first:
        for row in build(results, average, models=[entrant.model], sources=[entrant.source]).rows:
            if row.task in full_runs and row.variant == full_runs[row.task].variant:
                # kinds without F1 have one score whatever the average
                rows[row.task].setdefault(row.metric, row)
    return {task: list(of_task.values()) for task, of_task in rows.items()}
