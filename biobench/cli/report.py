"""`biobench report`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict, get_args

import typer

from biobench.cli.console.arguments import (
    Averaging,
    DataDir,
    Output,
    StoredResults,
    Tasks,
    check_known,
    several,
)
from biobench.cli.console.output import write_output
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.report.results import Results
    from biobench.schema.suite import SuiteSpec

SOURCES = ("published", "run", "frozen", "external", "submitted", "baseline", "oracle")


class _Filters(TypedDict):
    """The rows and columns that are asked for; None: all."""

    tasks: list[str] | None
    suites: list[str] | None
    sources: list[str] | None
    models: list[str] | None


def report(
    *,
    format_: Annotated[
        Literal["table", "md", "csv", "latex", "json", "html"],
        typer.Option("--format", help="Form of the table."),
    ] = "table",
    average: Averaging = "paper",
    task: Tasks = [],  # noqa: B006
    suite: Annotated[
        list[str],
        typer.Option("--suite", help="fr, en, needle; or alone blurb, drbenchmark, a YAML file."),
    ] = [],  # noqa: B006
    source: Annotated[
        list[str],
        typer.Option("--source", callback=several, help=f"Only these rows: {', '.join(SOURCES)}."),
    ] = [],  # noqa: B006
    model: Annotated[list[str], typer.Option("--model", help="Only this model; repeatable.")] = [],  # noqa: B006
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Average incomplete suites too.")
    ] = False,
    notes: Annotated[bool, typer.Option("--notes", help="table: every note in full.")] = False,
    seeds: Annotated[
        bool, typer.Option("--per-seed", help="csv, json: a row a run and metric.")
    ] = False,
    labels: Annotated[
        bool, typer.Option("--per-label", help="As --per-seed, with each label's scores.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="As --per-seed, with ECE, Brier score, AUROC and AUPRC."
        ),
    ] = False,
    data_dir: DataDir = None,
    results_dir: StoredResults = "results",
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """The results table: own runs with their intervals first, then the published scores of the same
    tasks.
    """
    if as_json:
        format_ = "json"
    check_known(source, SOURCES, "--source")
    per_run = {"--per-seed": seeds, "--per-label": labels, "--probabilities": probabilities}
    is_per_run = any(per_run.values())
    if is_per_run and format_ not in ("csv", "json"):
        option = next(option for option, chosen in per_run.items() if chosen)
        raise UsageError(
            f"{option} has no place in a {format_}", hint="add --format csv or --format json"
        )
    from biobench.data.catalog import load_task
    from biobench.report import printers
    from biobench.report.frame import build
    from biobench.report.frames import COLUMNS, tidy
    from biobench.report.results import load
    from biobench.report.suite import build_suite

    results = load(results_dir)
    specs = {load_task(name).id: name for name in task if _is_file(name)}
    task = [*specs, *(name for name in task if name not in specs.values())]
    check_known(task, results.infos, "--task")
    declared = _declared_suite(results, suite)
    _check_models(results, model)
    filters = _Filters(
        tasks=task or None, suites=suite or None, sources=source or None, models=model or None
    )
    if is_per_run:
        rows = tidy(
            results,
            labels=labels,
            probabilities=probabilities,
            data_dir=data_dir,
            specs=specs,
            **filters,
        )
        _write(
            printers.as_csv(COLUMNS, rows) if format_ == "csv" else printers.as_json(rows), output
        )
        return
    elsewhere = ""
    if declared is not None:
        shown = build_suite(results, declared, suite[0], incomplete=incomplete)
    else:
        if format_ not in ("csv", "json") and not any(filters.values()):
            filters["tasks"] = _tasks_with_runs(results)
        shown = build(results, average, **filters, incomplete=incomplete)
        if filters["tasks"] is not None and not source:
            elsewhere = _published_elsewhere(results, filters["tasks"])
    if format_ != "table":
        _write(printers.render(shown, format_), output)
    elif output is None and sys.stdout.isatty():
        printers.print_table(shown, notes=notes)
        sys.stdout.write(elsewhere)
    else:
        _write(printers.to_text(shown, notes=notes) + elsewhere, output)


def _is_file(name: str) -> bool:
    """Whether a task or suite is named by its YAML file, not by an id."""
    return name.endswith((".yaml", ".yml"))


def _declared_suite(results: Results, suites: list[str]) -> SuiteSpec | None:
    """The suite with a report of its own; None where `suites` filter the rows of the usual one.

    Raises UsageError for an unknown suite, and for a declared one beside others.
    """
    from biobench.data.catalog import SUITES
    from biobench.data.suite import load_suite, suite_names

    name = next((name for name in suites if name in suite_names() or _is_file(name)), None)
    declared = None if name is None or name == "all" else load_suite(name)
    if declared is None:
        shipped_suites = {info.suite for info in results.infos.values()}
        check_known(suites, {*SUITES, *shipped_suites}, "--suite")
    elif len(suites) > 1:
        raise UsageError(f"--suite {name} has a report of its own", hint="give it alone")
    return declared


def _check_models(results: Results, models: list[str]) -> None:
    """Raises UsageError for a model without a row, whatever the average, and without a run."""
    from biobench.report.frame import cells
    from biobench.report.row import AverageName

    if not models:
        return
    names = {group.model for group in results.groups}
    names.update(refusal.group.model for refusal in results.refusals)
    for average in get_args(AverageName):
        names.update(row.model for row in cells(results, average).rows)
    check_known(models, names, "--model")


def _tasks_with_runs(results: Results) -> list[str] | None:
    """The tasks that were run or submitted; where none was, everything published is on show."""
    tasks = [group.task for group in results.groups]
    tasks += [refusal.group.task for refusal in results.refusals]
    return list(dict.fromkeys(tasks)) or None


def _published_elsewhere(results: Results, tasks: list[str]) -> str:
    """A line on the published values of other tasks; empty where there are none."""
    others = {value.task for value in results.published}
    others -= {results.infos[task].published_as for task in tasks}
    if not others:
        return ""
    return f"* published values of {len(others)} more tasks: `biobench report --source published`\n"


def _write(text: str, output: Path | None) -> None:
    """To the file, else to stdout."""
    if output is not None:
        write_output(output, text)
        return
    if sys.stdout.isatty():
        # CSV carries names whole, and a terminal must take no part of them for a command
        text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", text)
    sys.stdout.write(text)
