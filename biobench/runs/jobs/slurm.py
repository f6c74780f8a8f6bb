"""Batch scripts for Slurm. Pure text: nothing here asks a cluster."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from biobench.core.stop import STOPPED_EXIT
from biobench.errors import UsageError
from biobench.runs.jobs.plan_file import PlanFile

_TIME = re.compile(r"\d+(:\d{2}){0,2}|\d+-\d{1,2}(:\d{2}){0,2}")
_PORT = 29_500
_LAST = 1000
"""The largest number of a job in an array, unless the cluster's `MaxArraySize` is more than its default, 1001."""


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """What the batch system is asked for. time: as sbatch reads it. gpu: the cluster's name of a kind of GPU, or any.

    grace: seconds between the signal that ends a job at a savepoint and the limit. setup: shell lines before the
    command, such as `module load` or the activation of an environment. logs: folder of output files.
    """

    time: str
    partition: str | None = None
    account: str | None = None
    gpu: str | None = None
    cpus: int = 4
    memory: str | None = None
    grace: int = 120
    setup: Sequence[str] = ()
    logs: str = "logs"
    name: str = "biobench"

    def __post_init__(self) -> None:
        """Raises UsageError for what sbatch would refuse, or would read as another line of the script."""
        if not _TIME.fullmatch(self.time):
            raise UsageError(f"--time '{self.time}' is not a time limit", hint="minutes, HH:MM:SS or D-HH:MM:SS")
        for option, value in (
            ("--partition", self.partition),
            ("--account", self.account),
            ("--gpu", self.gpu),
            ("--memory", self.memory),
            ("--logs", self.logs),
            ("--name", self.name),
        ):
            if value is not None and not re.fullmatch(r"[\w.,:/+-]+", value):
                raise UsageError(f"{option} '{value}' has characters that a batch script cannot hold", hint="rename it")
        if not 10 <= self.grace <= 65_535:
            raise UsageError(f"--grace {self.grace} is out of range", hint="10 to 65535 seconds")

    @property
    def seconds(self) -> int:
        """From the start of a job to the signal that ends it."""
        days, dash, rest = self.time.rpartition("-")
        parts = [int(part) for part in rest.split(":")]
        # minutes, minutes:seconds or hours:minutes:seconds; behind days hours come first
        hours, minutes, seconds = parts if len(parts) == 3 else [*parts, 0, 0][:3] if dash else [0, *parts, 0][:3]
        return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds - self.grace

    def header(self, *, output: str, signal: str, gpus: int, lines: Sequence[str] = ()) -> list[str]:
        """The `#SBATCH` lines. gpus: on each node."""
        kind = f"gpu:{gpus}" if self.gpu in (None, "any") else f"gpu:{self.gpu}:{gpus}"
        wishes = [
            f"--job-name={self.name}",
            *([f"--partition={self.partition}"] if self.partition else []),
            *([f"--account={self.account}"] if self.account else []),
            f"--time={self.time}",
            *([f"--gres={kind}"] if self.gpu else []),
            f"--cpus-per-task={self.cpus}",
            *([f"--mem={self.memory}"] if self.memory else []),
            *lines,
            "--requeue",
            "--open-mode=append",
            f"--signal={signal}TERM@{self.grace}",
            f"--output={self.logs}/{output}",
        ]
        return ["#!/bin/bash", *(f"#SBATCH {wish}" for wish in wishes)]


_TRIES = 3
_TRAP = f"""\
# TERM comes before the time limit and at preemption: the run saves its state and ends with {STOPPED_EXIT}.
stopped=0
child=
trap 'stopped=1; kill -TERM $child 2>/dev/null' TERM"""
# requeued as ARRAY_INDEX: one job of an array has the array's own number, by which scontrol would requeue them all
_WAIT = f"""\
while :; do
    stopped=0
    wait "$child"
    status=$?
    [ "$stopped" -eq 0 ] && break
done
# what was stopped continues in another job; what was killed is tried again {_TRIES} times
tries=${{SLURM_RESTART_COUNT:-0}}
if [ "$status" -eq {STOPPED_EXIT} ] || {{ [ "$status" -gt 128 ] && [ "$tries" -lt {_TRIES} ]; }}; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$status"
"""


def array_script(
    job: SlurmJob, plan: str, parts: int, *, shard: bool, options: Sequence[str], at_once: int | None
) -> str:
    """A job array that runs a plan. parts: jobs in the array, a run each, or with `shard` a shard each.

    options: further ones of `biobench run`. at_once: jobs under way at a time, at most.
    """
    if parts < 1:
        raise UsageError("the plan has no runs", hint="make a plan with runs in it")
    first, last = (1, parts) if shard else (0, parts - 1)
    large = [f"# a cluster whose MaxArraySize is not above {last} needs `--shards`"] if last > _LAST else []
    limit = f"%{at_once}" if at_once else ""
    part = ["--shard", f"$SLURM_ARRAY_TASK_ID/{parts}"] if shard else ["--array-index", "$SLURM_ARRAY_TASK_ID"]
    command = shlex.join(["biobench", "run", "--plan", plan, *options]) + f' {part[0]} "{part[1]}"'
    header = job.header(output="%x-%A_%a.out", signal="B:", gpus=1, lines=[f"--array={first}-{last}{limit}"])
    return "\n".join(
        [
            *header,
            *large,
            f"# before: mkdir -p {shlex.quote(job.logs)}",
            "set -u",
            *job.setup,
            _TRAP,
            f"{command} &",
            "child=$!",
            _WAIT,
        ]
    )


def without_end(plan: PlanFile, job: SlurmJob) -> dict[str, float]:
    """Tasks whose longest run, in seconds, is stopped before its end and begins anew, again and again."""
    anew = {task.id for task in plan.tasks if not task.resumes}
    longest: dict[str, float] = {}
    for run in plan.runs:
        if run.task in anew and run.seconds is not None and run.seconds > job.seconds:
            longest[run.task] = max(run.seconds, longest.get(run.task, 0.0))
    return longest


def pretraining_script(job: SlurmJob, recipe: str, out: str, *, nodes: int, gpus: int, options: Sequence[str]) -> str:
    """One job that pretrains on `nodes` nodes of `gpus` processes; requeued, it resumes. The corpus is built before.

    `srun` starts the processes with the variables that torchrun would set, so that the signal before the time limit
    reaches each of them, and their exit status the script. When the first has ended the others have five minutes, in
    which a state is saved.
    """
    lines = [f"--nodes={nodes}", f"--ntasks-per-node={gpus}"]
    header = job.header(output="%x-%j.out", signal="", gpus=gpus, lines=lines)
    ranks = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID LOCAL_WORLD_SIZE=" + str(gpus)
    command = shlex.join(["biobench", "pretrain", recipe, "--out", out, "--built-corpus", *options])
    return "\n".join(
        [
            *header,
            f"# before, on one machine: mkdir -p {shlex.quote(job.logs)}",
            f"# before, on one machine: {corpus_command(recipe, out, options)}",
            "set -u",
            *job.setup,
            'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            f"MASTER_PORT=$(({_PORT} + SLURM_JOB_ID % 1000))",
            "export MASTER_ADDR MASTER_PORT",
            f"resume=$([ -d {shlex.quote(out)} ] && echo --resume)",
            "export resume",
            f"srun --kill-on-bad-exit=0 --wait=300 bash -c {shlex.quote(f'{ranks} exec {command} $resume')} &",
            "child=$!",
            'wait "$child"',
            "status=$?",
            f'if [ "$status" -eq {STOPPED_EXIT} ]; then',
            '    scontrol requeue "$SLURM_JOB_ID"',
            "fi",
            'exit "$status"',
            "",
        ]
    )


def torchrun_script(recipe: str, out: str, *, nodes: int, gpus: int, options: Sequence[str]) -> str:
    """The same without a batch system: what to start on each node, with the first node's name and perhaps a port."""
    command = shlex.join(["-m", "biobench", "pretrain", recipe, "--out", out, "--built-corpus", *options])
    return "\n".join(
        [
            "#!/bin/bash",
            f"# On each of the {nodes} nodes: bash THIS_FILE NODE [PORT], the name or address of the first.",
            f"# before, on one machine: {corpus_command(recipe, out, options)}",
            "set -u",
            f"resume=$([ -d {shlex.quote(out)} ] && echo --resume)",
            f"exec torchrun --nnodes={nodes} --nproc-per-node={gpus} --rdzv-id=biobench --rdzv-backend=c10d \\",
            f'    --rdzv-endpoint="$1:${{2:-{_PORT}}}" {command} $resume',
            "",
        ]
    )


def corpus_command(recipe: str, out: str, options: Sequence[str]) -> str:
    """What builds the recipe's corpus where the run looks for it: in a folder beside its own."""
    parent = out.rstrip("/").rpartition("/")[0] or "."
    return shlex.join(["biobench", "corpus", "build", recipe, "--cache", f"{parent}/corpora", *options])
