"""`biobench results`: community results from and to a repository."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.common import DataDir, Json, ResultsDir, print_json

if TYPE_CHECKING:
    from biobench.submission.repository import SentSubmission

Repository = Annotated[
    str,
    typer.Argument(metavar="REPOSITORY", help="Address or folder of a git repository, or hub:owner/name (a dataset)."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(help="Community results, from and to a git repository or a hub dataset.", no_args_is_help=True)
    group.command("pull")(pull)
    group.command("push")(push)
    app.add_typer(group, name="results")


def pull(
    repository: Repository, results_dir: ResultsDir = "results", data_dir: DataDir = None, as_json: Json = False
) -> None:
    """Check the submissions of a repository and lay them into the results folder, beside your own runs.

    With --data-dir they are scored again on your data. Exit 1 where one is refused; the others are kept.
    """
    from biobench.submission import repository as remote

    commit, pulled = remote.pull(repository, results_dir, data_dir)
    if as_json:
        rows = [{"name": one.name, "outcome": one.outcome, "reason": one.reason} for one in pulled]
        print_json([{"commit": commit, "submissions": rows}])
    else:
        typer.echo(f"{remote.without_password(repository)} at {commit[:12]}: {len(pulled)} submissions")
        for one in pulled:
            typer.echo(f"  {one.name}: {one.outcome}" + (f" ({one.reason})" if one.reason else ""))
        shown = "" if results_dir == "results" else f" --results-dir {results_dir}"
        typer.echo(f"Next: `biobench report{shown}`, or `biobench compare` with your own model")
    if any(one.outcome == "refused" for one in pulled):
        raise typer.Exit(1)


def push(
    repository: Repository,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A submission that `biobench submit` packed.")],
    as_json: Json = False,
) -> None:
    """Send a packed submission: a branch with one folder, and the text of the pull request.

    Sent again after a change it continues that branch.
    """
    from biobench.submission import repository as remote

    submission = remote.push(repository, folder)
    if as_json:
        print_json(asdict(submission))
    else:
        print_sent(submission)


def print_sent(submission: SentSubmission) -> None:
    """Say where a submission went and what stands in its request."""
    typer.echo(f"branch {submission.branch}" + (f": open the request at {submission.page}" if submission.page else ""))
    typer.echo(f"\n{submission.text}", nl=False)
