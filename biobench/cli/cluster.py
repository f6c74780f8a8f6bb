"""`biobench plan`, `slurm` and `status`: runs on machines that nobody sits at."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from biobench.cli.console.common import Json, ResultsDir, check_results_dir, print_json
from biobench.cli.console.options import takes_request
from biobench.errors import UsageError
from biobench.runs.options import RunRequest

if TYPE_CHECKING:
    from biobench.runs.jobs.plan_file import PlanFile
    from biobench.runs.jobs.status import PlanProgress, WatchedRun

PlanPath = Annotated[Path | None, typer.Option("--plan", metavar="PLAN", help="A plan by `biobench plan`.")]
_SHOWN = 40
"""Lines of runs that `status` prints of each state, at most."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("plan")(plan)
    app.command("slurm")(slurm)
    app.command("status")(status)


@takes_request(without=("dry_run",))
def plan(
    request: RunRequest,
    *,
    out: Annotated[Path, typer.Option("--output", "--out", "-o", help="The file.")] = Path("plan.json"),
    precision: Annotated[
        str | None, typer.Option("--precision", help="bf16 or fp32: what the machines compute, if not as this one.")
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option("--costs", metavar="DIR", help="Results whose records tell costs, if not --results-dir."),
    ] = None,
    gpus: Annotated[
        str | None, typer.Option("--gpus", help="Also say how long the plan takes on 1,4,32 devices.")
    ] = None,
    gpu_memory: Annotated[
        float | None, typer.Option("--gpu-memory", min=0.1, help="GiB of each of these devices.")
    ] = None,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Runs side by side on each of them.")] = 1,
    as_json: Json = False,
) -> None:
    """Write every run with its key and cost to a file, whose parts run anywhere: `run --plan`, `slurm`."""
    counts = device_counts(gpus)
    from biobench.runs.checks import check_arguments

    if precision not in (None, "bf16", "fp32"):
        raise UsageError(f"--precision '{precision}' is not known", hint="bf16 or fp32")
    check_arguments(request)
    from biobench.models.loading import quiet_libraries
    from biobench.runs.jobs.plan_file import replaced_plan, write_plan
    from biobench.runs.jobs.planning import plan_file
    from biobench.store import Store

    quiet_libraries()
    wanted: Literal["bf16", "fp32"] | None = precision  # type: ignore[assignment]
    file, lines = plan_file(request, precision=wanted, costs=None if costs is None else Store(costs))
    for line in lines:
        typer.echo(line, err=True)
    if not file.runs:
        raise UsageError("the plan has no runs", hint="see the lines above, or `biobench data status`")
    if before := replaced_plan(out, file):
        typer.echo(
            f"{out}: replaces a plan of {before} runs, not all the same or in another order; "
            "what was submitted with that one would make runs of this",
            err=True,
        )
    write_plan(out, file)
    simulated = [simulate(file, count, gpu_memory, at_once) for count in counts]
    if as_json:
        print_json({**file.model_dump(mode="json"), "simulated": simulated})
        return
    typer.echo(f"{out}: {len(file.runs)} runs; {file.costs_in_words()}")
    for line in simulation_lines(simulated, file):
        typer.echo(line)
    typer.echo(f"Next: `biobench slurm {out} --time ...`, or `biobench run --plan {out} --shard 1/4` on each machine")


def device_counts(text: str | None) -> list[int]:
    """`1,4,32` as numbers. Raises UsageError."""
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() and 0 < int(part) <= 100_000 for part in parts):
        raise UsageError(f"--gpus '{text}' are no numbers of devices", hint="for example 1,4,32")
    return [int(part) for part in parts]


def simulate(file: PlanFile, devices: int, memory_gib: float | None, at_once: int) -> dict[str, float | int]:
    """The plan on so many devices: seconds, idle share (a fraction) and the runs that fit on none of them."""
    from biobench.runs.jobs.packing import pack

    memory = None if memory_gib is None else int(memory_gib * 2**30)
    packing = pack(file.loads(), devices, memory_bytes=memory, at_once=at_once)
    return {
        "devices": devices,
        "makespan_seconds": round(packing.makespan, 1),
        "idle_share": round(packing.idle_share, 4),
        "too_large": len(packing.too_large),
    }


def simulation_lines(simulated: list[dict[str, float | int]], file: PlanFile) -> list[str]:
    """A line for each number of devices; without known seconds only shares can be told."""
    from biobench.core.progress import in_words

    timed = any(run.seconds is not None for run in file.runs)
    lines = []
    for row in simulated:
        span = in_words(row["makespan_seconds"]) if timed else "of unknown length"
        line = f"{row['devices']:>5} devices: {span}, idle {100 * row['idle_share']:.1f}%"
        if row["too_large"]:
            line += f"; {row['too_large']} runs need more memory than a device has and are not in it"
        lines.append(line)
    return lines


def slurm(
    target: Annotated[str, typer.Argument(metavar="PLAN_OR_RECIPE", help="A plan; with --nodes a pretraining recipe.")],
    *,
    time: Annotated[str, typer.Option("--time", help="Limit of a job: minutes, HH:MM:SS or D-HH:MM:SS.")],
    partition: Annotated[str | None, typer.Option("--partition", help="The cluster's partition.")] = None,
    account: Annotated[str | None, typer.Option("--account", help="Whom the cluster charges.")] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="The cluster's name of a kind of GPU, or any.")] = None,
    cpus: Annotated[int, typer.Option("--cpus", min=1, help="CPUs of each process.")] = 4,
    memory: Annotated[str | None, typer.Option("--memory", help="Of each node, such as 32G.")] = None,
    shards: Annotated[
        int | None, typer.Option("--shards", min=1, help="So many jobs of about the same cost, not one a run.")
    ] = None,
    at_once: Annotated[int | None, typer.Option("--at-once", min=1, help="Jobs under way at a time, at most.")] = None,
    grace: Annotated[
        int, typer.Option("--grace", help="Seconds before the limit at which a run saves and ends.")
    ] = 120,
    setup: Annotated[list[str], typer.Option("--setup", help="Shell line before the command; repeatable.")] = [],  # noqa: B006
    option: Annotated[
        list[str], typer.Option("--option", help="Option of the started command, as in --option=--offline; repeatable.")
    ] = [],  # noqa: B006
    logs: Annotated[str, typer.Option("--logs", help="Folder of output files.")] = "logs",
    name: Annotated[str, typer.Option("--name", help="Of the job.")] = "biobench",
    nodes: Annotated[int | None, typer.Option("--nodes", min=1, help="Pretrain a recipe on so many nodes.")] = None,
    gpus_per_node: Annotated[int, typer.Option("--gpus-per-node", min=1, help="With --nodes: processes a node.")] = 1,
    out: Annotated[
        str, typer.Option("--out", help="With --nodes: folder of the pretraining run.")
    ] = "runs/pretraining",
    torchrun: Annotated[
        bool, typer.Option("--torchrun", help="With --nodes: for nodes without a batch system.")
    ] = False,
) -> None:
    """Print a batch script: a job array for a plan, or a job of several nodes that pretrains."""
    from biobench.core.progress import in_words
    from biobench.runs.jobs.plan_file import check_trust, read_plan
    from biobench.runs.jobs.slurm import SlurmJob, array_script, pretraining_script, torchrun_script, without_end

    job = SlurmJob(
        time=time,
        partition=partition,
        account=account,
        gpu=gpu,
        cpus=cpus,
        memory=memory,
        grace=grace,
        setup=setup,
        logs=logs,
        name=name,
    )
    if nodes is not None:
        script = (
            torchrun_script(target, out, nodes=nodes, gpus=gpus_per_node, options=option)
            if torchrun
            else pretraining_script(job, target, out, nodes=nodes, gpus=gpus_per_node, options=option)
        )
    elif torchrun:
        raise UsageError("--torchrun goes with --nodes", hint="add --nodes 2, or leave it out")
    else:
        file = read_plan(Path(target))
        check_trust(file, allowed="--trust-remote-code" in option)
        runs = len(file.runs)
        for task, seconds in without_end(file, job).items():
            typer.echo(
                f"warning: a run of {task} takes about {in_words(seconds)}, longer than --time without --grace; "
                "on text under an agreement it writes no state, so its job would begin anew without end",
                err=True,
            )
        parts = runs if shards is None else min(shards, runs)  # no job without a run
        script = array_script(job, target, parts, shard=shards is not None, options=option, at_once=at_once)
    typer.echo(script, nl=False)


def status(
    context: typer.Context,
    results_dir: ResultsDir = "results",
    plan: PlanPath = None,
    as_json: Json = False,
) -> None:
    """What is done, running (where, since when, time left), failed and waiting; on any machine that sees the folder."""
    check_results_dir(context, results_dir)
    from biobench.runs.jobs.plan_file import read_plan
    from biobench.runs.jobs.status import progress
    from biobench.runs.options import options

    file = None if plan is None else read_plan(plan)
    if file is not None and results_dir == options()["results_dir"].default:
        results_dir = str(file.request.get("results_dir", results_dir))
    state = progress(results_dir, file)
    if as_json:
        print_json(state.as_json())
        return
    for line in status_lines(state):
        typer.echo(line)


def status_lines(state: PlanProgress) -> list[str]:
    """The counts, then the runs under way, stopped and failed."""
    from biobench.core.progress import in_words

    counts = [f"{state.count('done')} done", f"{state.count('running')} running", f"{state.count('failed')} failed"]
    if state.count("stopped"):
        counts.append(f"{state.count('stopped')} stopped")
    if state.planned:
        counts += [f"{state.count('waiting')} waiting, of {len(state.runs)}"]
    head = f"{state.results_dir}: {', '.join(counts)}"
    if state.seconds_left is not None:
        head += f"; about {in_words(state.seconds_left)} left with {state.count('running')} at once"
    lines = [head]
    for name in ("running", "stopped", "failed"):
        runs = [run for run in state.runs if run.state == name]
        lines += [f"{name}: {_line(run)}" for run in runs[:_SHOWN]]
        if len(runs) > _SHOWN:
            lines.append(f"{name}: {len(runs) - _SHOWN} more (--json has all)")
    return lines


def _line(run: WatchedRun) -> str:
    """One run: its name, and where it is or why it ended."""
    from biobench.core.progress import in_words

    names = [run.model, run.task, None if run.seed is None else f"seed {run.seed}"]
    line = " · ".join(n for n in names if n is not None)
    if run.model is None:
        line += f" · {run.key[:8]}"
    if run.state == "running" and run.started is not None:
        since = datetime.datetime.fromtimestamp(run.started).astimezone().isoformat(" ", timespec="minutes")
        line += f" on {run.host} (pid {run.pid}{f', job {run.job}' if run.job else ''}) since {since}"
        line += f", step {run.step}/{run.steps}" if run.steps else ""
        line += f", about {in_words(run.seconds_left)} left" if run.seconds_left is not None else ""
    if run.state == "stopped":
        line += ": begun, and resumed by the next process that makes it"
    return line + (f": {run.reason}" if run.reason else "")
