"""`biobench submit` and `biobench verify-submission`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, check_results_dir, print_json


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("submit")(submit)
    app.command("verify-submission")(verify_submission)


def submit(
    context: typer.Context,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model as the report names it, with its conditions in brackets.")
    ],
    results_dir: ResultsDir = "results",
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to make (default: submissions/<name of the model>).")
    ] = None,
    notes: Annotated[str, typer.Option("--notes", help="A few words about the model.")] = "",
    open_pr: Annotated[
        str | None,
        typer.Option("--open-pr", metavar="REPOSITORY", help="Send it too: a branch and the request's text."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Pack a model's runs of one set of conditions (records and predictions) as a submission."""
    check_results_dir(context, results_dir)
    from biobench.submission.pack import submit as pack
    from biobench.submission.verify import examine

    folder = pack(model, results_dir, out, notes=notes)
    submission = examine(folder)
    if not as_json:
        typer.echo(f"{folder}: {submission.records} run{'s' * (submission.records != 1)} packed")
        for check in submission.checks:
            typer.echo(f"{check.code} {check.grade}: {check.where}: {check.what}")
    request = None
    if open_pr is not None and submission.state != "refused":
        from biobench.submission.repository import push

        request = push(open_pr, folder)
    if as_json:
        print_json(submission.as_json() | ({} if request is None else {"request": asdict(request)}))
    elif request is not None:
        from biobench.cli.results import print_sent

        print_sent(request)
    if submission.state == "refused":
        raise typer.Exit(1)


def verify_submission(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The submission's folder.")],
    data_dir: DataDir = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="A results folder: its runs and its submitted/ are compared with these."),
    ] = None,
    write_statement: Annotated[
        bool,
        typer.Option("--write-statement", help="Where all is scored again, say so in statements/ of --against."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a submission and score it again, as CI does; exit 1 where it is refused or waits for a maintainer.

    verified: scored again on the data, as claimed. consistent: nothing contradicts it, but it was not scored again.
    """
    from biobench.errors import UsageError
    from biobench.report.escape import plain
    from biobench.store.statements import make_statement, save_statement
    from biobench.submission.guard import verify

    if against is not None and not against.is_dir():
        raise UsageError(f"--against: '{plain(str(against))}' is not a folder", hint="give the results folder")
    if write_statement and against is None:
        raise UsageError("--write-statement: no results folder is named", hint="add --against RESULTS")
    verification = verify(folder, data_dir, against)
    if write_statement and against is not None and verification.accepted and verification.mark == "re-scored":
        save_statement(folder, against, make_statement(folder, "re-scored"))
    if as_json:
        print_json(verification.as_json())
    else:
        for check in verification.checks:
            typer.echo(f"{check.code} {check.grade}: {plain(check.where)}: {check.what}")
        typer.echo(verification.summary())
    if not verification.accepted:
        raise typer.Exit(1)
