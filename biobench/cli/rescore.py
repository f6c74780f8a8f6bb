"""`biobench rescore`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, check_results_dir, percent, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rescore")(rescore)


def rescore(
    context: typer.Context,
    results_dir: ResultsDir = "results",
    data_dir: DataDir = None,
    task: Annotated[
        list[str],
        typer.Option(
            "--task",
            metavar="ID_OR_YAML",
            help="Only this task; repeatable. A spec of your own whose data is under an agreement must be named.",
        ),
    ] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Recompute every score from the stored predictions (agreement-bound data needs --data-dir)."""
    check_results_dir(context, results_dir)
    from biobench.report.rescore import rescore_all

    rows = rescore_all(results_dir, data_dir, task)
    if as_json:
        print_json([row.as_json() for row in rows])
    for row in rows if not as_json else ():
        seed = "" if row.seed is None else f" · seed {row.seed}"
        message = f": {row.outcome}"
        if row.scores:
            message += f", {row.primary} {percent(row.scores.get(row.primary))}"
        if row.reason:
            message += f" ({row.reason}; {row.hint})" if row.hint else f" ({row.reason})"
        typer.echo(f"{row.model or 'record'} · {row.task or row.key}{seed}{message}")
    if any(row.outcome == "failed" for row in rows):
        raise typer.Exit(1)
