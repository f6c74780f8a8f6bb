"""`biobench run`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.cluster import PlanPath
from biobench.cli.console.beside import beside, check_known
from biobench.cli.console.common import Json, percent, print_json
from biobench.cli.console.options import takes_request
from biobench.cli.console.run_end import BY_FILES, KEPT, end_of_run
from biobench.core.stop import STOPPED_EXIT, RunStoppedError, stoppable
from biobench.errors import UsageError
from biobench.runs.options import RunRequest

if TYPE_CHECKING:
    from rich.console import Console

    from biobench.runs import RunPlan, RunResult


_FILE_WIDTH = 140
"""Columns of the table where no terminal sets them."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run")(run)


@takes_request(optional=("model",))
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
    plan: PlanPath = None,
    array_index: Annotated[
        int | None, typer.Option("--array-index", metavar="N", help="With --plan: the plan's N-th run, from 0.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="With --plan: part I of N of about the same cost, from 1."),
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", help="Add the lines of progress to this file, with the time.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fine-tune checkpoints on tasks over several seeds, and score them."""
    if log_file is not None:
        from biobench.core.progress import open_log

        open_log(log_file).close()  # refused before anything heavy is loaded
    if plan is not None:
        if against is not None:
            raise UsageError("--plan and --against do not go together", hint="leave one of them out")
        raise typer.Exit(run_part(plan, request, array_index, shard, as_json=as_json, log_file=log_file))
    if array_index is not None or shard is not None:
        raise UsageError("--array-index and --shard are parts of a plan", hint="add --plan plan.json")
    if not request.model:
        raise UsageError("no model is named", hint="give a hub id, id@revision or a local folder, or --plan plan.json")
    from biobench.runs.checks import check_arguments

    check_arguments(request)
    if against is not None:
        check_known(against, request.results_dir)
    raise typer.Exit(run_request(request, as_json=as_json, log_file=log_file, against=against))


def run_part(
    file: Path, beside: RunRequest, array_index: int | None, shard: str | None, *, as_json: bool, log_file: Path | None
) -> int:
    """Make and print the runs of one part of a plan; the exit status. Raises UsageError and SpecError."""
    from biobench.runs.jobs.plan_file import keys_of_part, read_plan, request_of

    planned = read_plan(file)
    request = request_of(planned, beside)
    keys = keys_of_part(planned, array_index, shard)
    if not keys:
        typer.echo(f"{file}: shard {shard} has no runs; there is nothing to do", err=True)
        if as_json:
            print_json([])
        return 0
    from biobench.models.loading import quiet_libraries
    from biobench.runs.jobs.planning import plan_of_part

    quiet_libraries()
    plan = plan_of_part(file, planned, request, keys)
    part = f"{len(keys)} of {len(planned.runs)} runs" if len(keys) < len(planned.runs) else f"{len(keys)} runs"
    typer.echo(f"{file}: {part}", err=True)
    return make_and_print(plan, as_json=as_json, log_file=log_file)


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
    from biobench.data.suite import left_out
    from biobench.models.loading import quiet_libraries
    from biobench.runs import make_plan
    from biobench.runs.plan import not_frozen

    quiet_libraries()
    plan = make_plan(request)
    for line in [] if request.suite is None else left_out(request.suite):
        typer.echo(line, err=True)
    for task in not_frozen(request):
        typer.echo(f"{task.id} is left out: it has no probe on a frozen encoder, or brings its own", err=True)
    return make_and_print(plan, as_json=as_json, log_file=log_file, summary=summary, against=against)


def make_and_print(
    plan: RunPlan, *, as_json: bool, log_file: Path | None, summary: bool = True, against: str | None = None
) -> int:
    """Make and print the runs of a plan; the exit status. summary, against: as `run_request` has them."""
    from biobench.cli.console.progress import RunTerminal
    from biobench.runs.api import contradicted, refused, run_plan, undone, workers_asked
    from biobench.store import Store

    request = plan.request
    for line in contradicted(plan):
        typer.echo(line, err=True)
    if not request.dry_run:
        workers_asked(plan)  # a wrong number is refused before the folder is touched
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


def _leading(result: RunResult) -> str:
    """The leading score of a kind without F1."""
    if not result.scores or "macro_f1" in result.scores:
        return "–"
    return f"{result.primary} {percent(result.scores.get(result.primary))}"


def print_results(results: list[RunResult]) -> None:
    """A table of the runs on stdout; of a dry run a line for all seeds of a task."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from biobench.cli.console.plan_table import plan_table

    console = Console()
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = max(console.width, _FILE_WIDTH)
    if any(r.status == "planned" for r in results):
        console.print(plan_table(results))
        _print_reasons(console, results)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("model", "task", "seed", "status"):
        table.add_column(name, overflow="fold")
    plain = [r.primary for r in results if r.scores and "macro_f1" not in r.scores]
    for name in ("macro", "micro", "weighted", *(["score"] if plain else []), "seconds", "cut", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        table.add_row(
            Text(r.model),
            r.task,
            "" if r.seed is None else str(r.seed),
            r.status,
            *(percent(r.scores.get(m)) for m in ("macro_f1", "micro_f1", "weighted_f1")),
            *([_leading(r)] if plain else []),
            "–" if r.seconds is None else f"{r.seconds:.1f}",
            "–" if not r.truncated_documents else str(r.truncated_documents),
            "–" if not r.lost_gold else str(r.lost_gold),
        )
    console.print(table)
    _print_reasons(console, results)


def _print_reasons(console: Console, results: list[RunResult]) -> None:
    """Why runs failed or were not possible; of several seeds alike once."""
    from biobench.cli.console.plan_table import without_addresses

    lines = [f"{r.task}: {r.status}: {r.reason}" for r in results if r.status in ("failed", "unavailable")]
    for line in dict.fromkeys(lines):
        console.print(without_addresses(line), markup=False, highlight=False, soft_wrap=True)
