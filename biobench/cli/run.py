"""`biobench run`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from biobench.cli.common import DataDir, Json, Overrides, ResultsDir, percent, print_json
from biobench.cli.run_end import KEPT, end_of_run
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.runs import Plan, Request, RunResult


_FILE_WIDTH = 140
"""Columns of the table where no terminal sets them."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("run")(run)


def run(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Hub id, id@revision, or local folder.")],
    task: Annotated[
        list[str], typer.Option("--task", metavar="ID_OR_YAML", help="Task id or YAML path; repeatable.")
    ] = [],  # noqa: B006
    suite: Annotated[str | None, typer.Option("--suite", help="fr, en, needle or all.")] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="42-50 or 42,43 (default: the spec's).")] = None,
    data_dir: DataDir = None,
    results_dir: ResultsDir = "results",
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    parallel: Annotated[str, typer.Option("--parallel", help="auto, or a number of worker processes.")] = "auto",
    executor: Annotated[str, typer.Option("--executor", help="local, or ray (a cluster).")] = "local",
    overrides: Overrides = [],  # noqa: B006
    limit: Annotated[int | None, typer.Option("--limit", help="Training documents; the rest in proportion.")] = None,
    track: Annotated[
        str, typer.Option("--track", help="fixed (the papers' recipe), or tuned (the same few rates for every model).")
    ] = "fixed",
    train_fraction: Annotated[
        str, typer.Option("--train-fraction", help="Shares of the training documents, such as 0.1,0.25,1.0.")
    ] = "1.0",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Make runs anew that are stored already.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Open no connection.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse missing data, and data that contradict a spec.")
    ] = False,
    energy: Annotated[
        bool, typer.Option("--energy", help="Measure the energy of each run (needs the extra `energy`).")
    ] = False,
    save_every: Annotated[
        float | None,
        typer.Option("--save-every", min=0.0, help="Seconds after which a run writes its state (default: 5 minutes)."),
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate/--no-gate", help="Ask before a task's first run whether it measures something.")
    ] = True,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let checkpoints run their own code.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Fine-tune checkpoints on tasks over several seeds, and score them."""
    from biobench.runs.checks import check_arguments

    check_arguments(
        models=models,
        tasks=task,
        suite_name=suite,
        overrides=overrides,
        device=device,
        executor=executor,
        energy=energy,
    )
    from biobench.runs import Request

    try:
        shares = tuple(float(part) for part in train_fraction.split(","))
    except ValueError:
        raise UsageError(f"--train-fraction '{train_fraction}' is not understood", hint="for example 0.1,1.0") from None
    request = Request(
        models=tuple(models),
        tasks=tuple(task),
        suite=suite,
        seeds=seeds,
        data_dir=data_dir,
        results_dir=results_dir,
        device=device,
        parallel=parallel,
        executor=cast(Any, executor),
        overrides=tuple(overrides),
        limit=limit,
        track=cast(Any, track),
        train_fractions=shares,
        force=force,
        offline=offline,
        strict=strict,
        energy=energy,
        gate=gate,
        trust_remote_code=trust_remote_code,
        **({} if save_every is None else {"save_every": save_every}),
    )
    raise typer.Exit(run_request(request, dry_run=dry_run, as_json=as_json))


def run_request(request: Request, *, dry_run: bool, as_json: bool) -> int:
    """Plan, make and print the runs; the exit status."""
    from biobench.cli.progress import Terminal
    from biobench.models.loading import quiet_libraries
    from biobench.runs import make_plan
    from biobench.runs.api import run_plan

    quiet_libraries()
    plan = make_plan(request)
    say_contradicted(plan)
    if dry_run:
        results = planned(plan)
    else:
        try:
            with Terminal() as reporter:
                results = run_plan(plan, reporter)
        except KeyboardInterrupt:
            sys.stderr.write(f"{KEPT}\n")
            return 130
        say_refused(plan)
    if as_json:
        print_json([r.as_json() for r in results])
    else:
        print_results(results)
        for line in end_of_run(results, request.results_dir):
            typer.echo(line)
    return 1 if any(r.status == "failed" for r in results) else 0


def say_contradicted(plan: Plan) -> None:
    """On stderr, before any run, which tasks' data are not what their specs count."""
    for entry in plan.tasks:
        problems = entry.data.count_problems if entry.data is not None else []
        if problems:
            more = f" (and {len(problems) - 1} more counts)" if len(problems) > 1 else ""
            sys.stderr.write(f"warning: {entry.id}: {problems[0]}{more}; scores are not comparable with others\n")


def say_refused(plan: Plan) -> None:
    """On stderr, which tasks fail their gate: their runs are kept but neither shown nor averaged."""
    from biobench.store.floors import find_floor

    for entry in plan.tasks:
        if entry.data is None:
            continue
        verdict = find_floor(plan.request.results_dir, entry.id, entry.hash, entry.data.hash)
        if verdict is not None and not verdict.passed:
            sys.stderr.write(f"{entry.id} fails its gate, reports will not rank it: {'; '.join(verdict.reasons)}\n")


def planned(plan: Plan) -> list[RunResult]:
    """The lines of a dry run: what is stored is `skipped`, what would be made is `planned`."""
    from biobench.runs.execute import without_data
    from biobench.runs.result import RunResult, of_record
    from biobench.store import Store

    store = Store(plan.request.results_dir)
    lines = without_data(plan)
    for item in plan.items:
        record = None if plan.request.force else store.get(item.task.id, item.key)
        if record is not None:
            lines.append(of_record(record, "skipped", str(store.path_of(record)), "the same run is stored already"))
            continue
        spec = item.task.loaded.spec
        begun = not plan.request.force and store.is_begun(item.task.id, item.key)
        lines.append(
            RunResult(
                model=item.checkpoint.id,
                task=item.task.id,
                task_version=spec.version,
                seed=item.seed,
                status="planned",
                reason="goes on from where it was stopped" if begun else None,
                key=item.key,
                primary=spec.metric.primary,
            )
        )
    return lines


def print_results(results: list[RunResult]) -> None:
    """A table of the runs on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for name in ("model", "task", "seed", "status"):
        table.add_column(name, overflow="fold")
    for name in ("macro", "micro", "weighted", "seconds", "cut", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in results:
        table.add_row(
            Text(r.model),
            r.task,
            "" if r.seed is None else str(r.seed),
            r.status,
            *(percent(r.scores.get(m)) for m in ("macro_f1", "micro_f1", "weighted_f1")),
            "–" if r.seconds is None else f"{r.seconds:.1f}",
            "–" if not r.truncated_documents else str(r.truncated_documents),
            "–" if not r.lost_gold else str(r.lost_gold),
        )
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _FILE_WIDTH)
    console.print(table)
    for r in results:
        if r.status in ("failed", "unavailable"):
            console.print(f"{r.task}: {r.status}: {r.reason}", markup=False, highlight=False, soft_wrap=True)
