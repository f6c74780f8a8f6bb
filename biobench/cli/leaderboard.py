"""`biobench leaderboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.arguments import DataDir, StoredResults


def leaderboard(
    *,
    results_dir: StoredResults = "results",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8501,
    host: str = "127.0.0.1",
    pretraining_dir: Path | None = None,
    data_dir: DataDir = None,
    task: list[str] = [],  # noqa: B006
) -> None:
    """Open the leaderboard over a results folder.

    port: Port on this machine.
    host: Address to listen on; 0.0.0.0: every one.
    pretraining_dir: Pretraining runs to show (default: RESULTS/pretraining).
    task (YAML): An own task; repeatable.
    """
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
