"""`biobench reproduce`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, Json, percent, print_json

_WORDS = {
    "identical": "agrees, the same predictions bit for bit",
    "within": "agrees, within the stored score's 95% interval over test documents",
    "outside": "does not agree: outside the stored score's 95% interval over test documents",
    "other": "not run, it would be another run",
    "failed": "the run failed",
}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("reproduce")(reproduce)


def reproduce(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="A run's JSON file, or a folder of runs.")],
    models: Annotated[
        str | None,
        typer.Option(
            "--models", metavar="FOLDER", help="A checkpoint, or a folder of them by name (default: the hub)."
        ),
    ] = None,
    data_dir: DataDir = None,
    results_dir: Annotated[
        str, typer.Option("--results-dir", help="Folder of the runs made again; what it holds is not run twice.")
    ] = "reproduced",
    task: Annotated[
        list[str], typer.Option("--task", metavar="YAML", help="Spec of a task that is not shipped; repeatable.")
    ] = [],  # noqa: B006
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    offline: Annotated[bool, typer.Option("--offline", help="Open no connection.")] = False,
    as_json: Json = False,
) -> None:
    """Make a stored run again from its record and say whether it agrees; exit 1 where one does not."""
    from biobench.workflows.reproduce import reproduce as make_again
    from biobench.workflows.reproduce import stored_runs

    store, records = stored_runs(record)
    seconds = sum(r.cost.seconds for r in records)
    if not as_json:
        typer.echo(f"{len(records)} runs, {seconds:,.0f} s when they were made", err=True)
    rows = []
    for row in make_again(
        store, records, results_dir, models=models, data_dir=data_dir, specs=task, device=device, offline=offline
    ):
        rows.append(row)
        if as_json:
            continue
        scores = f"{row.metric} {percent(row.stored)}"
        if row.again is not None:
            scores += f", again {percent(row.again)}"
        if row.low is not None and row.high is not None and row.agreement != "identical":
            scores += f" (interval {percent(row.low)} to {percent(row.high)})"
        if row.same is not None and row.same < 1:
            scores += f", {row.same:.1%} of documents predicted alike"
        reason = f" ({row.reason})" if row.reason else ""
        typer.echo(f"{row.model} · {row.task} · seed {row.seed}: {scores}: {_WORDS[row.agreement]}{reason}")
    if as_json:
        print_json([asdict(row) | {"agrees": row.agrees} for row in rows])
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)
