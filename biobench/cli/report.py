"""`biobench report`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from biobench.cli.common import ResultsDir
from biobench.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(report)


def report(
    format_: Annotated[str, typer.Option("--format", help="table, md, csv, latex, json or html.")] = "table",
    average: Annotated[str, typer.Option("--average", help="macro, micro, weighted or paper.")] = "macro",
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
    from biobench.report.render import print_table, render
    from biobench.report.table import build

    _check(average, ("macro", "micro", "weighted", "paper"), "--average")
    built = build(
        results_dir,
        cast(Any, average),
        tasks=_some(task),
        suites=_some(suite),
        sources=_some(source),
        models=_some(model),
        incomplete=incomplete,
    )
    if output is not None:
        output.write_text(render(built, format_), encoding="utf-8")
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


def _check(value: str, allowed: tuple[str, ...], option: str) -> None:
    from biobench.schema.strict import suggest

    if value not in allowed:
        raise UsageError(f"{option} '{value}' is not known", hint=suggest(value, list(allowed)))
