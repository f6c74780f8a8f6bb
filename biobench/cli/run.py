"""`biobench run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from biobench.cli.console.beside import beside, check_known
from biobench.cli.console.common import Json, print_json
from biobench.cli.console.options import takes_request
from biobench.core.stop import STOPPED_EXIT, RunStoppedError, stoppable
from biobench.runs.options import RunRequest

BY_FILES = (
    "claims: this file system has no locks, so a run is claimed by a file with a heartbeat, stale after 3 minutes "
    "(docs/running.md)"
)
KEPT = "Stopped. What is done is kept and what was begun resumes from its last state: give the same command again."


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run")(run)


@takes_request()
def run(
    request: RunRequest,
    *,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="MODEL",
            help="A model of the results folder, own, pulled or published: compare with it at the end.",
        ),
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", help="Add the lines of progress to this file, with the time.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fine-tune checkpoints on tasks over several seeds, and score them.

    Started several times on machines that share the results folder, the same command divides the work.
    """
    if log_file is not None:
        from biobench.core.progress import open_log

        open_log(log_file).close()  # refused before anything heavy is loaded
    raise typer.Exit(run_request(request, as_json=as_json, log_file=log_file, against=against))


def run_request(
    request: RunRequest,
    *,
    as_json: bool,
    log_file: Path | None = None,
    summary: bool = True,
    against: str | None = None,
) -> int:
    """Plan, make and print the runs; the exit status.

    summary: with the table of runs and what follows it. against: a model of the results folder to compare with.
    """
    from biobench.runs.selection import select

    selection = select(request)  # refused before torch is loaded
    if against is not None:
        check_known(against, request.results_dir)
    from biobench.cli.console.progress import RunTerminal
    from biobench.cli.console.run_table import end_of_run, print_results
    from biobench.data.suite import left_out
    from biobench.models.loading import quiet_libraries
    from biobench.runs.plan import make_plan

    quiet_libraries()
    plan = make_plan(request, selection)
    for line in [] if request.suite is None else left_out(request.suite):
        typer.echo(line, err=True)
    for task in selection.left_out:
        typer.echo(f"{task} is left out: it has no probe on a frozen encoder, or brings its own", err=True)
    from biobench.runs.api import contradicted, refused, run_plan, undone
    from biobench.store import Store

    for line in contradicted(plan):
        typer.echo(line, err=True)
    if not request.dry_run and undone(plan) and Store(request.results_dir).claim_mode() == "files":
        typer.echo(BY_FILES, err=True)
    try:
        with stoppable(), RunTerminal(log_file) as reporter:
            results = run_plan(plan, reporter)
    except KeyboardInterrupt:
        typer.echo(KEPT, err=True)
        return 130
    except RunStoppedError:
        typer.echo(KEPT, err=True)
        return STOPPED_EXIT
    if not request.dry_run:
        for line in refused(plan):
            typer.echo(line, err=True)
    if as_json:
        print_json([r.as_json() for r in results])
    elif summary:
        print_results(results)
        for line in end_of_run(results, request.results_dir):
            typer.echo(line)
    if against is not None:
        for line in beside(results, against, request.results_dir, request.data_dir):
            typer.echo(line, err=as_json)
    return 1 if any(r.status == "failed" for r in results) else 0
