"""`biobench rescore`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from biobench.cli.common import DataDir, Json, ResultsDir, percent, print_json

if TYPE_CHECKING:
    from biobench.schema.document import Document
    from biobench.schema.record import RunRecord
    from biobench.score import Rescored


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rescore")(rescore)


def rescore(results_dir: ResultsDir = "results", data_dir: DataDir = None, as_json: Json = False) -> None:
    """Recompute every score from the stored predictions (agreement-bound data needs --data-dir)."""
    from biobench.score import rescore as recompute
    from biobench.store import Store

    def documents(record: RunRecord) -> Sequence[Document]:
        from biobench.data.catalog import load_task
        from biobench.data.load import load_data

        return load_data(load_task(record.task.id), Path(data_dir) if data_dir else None, record.limit).test

    rows = recompute(Store(results_dir), documents)
    if as_json:
        print_json([_plain(row) for row in rows])
    else:
        for row in rows:
            typer.echo(_line(row))
    if any(row.outcome == "failed" for row in rows):
        raise typer.Exit(1)


def _plain(row: Rescored) -> dict[str, object]:
    record = row.record
    return {
        "model": None if record is None else record.model.id,
        "task": row.task,
        "seed": None if record is None else record.seed,
        "key": row.key,
        "outcome": row.outcome,
        "reason": row.reason,
        "scores": {} if record is None else dict(record.scores),
        "changed": {name: list(pair) for name, pair in (row.changed or {}).items()},
    }


def _line(row: Rescored) -> str:
    if row.record is None:
        return f"{row.task or 'results'} {row.key}: {row.outcome} ({row.reason}; {row.hint})"
    record = row.record
    score = percent(record.scores.get(record.task.primary))
    return f"{record.model.id} · {record.task.id} · seed {record.seed}: {record.task.primary} {score} ({row.outcome})"
