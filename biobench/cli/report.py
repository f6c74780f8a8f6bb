"""`biobench report`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from biobench.cli.console.common import DataDir, Output, ResultsDir, check_results_dir, several, write_output
from biobench.errors import UsageError
from biobench.schema.strict import suggest

if TYPE_CHECKING:
    from biobench.report.frame import Report
    from biobench.report.results import Results
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
    from biobench.data.catalog import SUITES, load_task
    from biobench.report.frame import build
    from biobench.report.printers import render
    from biobench.report.results import first_average, load

    results = load(results_dir)
    task = [load_task(name).id if name.endswith((".yaml", ".yml")) else name for name in task]
    _check(task, results.infos, "--task")
    declared = _declared(suite)
    if declared is not None:
        from biobench.report.suite import build_suite

        built_suite = build_suite(results, declared, suite[0], incomplete=incomplete)
        if format_ == "table":
            nothing: dict[str, list[str] | None] = {"tasks": None, "sources": None}
            _print(results, built_suite, filters=nothing, notes=notes, experiments=experiments, output=output)
        else:
            _put(render(built_suite, format_), output)
        return
    _check(suite, {*SUITES, *(info.suite for info in results.infos.values())}, "--suite")
    if model:
        _check(model, _models(results), "--model")
    if slices:
        if format_ not in ("table", "json", "csv"):
            raise UsageError(f"--slices has no form in {format_}", hint="use --format table, json or csv")
        _slices(results, data_dir, _some(task), _some(model), format_, output)
        return
    filters: dict[str, Any] = {
        "tasks": _some(task),
        "suites": _some(suite),
        "sources": _some(source),
        "models": _some(model),
    }
    if seeds or labels:
        from biobench.report import printers
        from biobench.report.frames import COLUMNS, tidy

        rows = tidy(results, labels=labels, **filters)
        _put(printers.as_csv(COLUMNS, rows) if format_ == "csv" else printers.as_json(rows), output)
        return
    if format_ not in ("csv", "json") and not any(filters.values()):
        filters["tasks"] = tasks_with_runs(results)
    names = ["macro", "micro", "weighted"] if average == ALL else [average or first_average(results)]
    built = [build(results, cast("AverageName", n), **filters, incomplete=incomplete) for n in names]
    shown = replace(
        built[0],
        rows=tuple(row for one in built for row in one.rows),
        averages=tuple(row for one in built for row in one.averages),
    )
    if format_ != "table":
        _put(render(shown, format_), output)
        return
    _print(results, shown, filters=filters, notes=notes, experiments=experiments, output=output)


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


def _slices(
    results: Results,
    data_dir: str | None,
    tasks: list[str] | None,
    models: list[str] | None,
    format_: str,
    output: Path | None,
) -> None:
    from biobench.report.details.slices import COLUMNS, as_table, slices
    from biobench.report.printers import as_csv, as_json

    rows, notes = slices(results, data_dir, tasks=tasks, models=models)
    if format_ == "json":
        _put(as_json(rows), output)
    else:
        _put(as_csv(COLUMNS, rows) if format_ == "csv" else as_table(rows), output)
    for line in notes:
        typer.echo(line, err=True)


def tasks_with_runs(results: Results) -> list[str] | None:
    """The tasks that were run or submitted; None where nothing was: then everything published is on show."""
    return list(dict.fromkeys(group.task for group in (*results.groups, *(r.group for r in results.refusals)))) or None


def _print(
    results: Results,
    shown: Report,
    *,
    filters: dict[str, list[str] | None],
    notes: bool,
    experiments: bool,
    output: Path | None,
) -> None:
    """The table, and what of the published values it leaves out."""
    from biobench.report.printers import print_table, to_text

    if experiments and not shown.experiments:
        shown = replace(shown, experiments=results.experiments)
    note = ""
    if filters["tasks"] is not None and not filters["sources"]:
        others = {value.task for value in results.published} - {results.infos[t].published_as for t in filters["tasks"]}
        if others:
            note = f"* published values of {len(others)} more tasks: `biobench report --source published`\n"
    if output is None and sys.stdout.isatty():
        print_table(shown, notes=notes, experiments=experiments)
        sys.stdout.write(note)
    else:
        _put(to_text(shown, notes=notes, experiments=experiments) + note, output)


def _put(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
    else:
        write_output(output, text)


def _some(values: list[str]) -> list[str] | None:
    return values or None


def _models(results: Results) -> set[str]:
    """Every model with a row under some average, and those that have runs but no row."""
    from biobench.report.frame import cells

    shown = {row.model for average in AVERAGES for row in cells(results, average).rows}
    return shown | {group.model for group in (*results.groups, *(refusal.group for refusal in results.refusals))}


def _check(values: Iterable[str], allowed: Collection[str], option: str) -> None:
    """Raises UsageError for the first value that is not among `allowed`."""
    for value in values:
        if value not in allowed:
            from biobench.report.escape import plain

            hint = suggest(value, [plain(name) for name in allowed])
            raise UsageError(f"{option} '{plain(value)}' is not known", hint=hint)
