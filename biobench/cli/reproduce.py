"""`biobench reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, Threads, percent, print_json
from biobench.core.threads import prepare_threads

if TYPE_CHECKING:
    from biobench.workflows.reproduce import Reproduction

_WORDS = {
    "identical": "agrees, the same predictions bit for bit",
    "within": "agrees, within the stored score's 95% interval over test documents",
    "outside": "does not agree: outside the stored score's 95% interval over test documents",
    "other": "not run, it would be another run",
    "unavailable": "not run",
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
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Make a stored run again from its record and say whether it agrees; exit 1 where one does not or was not run.

    It uses as many threads as the record names, unless --threads says otherwise.
    """
    from biobench.workflows.reproduce import reproduce as make_again
    from biobench.workflows.reproduce import stored_runs

    store, records = stored_runs(record)
    counts = {r.provenance.threads for r in records}
    if threads is None and len(counts) == 1:
        prepare_threads(*counts)
    from biobench.models.loading import quiet_libraries

    quiet_libraries()
    seconds = sum(r.cost.seconds for r in records)
    if not as_json:
        typer.echo(f"{_number(len(records))}, {seconds:,.0f} s when made", err=True)
    rows = []
    for row in make_again(
        store, records, results_dir, models=models, data_dir=data_dir, specs=task, device=device, offline=offline
    ):
        rows.append(row)
        if not as_json:
            typer.echo(_line(row))
    if as_json:
        print_json([asdict(row) | {"agrees": row.agrees} for row in rows])
    elif len(rows) > 1:
        typer.echo(_summary(rows))
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)


def _number(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _line(row: Reproduction) -> str:
    scores = f"{row.metric} {percent(row.stored)}"
    if row.again is not None:
        scores += f", again {percent(row.again)}"
    if row.again is not None and row.low is not None and row.high is not None and row.agreement != "identical":
        scores += f" (interval {percent(row.low)} to {percent(row.high)})"
    if row.same is not None and row.same < 1:
        scores += f", {row.same:.1%} of documents predicted alike"
    words = _WORDS[row.agreement]
    if row.agreement == "outside" and row.reason is not None:
        words = "does not agree"
    elif row.agreement == "outside" and row.low is None:
        words = "does not agree: another score, and no interval can be computed from the record"
    elif row.agreement == "within" and row.low is None:
        words = "agrees, the same score"
    reasons = [row.reason] if row.reason else []
    if row.machine and row.agreement != "identical":
        reasons.append("; ".join(row.machine))
    reason = f" ({'; '.join(reasons)})" if reasons else ""
    return f"{row.model} · {row.task} · seed {row.seed}: {scores}: {words}{reason}"


def _summary(rows: Sequence[Reproduction]) -> str:
    agree, same = sum(row.agrees for row in rows), sum(row.agreement == "identical" for row in rows)
    idle = sum(row.agreement in ("other", "unavailable") for row in rows)
    rest = f", {idle} not run" if idle else ""
    return f"{agree} of {_number(len(rows))} agree, {same} bit for bit{rest}"
