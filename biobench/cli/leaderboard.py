"""`biobench leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, ResultsDir, check_results_dir
from biobench.core.packages import check_ours


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("leaderboard")(leaderboard)


def leaderboard(
    context: typer.Context,
    *,
    results_dir: ResultsDir = "results",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port on this machine.")] = 8501,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on; 0.0.0.0 for every machine that reaches this one."),
    ] = "127.0.0.1",
    pretraining_dir: Annotated[
        Path | None,
        typer.Option(
            "--pretraining-dir", help="Folder of pretraining runs to show (default: pretraining in the results folder)."
        ),
    ] = None,
    data_dir: DataDir = None,
    task: Annotated[
        list[str],
        typer.Option("--task", metavar="YAML", help="An own task whose texts the error view shows; repeatable."),
    ] = [],  # noqa: B006
) -> None:
    """Open the leaderboard over a results folder."""
    check_results_dir(context, results_dir)
    check_ours("leaderboard")
    from leaderboard.launch import launch

    raise typer.Exit(
        launch(results_dir, port, pretraining_dir=pretraining_dir, host=host, data_dir=data_dir, tasks=task)
    )
