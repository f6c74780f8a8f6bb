"""`biobench submit` and `biobench verify-submission`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.common import DataDir, Json, ResultsDir, print_json


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("submit")(submit)
    app.command("verify-submission")(verify_submission)


def submit(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model of the results folder, as the report names it.")
    ],
    results_dir: ResultsDir = "results",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to make (default: submissions/<name of the model>).")
    ] = None,
    notes: Annotated[str, typer.Option("--notes", help="A few words about the model.")] = "",
    as_json: Json = False,
) -> None:
    """Pack a model's full runs (records and predictions) as a submission."""
    from biobench.submission.pack import submit as pack
    from biobench.submission.verify import verify

    folder = pack(model, results_dir, out, notes=notes)
    found = verify(folder)
    if as_json:
        print_json(found.as_json())
    else:
        typer.echo(f"{folder}: {found.records} runs packed")
        for check in found.checks:
            typer.echo(f"{check.code} {check.grade}: {check.where}: {check.what}")
    if not found.accepted:
        raise typer.Exit(1)


def verify_submission(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The submission's folder.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check a submission and score it again, as CI does; exit 1 where it is refused."""
    from biobench.report.escape import plain
    from biobench.submission.verify import verify

    found = verify(folder, data_dir)
    if as_json:
        print_json(found.as_json())
    else:
        for check in found.checks:
            typer.echo(f"{check.code} {check.grade}: {plain(check.where)}: {check.what}")
        verdict = "accepted" if found.accepted else "refused"
        typer.echo(f"{verdict}: {found.rescored} of {found.records} runs scored again as claimed")
    if not found.accepted:
        raise typer.Exit(1)
