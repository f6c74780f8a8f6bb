"""What `biobench report` writes: the table in every form, or a row a run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from biobench.cli.console.arguments import check_known
from biobench.cli.console.output import write_text
from biobench.data.catalog import SUITES, load_task
from biobench.data.suite import load_suite, suite_hint, suite_names
from biobench.errors import UsageError
from biobench.reporting import printers
from biobench.reporting.curve import as_rows, as_text, curves_of
from biobench.reporting.escape import plain
from biobench.reporting.frame import Report
from biobench.reporting.frames import COLUMNS, model_names, tidy
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName
from biobench.reporting.sheets import percent
from biobench.schema.kind import get_metric
from biobench.schema.suite import SuiteSpec

DATA_FORMATS = ("csv", "json")
"""Formats that a program reads."""
MOST_IN_SHORT = 3
"""Tasks of an only own model that are repeated below the notes."""


@dataclass(frozen=True)
class Filters:
    """What a report is narrowed to; an empty list narrows nothing."""

    tasks: list[str]
    suites: list[str]
    sources: list[str]
    models: list[str]

    def arguments(self) -> dict[str, Any]:
        """As `build` and `tidy` take them."""
        return {name: values or None for name, values in vars(self).items()}


def check_format(format: printers.Format, rows: Mapping[str, bool], *, curve: bool) -> None:
    """Raise UsageError for what the format cannot hold. rows: options that ask for rows of runs."""
    if curve and format not in ("table", "json"):
        raise UsageError(f"--curve has no place in a {format}", hint="use --format table or json")
    for option, is_chosen in rows.items():
        if is_chosen and format not in DATA_FORMATS:
            raise UsageError(
                f"{option} has no place in a {format}", hint="add --format csv or --format json"
            )


def _is_file(name: str) -> bool:
    """Whether a task or suite is named by its YAML file."""
    return name.endswith((".yaml", ".yml"))


def own_specs(tasks: Sequence[str]) -> dict[str, str]:
    """Task id to the file of a spec that is not shipped."""
    return {load_task(name).id: name for name in filter(_is_file, tasks)}


def declared_suite(suites: Sequence[str]) -> SuiteSpec | None:
    """The suite that a name or a file declares; None where suites are folders of tasks. Raises
    UsageError where others are asked for beside it.
    """
    folders = (*SUITES, "all")
    declared = [s for s in suites if s not in folders and (s in suite_names() or _is_file(s))]
    if not declared:
        return None
    if len(suites) > 1:
        raise UsageError(f"--suite {declared[0]} has a report of its own", hint="give it alone")
    return load_suite(declared[0])


def check_filters(filters: Filters, results: Results, declared: SuiteSpec | None) -> None:
    """Raise UsageError for a task, suite or model that the results do not have."""
    check_known(filters.tasks, results.infos, "--task")
    if declared is None:
        suites = {*suite_names(), *(info.suite for info in results.infos.values())} - {"all"}
        for name in filters.suites:
            if name not in suites:
                raise UsageError(f"--suite '{name}' is not known", hint=suite_hint(name, suites))
    if filters.models:
        check_known(filters.models, model_names(results), "--model")


def _groups(results: Results) -> list[RunGroup]:
    """What was run or submitted, shown or not."""
    return [*results.groups, *(refusal.group for refusal in results.refusals)]


def rows_of_runs(
    filters: Filters, results: Results, format: printers.Format, **options: Any
) -> str:
    """A row a run and metric, as CSV or JSON. options: as of `tidy`."""
    rows = tidy(results, **filters.arguments(), **options)
    return printers.as_csv(COLUMNS, rows) if format == "csv" else printers.as_json(rows)


def curves_text(
    filters: Filters, results: Results, average: AverageName, format: printers.Format
) -> str:
    """The learning curves of the tasks, drawn or as JSON. Raises UsageError where there is none."""
    drawn, rows = [], []
    for task in filters.tasks or tasks_with_runs(results):
        curves = curves_of(results, task, average)
        if filters.models:
            curves = [curve for curve in curves if curve.model in filters.models]
        if curves:
            drawn.append(as_text(curves))
            rows += as_rows(curves)
    if not drawn:
        raise UsageError(
            "no model was run on two fractions of a task's training documents",
            hint="biobench run MODEL --task T --fractions 0.1,0.2,0.5,1",
        )
    return printers.as_json(rows) if format in DATA_FORMATS else "\n".join(drawn)


def tasks_with_runs(results: Results) -> list[str]:
    """The tasks that were run or submitted; where none was, everything published is on show."""
    return list(dict.fromkeys(group.task for group in _groups(results)))


def shown_filters(filters: Filters, results: Results, format: printers.Format) -> Filters:
    """The filters; where people read and nothing is asked for, the tasks that were run."""
    if any(vars(filters).values()) or format in DATA_FORMATS:
        return filters
    return replace(filters, tasks=tasks_with_runs(results))


def more_published(filters: Filters, results: Results) -> str:
    """A line on the published values that the filters leave out."""
    if not filters.tasks or filters.sources:
        return ""
    tasks_shown = {results.infos[task].published_as for task in filters.tasks}
    further = {value.task for value in results.published} - tasks_shown
    if not further:
        return ""
    return (
        f"* published values of {len(further)} more tasks: `biobench report --source published`\n"
    )


def no_runs(filters: Filters, results: Results) -> str:
    """A line where nothing was run, so that nobody takes published rows for runs."""
    if filters.sources or tasks_with_runs(results):
        return ""
    return "* no runs are in this folder: `biobench run MODEL --task gad` makes some\n"


def in_short(table: Report) -> str:
    """The scores of the only own model, task by task, over the best baseline and the best published
    score; empty where there are more models, too many tasks for the foot of a screen, or runs on a
    part of the data, which are compared with none.
    """
    own = [row for row in table.rows if row.source == "run"]
    if len({row.line for row in own}) != 1 or len(own) > MOST_IN_SHORT:
        return ""
    lines = []
    for row in own:
        compared = {row.name: percent(row)}
        for source in ("baseline", "published"):
            others = [r for r in table.rows if (r.source, r.task) == (source, row.task)]
            if others:
                leader = max(others, key=attrgetter("mean"))
                compared[f"best {source}: {leader.name}"] = percent(leader)
        if len(compared) == 1 or row.partial:
            continue
        lines.append(f"{row.task} in short ({get_metric(row.metric).words}, in percent):")
        width = max(map(len, compared.values()))
        for name, score in compared.items():
            lines.append(f"  {score:<{width}}   {name}")
    return "".join(f"{plain(line)}\n" for line in lines)


def write_table(
    table: Report,
    format: printers.Format,
    output: Path | None,
    *,
    notes: bool = False,
    below: str = "",
) -> None:
    """The table in its form. notes: every note in full. below: a last line of the plain table."""
    if format != "table":
        write_text(printers.render(table, format), output)
    elif output is None and sys.stdout.isatty():
        printers.print_table(table, notes=notes)
        sys.stdout.write(below)
    else:
        write_text(printers.to_text(table, notes=notes) + below, output)
