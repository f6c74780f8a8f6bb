"""`biobench rescore`."""

from __future__ import annotations

import typer

from biobench.cli.common import DataDir, Json, ResultsDir, percent, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rescore")(rescore)


def rescore(results_dir: ResultsDir = "results", data_dir: DataDir = None, as_json: Json = False) -> None:
    """Recompute every score from the stored predictions."""
    from biobench.report.rescore import rescore_all

    rows = rescore_all(results_dir, data_dir)
    if as_json:
        print_json([row.as_json() for row in rows])
    else:
        for row in rows:
            score = percent(row.scores.get(row.primary)) if row.scores else "–"
            typer.echo(f"{row.model} · {row.task} · seed {row.seed}: {row.primary} {score} ({row.outcome})")
    if any(row.outcome == "failed" for row in rows):
        raise typer.Exit(1)
