"""`biobench leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.arguments import DataDir, StoredResults


def leaderboard(
    *,
    results_dir: StoredResults = "results",
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Port on this machine.")
    ] = 8501,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; 0.0.0.0: every one.")
    ] = "127.0.0.1",
    pretraining_dir: Annotated[
        Path | None,
        typer.Option(
            "--pretraining-dir", help="Pretraining runs to show (default: RESULTS/pretraining)."
        ),
    ] = None,
    data_dir: DataDir = None,
    task: Annotated[
        list[str], typer.Option("--task", metavar="YAML", help="An own task; repeatable.")
    ] = [],  # noqa: B006
) -> None:
    """Open the leaderboard over a results folder."""
    from leaderboard.launch import launch

    raise typer.Exit(
        launch(
            results_dir,
            port,
            pretraining_dir=pretraining_dir,
            host=host,
            data_dir=data_dir,
            tasks=task,
        )
    )
