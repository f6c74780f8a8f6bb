"""`biobench report`."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from biobench.cli.console.common import DataDir, Output, ResultsDir, check_results_dir, several, write_output
from biobench.errors import UsageError
from biobench.schema.strict import suggest

if TYPE_CHECKING:
    from biobench.report.row import AverageName
    from biobench.schema.suite import SuiteSpec

AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted", "paper")
SOURCES = ("published", "run", "frozen", "external", "submitted", "baseline", "oracle")
OLD_SOURCES = {"outside": "external", "floor": "baseline", "ceiling": "oracle"}
"""Words of earlier versions."""
FORMATS = ("table", "md", "csv", "latex", "json", "html")
ALL = "all"
"""`--average all`: a row for each of macro, micro and weighted."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report)


def report(
    context: typer.Context,
    *,
    format_: Annotated[str, typer.Option("--format", help="table, md, csv, latex, json or html.")] = "table",
    average: Annotated[
        str | None,
        typer.Option(
            "--average",
            help="macro, micro, weighted or paper (default: macro; paper without runs); csv and json: all.",
        ),
    ] = None,
    task: Annotated[
        list[str], typer.Option("--task", callback=several, help="Only this task: an id or a YAML path; repeatable.")
    ] = [],  # noqa: B006
    suite: Annotated[
        list[str],
        typer.Option(
            "--suite",
            help="fr, en, needle; or one with its own scores and mean: blurb, drbenchmark, a YAML file.",
        ),
    ] = [],  # noqa: B006
    source: Annotated[
        list[str],
        typer.Option("--source", callback=several, help=f"Only these rows: {', '.join(SOURCES)}."),
    ] = [],  # noqa: B006
    model: Annotated[list[str], typer.Option("--model", help="Only this model; repeatable.")] = [],  # noqa: B006
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Average incomplete suites too.")] = False,
    notes: Annotated[bool, typer.Option("--notes", help="table: every note in full.")] = False,
    experiments: Annotated[
        bool, typer.Option("--experiments", help="table: published tables beyond the tasks (needle, layers).")
    ] = False,
    seeds: Annotated[bool, typer.Option("--per-seed", help="csv, json: a row a run and metric.")] = False,
    labels: Annotated[bool, typer.Option("--per-label", help="As --per-seed, with each label's scores.")] = False,
    slices: Annotated[
        bool,
        typer.Option("--slices", help="Calibration, and scores by length, label and what training has shown."),
    ] = False,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """The results table: own runs with their intervals first, then the published scores of the same tasks."""
    format_ = "json" if as_json else format_
    check_results_dir(context, results_dir)
    _check([] if average is None else [average], [*AVERAGES, ALL], "--average")
    source = [OLD_SOURCES.get(name, name) for name in source]
    _check(source, SOURCES, "--source")
    if format_ not in FORMATS:
        raise UsageError(f"unknown format '{format_}'", hint=suggest(format_, FORMATS))
    if format_ not in ("csv", "json"):
        for chosen, option in ((average == ALL, "--average all"), (seeds, "--per-seed"), (labels, "--per-label")):
            if chosen:
                raise UsageError(f"{option} has no place in a {format_}", hint="add --format csv or --format json")
    if slices and format_ not in ("table", "json", "csv"):
        raise UsageError(f"--slices has no form in {format_}", hint="use --format table, json or csv")
    from biobench.data.catalog import SUITES, load_task
    from biobench.report import printers
    from biobench.report.frame import build, cells
    from biobench.report.results import first_average, load

    results = load(results_dir)
    task = [load_task(name).id if name.endswith((".yaml", ".yml")) else name for name in task]
    _check(task, results.infos, "--task")
    declared = _declared(suite)
    if declared is None:
        _check(suite, {*SUITES, *(info.suite for info in results.infos.values())}, "--suite")
    if model:
        rows = [row.model for name in AVERAGES for row in cells(results, name).rows]
        groups = (*results.groups, *(refusal.group for refusal in results.refusals))
        _check(model, {*rows, *(group.model for group in groups)}, "--model")
    filters: dict[str, Any] = {"tasks": task or None, "suites": suite or None}
    filters |= {"sources": source or None, "models": model or None}
    if slices:
        from biobench.report.details import slices as sliced

        values, lines = sliced.slices(results, data_dir, tasks=filters["tasks"], models=filters["models"])
        _put(sliced.as_table(values) if format_ == "table" else _data(format_, sliced.COLUMNS, values), output)
        for line in lines:
            typer.echo(line, err=True)
        return
    if seeds or labels:
        from biobench.report.frames import COLUMNS, tidy

        _put(_data(format_, COLUMNS, tidy(results, labels=labels, **filters)), output)
        return
    below = ""
    if declared is not None:
        from biobench.report.suite import build_suite

        shown = build_suite(results, declared, suite[0], incomplete=incomplete)
    else:
        if format_ not in ("csv", "json") and not any(filters.values()):
            # the tasks that were run or submitted; where none was, everything published is on show
            ran = dict.fromkeys(g.task for g in (*results.groups, *(r.group for r in results.refusals)))
            filters["tasks"] = list(ran) or None
        names = ["macro", "micro", "weighted"] if average == ALL else [average or first_average(results)]
        built = [build(results, cast("AverageName", n), **filters, incomplete=incomplete) for n in names]
        shown = replace(
            built[0],
            rows=tuple(row for one in built for row in one.rows),
            averages=tuple(row for one in built for row in one.averages),
        )
        if filters["tasks"] is not None and not source:
            others = {v.task for v in results.published} - {results.infos[t].published_as for t in filters["tasks"]}
            more = f"* published values of {len(others)} more tasks: `biobench report --source published`\n"
            below = more if others else ""
    if format_ != "table":
        _put(printers.render(shown, format_), output)
        return
    if experiments and not shown.experiments:
        shown = replace(shown, experiments=results.experiments)
    if output is None and sys.stdout.isatty():
        printers.print_table(shown, notes=notes, experiments=experiments)
        sys.stdout.write(below)
    else:
        _put(printers.to_text(shown, notes=notes, experiments=experiments) + below, output)


def _declared(names: list[str]) -> SuiteSpec | None:
    """The declared suite that is asked for; None where suites are folders of tasks or none is named."""
    from biobench.data.catalog import SUITES
    from biobench.data.suite import load_suite, suite_names

    for name in names:
        if name in suite_names() or name.endswith((".yaml", ".yml")):
            declared = load_suite(name) if name not in (*SUITES, "all") else None
            if declared is not None and len(names) > 1:
                raise UsageError(f"--suite {name} has a report of its own", hint="give it alone")
            if declared is not None:
                return declared
    return None


def _data(format_: str, columns: Sequence[str], rows: list[dict[str, Any]]) -> str:
    from biobench.report.printers import as_csv, as_json

    return as_csv(columns, rows) if format_ == "csv" else as_json(rows)


def _put(text: str, output: Path | None) -> None:
    if output is None:
        # CSV carries names whole, and a terminal must take no part of them for a command
        command = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
        sys.stdout.write(re.sub(command, "\ufffd", text) if sys.stdout.isatty() else text)
    else:
        write_output(output, text)


def _check(values: Iterable[str], allowed: Collection[str], option: str) -> None:
    """Raises UsageError for the first value that is not among `allowed`."""
    for value in values:
        if value not in allowed:
            from biobench.report.escape import plain

            hint = suggest(value, [plain(name) for name in allowed])
            raise UsageError(f"{option} '{plain(value)}' is not known", hint=hint)
