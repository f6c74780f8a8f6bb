"""What is given to others: submissions, shared results, metadata."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.arguments import DataDir, Json, Output, ResultsDir, StoredResults
from biobench.cli.console.output import answer, write_output
from biobench.core.text import plural

if TYPE_CHECKING:
    from biobench.submission.checks import Verification
Repository = Annotated[
    str,
    typer.Argument(
        metavar="REPOSITORY", help="Address or folder of a git repository, or hub:owner/name."
    ),
]


NOT_SCORED_AGAIN = "D03"
"""Code of the finding that a task's data is not at hand."""

results = typer.Typer(
    help="Community results, from and to a git repository or a hub dataset.", no_args_is_help=True
)


def submit(
    model: str,
    results_dir: StoredResults = "results",
    out: Path | None = None,
    notes: str = "",
    as_json: Json = False,
) -> None:
    """Pack a model's runs of one set of conditions (records and predictions) as a submission.

    model: A model as the report names it, with conditions.
    out: Folder to make (default: submissions/<model>).
    notes: A few words about the model.
    """
    from biobench.submission.pack import submit as pack
    from biobench.submission.verify import examine

    folder = pack(model, results_dir, out, notes=notes)
    submission = examine(folder)
    number = len(submission.runs)
    packed = f"{folder}: {number} {'run' if number == 1 else 'runs'} packed"
    answer(as_json, submission.as_json(), [packed, *packed_findings(submission)])
    if submission.state == "refused":
        raise typer.Exit(1)


def verify_submission(
    folder: Path,
    data_dir: DataDir = None,
    against: Path | None = None,
    write_statement: bool = False,
    as_json: Json = False,
) -> None:
    """Check a submission and score it again, as CI does; exit 1 where it is refused or waits for a
    maintainer.

    verified: scored again on the data, as claimed. consistent: nothing contradicts it, but it was
    not scored again.

    folder (DIR): The submission's folder.
    against: A results folder to compare with.
    write_statement: Where all is scored again, say so in statements/ of --against.
    """
    from biobench.errors import UsageError
    from biobench.reporting.escape import plain
    from biobench.store.statements import make_statement, save_statement
    from biobench.submission.guard import verify

    for path in (folder, against):
        if path is not None and not path.is_dir():
            raise UsageError(
                f"'{plain(str(path))}' is not a folder",
                hint="give the folder that `submit` wrote, and --against a results folder",
            )
    if write_statement and against is None:
        raise UsageError(
            "--write-statement: no results folder is named", hint="add --against RESULTS"
        )
    verification = verify(folder, data_dir, against)
    is_proved = verification.accepted and verification.mark == "re-scored"
    if write_statement and against is not None and is_proved:
        save_statement(folder, against, make_statement(folder, "re-scored"))
    answer(as_json, verification.as_json(), [*_checks(verification), verification.summary()])
    if not verification.accepted:
        raise typer.Exit(1)


def packed_findings(submission: Verification) -> list[str]:
    """The findings of what was just packed. Nothing is scored again here: a line says so, in place
    of one a task.
    """
    unscored = [check for check in submission.checks if check.code == NOT_SCORED_AGAIN]
    others = [check for check in submission.checks if check.code != NOT_SCORED_AGAIN]
    lines = _checks(replace(submission, checks=tuple(others)))
    if unscored:
        tasks = f"{len(unscored)} {plural(len(unscored), 'task')}"
        command = f"biobench verify-submission {shlex.quote(submission.folder)} --data-dir DIR"
        lines.append(f"{NOT_SCORED_AGAIN}: {tasks} not scored again here; `{command}` does it")
    return lines


def _checks(verification: Verification) -> list[str]:
    """A line a finding; one that several files share stands once, with the first of them."""
    from biobench.reporting.escape import plain

    files: dict[tuple[str, str, str], list[str]] = {}
    for check in verification.checks:
        files.setdefault((check.code, check.grade, check.what), []).append(check.where)
    lines: list[str] = []
    for (code, grade, finding), named in files.items():
        place = plain(named[0])
        if len(named) > 1:
            place += f" and {len(named) - 1} more"
        lines.append(f"{code} {grade}: {place}: {finding}")
    return lines


@results.command()
def pull(
    repository: Repository,
    results_dir: ResultsDir = "results",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Check the submissions of a repository and copy them into the results folder.

    With --data-dir they are scored again on your data. Exit 1 where one is refused; the others are
    kept.
    """
    from biobench.runs.table import folder_option
    from biobench.submission import repository as remote
    from biobench.submission.git import without_password

    commit, pulled = remote.pull(repository, results_dir, data_dir)
    lines = [f"{without_password(repository)} at {commit[:12]}: {len(pulled)} submissions"]
    for submission in pulled:
        line = f"  {submission.name}: {submission.outcome}"
        if submission.reason:
            line += f" ({submission.reason})"
        lines.append(line)
    report = f"biobench report{folder_option(results_dir)}"
    lines.append(f"Next: `{report}`, or `biobench compare` with your own model")
    rows = [submission._asdict() for submission in pulled]
    answer(as_json, [{"commit": commit, "submissions": rows}], lines)
    if any(submission.outcome == "refused" for submission in pulled):
        raise typer.Exit(1)


@results.command()
def push(
    repository: Repository,
    folder: Path,
    as_json: Json = False,
) -> None:
    """Send a packed submission: a branch with one folder, and the text of the pull request.

    Sent again after a change it continues that branch.

    folder (DIR): A submission that `biobench submit` packed.
    """
    from biobench.submission import repository as remote

    request = remote.push(repository, folder)
    page = f": open the request at {request.page}" if request.page else ""
    answer(as_json, request._asdict(), [f"branch {request.branch}{page}\n\n{request.text}"])


def export(
    model: str,
    *,
    format_: str = "model-card",
    dataset: str | None = None,
    push: str | None = None,
    results_dir: StoredResults = "results",
    output: Output = None,
) -> None:
    """A model's results as metadata for the model hub, as Every Eval Ever JSON, or its tasks'
    BibTeX.

    model: A model as the report names it.
    format_: model-card, eval-results, eval-yaml, every-eval-ever or bibtex.
    dataset: eval-results: the benchmark's hub dataset.
    push (ORG/MODEL): Open a request on the hub.
    """
    from biobench.export.formats import export as run

    text = run(model, format_, results_dir, dataset=dataset)
    if push is not None:
        from biobench.export.push import push_results

        typer.echo(f"request: {push_results(push, text, format_)}")
    if output is None and push is None:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    elif output is not None:
        write_output(output, text)
