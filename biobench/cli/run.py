"""`biobench run`."""

from __future__ import annotations

from typing import Annotated

import typer

from biobench.cli.console.against import comparison
from biobench.cli.console.common import Json, print_json
from biobench.cli.console.options import takes_request
from biobench.core.stop import STOPPED_EXIT, RunStoppedError, stoppable
from biobench.runs.options import RunRequest

KEPT = "Stopped. What is done is kept and what was begun resumes from its last state: give the same command again."


@takes_request
def run(
    request: RunRequest,
    *,
    as_json: Json = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="MODEL", help="Compare with this model at the end.", rich_help_panel="More"),
    ] = None,
) -> None:
    """Fine-tune checkpoints on tasks over several seeds, and score them.

    Started several times on machines that share the results folder, the same command divides the work.
    """
    raise typer.Exit(run_request(request, as_json=as_json, against=against))


def run_request(request: RunRequest, *, as_json: bool, summary: bool = True, against: str | None = None) -> int:
    """Plan, make and print the runs; the exit status.

    summary: with the table of runs and what follows it. against: a model of the results folder to compare with.
    """
    from biobench.models.loading import quiet_libraries
    from biobench.runs.selection import select

    quiet_libraries()
    selection = select(request)  # what is refused here is refused before anything heavy is loaded
    if against is not None:
        from biobench.report.entrants import find_entrants
        from biobench.report.results import load

        find_entrants([against], load(request.results_dir))
    from biobench.cli.console.progress import RunTerminal
    from biobench.runs.api import run_plan
    from biobench.runs.plan import make_plan
    from biobench.runs.table import end_of_run, print_results

    try:
        with stoppable(), RunTerminal() as reporter:
            plan = make_plan(request, reporter, selection=selection)
            for line in (*plan.skipped, *plan.contradictions()):
                reporter.say(line)
            results = run_plan(plan, reporter)
    except KeyboardInterrupt:
        typer.echo(KEPT, err=True)
        return 130
    except RunStoppedError:
        typer.echo(KEPT, err=True)
        return STOPPED_EXIT
    for task, verdict in {} if request.dry_run else plan.verdicts().items():
        if not verdict.passed:
            typer.echo(f"{task} fails its gate, reports will not rank it: {'; '.join(verdict.reasons)}", err=True)
    if as_json:
        print_json([r.as_json() for r in results])
    elif summary:
        print_results(results)
        for line in end_of_run(results, request.results_dir):
            typer.echo(line)
    if against is not None:
        for line in comparison(results, against, request.results_dir, request.data_dir):
            typer.echo(line, err=as_json)
    return 1 if any(r.status == "failed" for r in results) else 0
