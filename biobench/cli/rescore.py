"""`biobench rescore`."""

from __future__ import annotations

import typer

from biobench.cli.common import DataDir, Json, ResultsDir, percent, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rescore")(rescore)


def rescore(results_dir: ResultsDir = "results", data_dir: DataDir = None, as_json: Json = False) -> None:
    """Recompute every score from the stored predictions (agreement-bound data needs --data-dir)."""
    from biobench.report.rescore import rescore_all

    rows = rescore_all(results_dir, data_dir)
    if as_json:
        print_json([row.as_json() for row in rows])
    for row in rows if not as_json else ():
        seed = "" if row.seed is None else f" · seed {row.seed}"
        said = f": {row.outcome}"
        if row.scores:
            said += f", {row.primary} {percent(row.scores.get(row.primary))}"
        if row.reason:
            said += f" ({row.reason}; {row.hint})" if row.hint else f" ({row.reason})"
        typer.echo(f"{row.model or 'record'} · {row.task or row.key}{seed}{said}")
    if any(row.outcome == "failed" for row in rows):
        raise typer.Exit(1)
