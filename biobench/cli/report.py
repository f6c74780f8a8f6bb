"""`biobench report`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from biobench.cli.common import ResultsDir, write_output
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.report.table import Results


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report)


def report(
    format_: Annotated[str, typer.Option("--format", help="table, md, csv, latex, json or html.")] = "table",
    average: Annotated[
        str | None,
        typer.Option("--average", help="macro, micro, weighted or paper (default: macro; paper without runs)."),
    ] = None,
    task: Annotated[list[str], typer.Option("--task", help="Only this task; repeatable.")] = [],  # noqa: B006
    suite: Annotated[list[str], typer.Option("--suite", help="Only this suite (fr, en, needle).")] = [],  # noqa: B006
    source: Annotated[
        list[str], typer.Option("--source", help="Only published, run, submitted, floor or ceiling rows.")
    ] = [],  # noqa: B006
    model: Annotated[list[str], typer.Option("--model", help="Only this model; repeatable.")] = [],  # noqa: B006
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Average incomplete suites too.")] = False,
    results_dir: ResultsDir = "results",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file, not to stdout.")] = None,
) -> None:
    """The results table: own runs with their intervals beside the published scores."""
    from biobench.data.catalog import SUITES
    from biobench.report.groups import Source
    from biobench.report.render import print_table, render
    from biobench.report.rows import AverageName
    from biobench.report.table import build, first_average, load

    _check([] if average is None else [average], get_args(AverageName), "--average")
    _check(source, get_args(Source), "--source")
    held = load(results_dir)
    _check(task, held.infos, "--task")
    _check(suite, {*SUITES, *(info.suite for info in held.infos.values())}, "--suite")
    if model:
        _check(model, _models(held), "--model")
    built = build(
        held,
        first_average(held) if average is None else cast(AverageName, average),
        tasks=_some(task),
        suites=_some(suite),
        sources=_some(source),
        models=_some(model),
        incomplete=incomplete,
    )
    if output is not None:
        write_output(output, render(built, format_))
    elif format_ == "table" and sys.stdout.isatty():
        print_table(built)
    else:
        sys.stdout.write(render(built, format_))


def print_report(results_dir: str, tasks: Collection[str], sources: Collection[str] | None = None) -> None:
    """The terminal table of these tasks."""
    from biobench.report.render import print_table
    from biobench.report.table import build

    print_table(build(results_dir, "macro", tasks=tasks, sources=sources))


def _some(values: list[str]) -> list[str] | None:
    return values or None


def _models(held: Results) -> set[str]:
    """Every model with a row under some average, and those that have runs but no row."""
    from biobench.report.rows import AverageName

    shown = {row.model for average in get_args(AverageName) for row in held.rows(average).rows}
    return shown | {group.model for group in (*held.groups, *(refusal.group for refusal in held.refusals))}


def _check(values: Iterable[str], allowed: Collection[str], option: str) -> None:
    """Raises UsageError for the first value that is not among `allowed`."""
    from biobench.report.escape import plain
    from biobench.schema.strict import suggest

    for value in values:
        if value not in allowed:
            hint = suggest(value, [plain(name) for name in allowed])
            raise UsageError(f"{option} '{plain(value)}' is not known", hint=hint)
