"""`biobench slurm` and `status`: runs on machines that nobody sits at."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from biobench.cli.console.arguments import Count, Json, StoredResults
from biobench.cli.console.output import answer
from biobench.errors import UsageError

if TYPE_CHECKING:
    from biobench.runs.status import FolderRun


def slurm(
    words: list[str],
    *,
    time: str,
    workers: Count = 4,
    partition: str | None = None,
    gpu: str | None = None,
    cpus: Count = 4,
    grace: int = 120,
    setup: list[str] = [],  # noqa: B006
    sbatch: list[str] = [],  # noqa: B006
    nodes: Annotated[int | None, typer.Option(min=1)] = None,
    gpus_per_node: Count = 1,
) -> None:
    """Print a batch script: an array of workers for `run`, or one job of several nodes for
    `pretrain`.

    words (-- run|pretrain ...): The command to start, after two dashes.
    time: Limit of a job: minutes, HH:MM:SS or D-HH:MM:SS.
    workers: Of `run`: jobs that divide the runs.
    partition: The cluster's partition.
    gpu: The cluster's name of a kind of GPU, or any.
    cpus: CPUs of each process.
    grace: Seconds before the limit at which a run saves.
    setup: Shell line before the command; repeatable.
    sbatch: Another, such as --account=NAME; repeatable.
    nodes: Of `pretrain`: nodes of the one job.
    gpus_per_node: Of `pretrain`: processes a node.
    """
    from biobench.runs.slurm import SlurmJob, array_script, pretraining_script, pretraining_words

    command, *arguments = words
    job = SlurmJob(
        time=time, partition=partition, gpu=gpu, cpus=cpus, grace=grace, setup=setup, sbatch=sbatch
    )
    if command == "run":
        if nodes is not None:
            raise UsageError(
                "--nodes is for `pretrain`", hint="leave it out; --workers says how many"
            )
        from biobench.cli.runs import run

        (parser := typer.Typer()).command()(run)
        # a mistake is reported here, not by jobs
        typer.main.get_command(parser).make_context("biobench run", list(arguments))
        script = array_script(job, arguments, workers)
    elif command == "pretrain":
        if nodes is None:
            raise UsageError(
                "how many nodes is not said", hint="add --nodes 2, before the two dashes"
            )
        recipe, out, options = pretraining_words(arguments)
        script = pretraining_script(
            job, recipe, out, nodes=nodes, gpus=gpus_per_node, options=options
        )
    else:
        raise UsageError(
            f"slurm starts no '{command}'", hint="biobench slurm --time 60 -- run MODEL --suite fr"
        )
    typer.echo(script, nl=False)


def status(results_dir: StoredResults = "results", as_json: Json = False) -> None:
    """Runs that are done, running (where, since when, time left), failed, stopped or corrupt; from
    any machine.
    """
    from biobench.runs.status import folder_state

    state = folder_state(results_dir)
    numbers = ", ".join(f"{count} {name}" for name, count in state.counts().items())
    lines = [f"{state.results_dir}: {numbers}"]
    for name in ("running", "stopped", "failed", "corrupt"):
        for run in state.runs:
            if run.state == name:
                lines.append(f"{name}: {_line(run)}")
    answer(as_json, state.as_json(), lines)


def _line(run: FolderRun) -> str:
    """One run: its name, and where it is or why it ended."""
    from biobench.core.progress import about

    line = f"{run.task} · {run.key[:8]}"
    if run.state == "running" and run.started is not None:
        started = datetime.datetime.fromtimestamp(run.started).astimezone()
        process = f"pid {run.pid}"
        if run.job:
            process += f", job {run.job}"
        line += f" on {run.host} ({process}) since {started.isoformat(' ', timespec='minutes')}"
        if run.steps:
            line += f", step {run.step}/{run.steps}"
        if run.seconds_left is not None:
            line += f", {about(run.seconds_left)} left"
    if run.state == "stopped":
        line += ": begun, and resumed by the next process that makes it"
    if run.reason:
        line += f": {run.reason}"
    return line
