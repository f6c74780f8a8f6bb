"""What `biobench report` writes: the table in every form, or a row a run."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from biobench.cli.console.arguments import check_known
from biobench.cli.console.output import write_output
from biobench.data.catalog import SUITES, load_task
from biobench.data.suite import load_suite, suite_names
from biobench.errors import UsageError
from biobench.report import printers
from biobench.report.curve import as_rows, as_text, curves_of
from biobench.report.frame import Report, build, cells
from biobench.report.frames import COLUMNS, tidy
from biobench.report.results import Results, load
from biobench.report.row import AverageName
from biobench.report.slices import sliced
from biobench.report.suite import build_suite
from biobench.schema.suite import SuiteSpec


@dataclass(frozen=True, slots=True)
class Filters:
    """What a report is narrowed to; an empty list narrows nothing."""

    tasks: list[str]
    suites: list[str]
    sources: list[str]
    models: list[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left out."""
        return not (self.tasks or self.suites or self.sources or self.models)

    def arguments(self) -> dict[str, Any]:
        """As `build` and `tidy` take them."""
        named = {
            "tasks": self.tasks,
            "suites": self.suites,
            "sources": self.sources,
            "models": self.models,
        }
        return {name: values or None for name, values in named.items()}


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """The options of the command. per_seed, per_label, probabilities: a row a run and metric in
    place of the table.
    """

    format: printers.Format
    average: AverageName
    filters: Filters
    slice: str | None
    incomplete: bool
    all_notes: bool
    all_runs: bool
    curve: bool
    per_seed: bool
    per_label: bool
    probabilities: bool
    data_dir: str | None

    @property
    def has_rows_of_runs(self) -> bool:
        """Whether runs have rows of their own."""
        return self.per_seed or self.per_label or self.probabilities

    @property
    def is_data(self) -> bool:
        """Whether a program reads the answer."""
        return self.format in ("csv", "json")

    def check(self) -> None:
        """Raise UsageError where rows of runs are asked for in a form that has none."""
        options = {
            "--per-seed": self.per_seed,
            "--per-label": self.per_label,
            "--probabilities": self.probabilities,
        }
        if self.curve and self.format not in ("table", "json"):
            raise UsageError(
                f"--curve has no place in a {self.format}", hint="use --format table or json"
            )
        for option, is_chosen in options.items():
            if is_chosen and not self.is_data:
                raise UsageError(
                    f"{option} has no place in a {self.format}",
                    hint="add --format csv or --format json",
                )


def write_report(request: ReportRequest, results_dir: str, output: Path | None) -> None:
    """Write the answer to a file, or to stdout.

    Raises UsageError for what the results do not have.
    """
    request.check()
    results = load(results_dir)
    if request.slice is not None:
        results = sliced(results, request.slice)
        request = replace(request, incomplete=True)
    specs = own_specs(request.filters.tasks)
    shipped = [task for task in request.filters.tasks if task not in specs.values()]
    filters = replace(request.filters, tasks=[*specs, *shipped])
    declared = declared_suite(filters.suites)
    check_filters(filters, results, declared)
    if request.curve:
        write_text(curves_text(request, filters, results), output)
        return
    if request.has_rows_of_runs:
        write_text(rows_of_runs(request, filters, results, specs), output)
        return
    if declared is not None:
        table, below = (
            build_suite(results, declared, filters.suites[0], incomplete=request.incomplete),
            "",
        )
    else:
        if filters.is_empty and not request.is_data:
            filters = replace(filters, tasks=tasks_with_runs(results))
        table = build(
            results, request.average, **filters.arguments(), incomplete=request.incomplete
        )
        below = more_published(filters, results)
    write_table(table, below, request, output)


def own_specs(tasks: Sequence[str]) -> dict[str, str]:
    """Task id to the file of a spec that is not shipped."""
    return {load_task(name).id: name for name in tasks if name.endswith((".yaml", ".yml"))}


def declared_suite(suites: Sequence[str]) -> SuiteSpec | None:
    """The suite that a name or a file declares. Raises UsageError where others are asked for beside
    it.
    """
    declared = [s for s in suites if s in suite_names() or s.endswith((".yaml", ".yml"))]
    if not declared or declared[0] == "all":
        return None
    if len(suites) > 1:
        raise UsageError(f"--suite {declared[0]} has a report of its own", hint="give it alone")
    return load_suite(declared[0])


def check_filters(filters: Filters, results: Results, declared: SuiteSpec | None) -> None:
    """Raise UsageError for a task, suite or model that the results do not have."""
    check_known(filters.tasks, results.infos, "--task")
    if declared is None:
        suites = {*SUITES, *(info.suite for info in results.infos.values())}
        check_known(filters.suites, suites, "--suite")
    if filters.models:
        averages = get_args(AverageName)
        in_tables = {row.model for name in averages for row in cells(results, name).rows}
        groups = (*results.groups, *(refusal.group for refusal in results.refusals))
        check_known(filters.models, in_tables | {group.model for group in groups}, "--model")


def rows_of_runs(
    request: ReportRequest, filters: Filters, results: Results, specs: dict[str, str]
) -> str:
    """A row a run and metric, as CSV or JSON."""
    rows = tidy(
        results,
        labels=request.per_label,
        probabilities=request.probabilities,
        data_dir=request.data_dir,
        specs=specs,
        **filters.arguments(),
    )
    return printers.as_csv(COLUMNS, rows) if request.format == "csv" else printers.as_json(rows)


def curves_text(request: ReportRequest, filters: Filters, results: Results) -> str:
    """The learning curves of the tasks, drawn or as JSON. Raises UsageError where there is none."""
    drawn, rows = [], []
    for task in filters.tasks or tasks_with_runs(results):
        curves = curves_of(results, task, request.average)
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
    return printers.as_json(rows) if request.is_data else "\n".join(drawn)


def tasks_with_runs(results: Results) -> list[str]:
    """The tasks that were run or submitted; where none was, everything published is on show."""
    groups = (*results.groups, *(refusal.group for refusal in results.refusals))
    return list(dict.fromkeys(group.task for group in groups))


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


def write_table(table: Report, below: str, request: ReportRequest, output: Path | None) -> None:
    """The table in its form. below: a last line of the plain table."""
    if request.format != "table":
        write_text(printers.render(table, request.format), output)
    elif output is None and sys.stdout.isatty():
        printers.print_table(table, notes=request.all_notes, folded=not request.all_runs)
        sys.stdout.write(below)
    else:
        text = printers.to_text(table, notes=request.all_notes, folded=not request.all_runs)
        write_text(text + below, output)


def write_text(text: str, output: Path | None) -> None:
    """To a file, or to stdout, where a terminal must take no part of a name for a command."""
    if output is not None:
        write_output(output, text)
        return
    if sys.stdout.isatty():
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", text)
    sys.stdout.write(text)
