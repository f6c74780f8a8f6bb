"""Batch scripts for Slurm. Pure text: nothing here asks a cluster."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from biobench.core.stop import STOPPED_EXIT
from biobench.errors import UsageError

_TIME = re.compile(r"\d+(:\d{2}){0,2}|\d+-\d{1,2}(:\d{2}){0,2}")
_PORT = 29_500


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """What the batch system is asked for. time: as sbatch reads it. gpu: the cluster's name of a
    kind of GPU, or any.

    grace: seconds between the signal that ends a job at a savepoint and the limit. setup: shell
    lines before the command, such as `module load` or the activation of an environment. sbatch:
    further options of sbatch.
    """

    time: str
    partition: str | None
    gpu: str | None
    cpus: int
    grace: int
    setup: Sequence[str]
    sbatch: Sequence[str]

    def header(
        self, *, output: str, signal: str, gpus: int, lines: Sequence[str] = ()
    ) -> list[str]:
        """The `#SBATCH` lines. gpus: on each node.

        Raises UsageError for what sbatch would refuse, or would read as another line of the script.
        """
        if not _TIME.fullmatch(self.time):
            raise UsageError(
                f"--time '{self.time}' is not a time limit", hint="minutes, HH:MM:SS or D-HH:MM:SS"
            )
        if not 10 <= self.grace <= 65_535:
            raise UsageError(f"--grace {self.grace} is out of range", hint="10 to 65535 seconds")
        wishes = ["--job-name=biobench", f"--time={self.time}"]
        if self.partition:
            wishes.append(f"--partition={self.partition}")
        if self.gpu == "any":
            wishes.append(f"--gres=gpu:{gpus}")
        elif self.gpu:
            wishes.append(f"--gres=gpu:{self.gpu}:{gpus}")
        wishes += [
            f"--cpus-per-task={self.cpus}",
            *lines,
            "--requeue",
            "--open-mode=append",
            f"--signal={signal}TERM@{self.grace}",
            f"--output={LOGS}/{output}",
            *self.sbatch,
        ]
        for wish in wishes:
            if not re.fullmatch(r"--[\w-]+(=[\w.,:/+%@-]+)?", wish):
                raise UsageError(
                    f"'{wish}' is no option of sbatch", hint="for example --sbatch=--account=NAME"
                )
        return ["#!/bin/bash", *(f"#SBATCH {wish}" for wish in wishes)]


LOGS = "logs"
"""Folder of output files."""
_TRIES = 3
_WORKER = f"""\
# TERM comes before the time limit and at preemption: the run saves its state and ends with
# {STOPPED_EXIT}.
stopped=0
child=
trap 'stopped=1; kill -TERM $child 2>/dev/null' TERM
%s &
child=$!
while :; do
    stopped=0
    wait "$child"
    status=$?
    [ "$stopped" -eq 0 ] && break
done
# What was stopped continues in another job; what was killed is tried again {_TRIES} times.
# Requeued by its index: one job of an array has the number of the array, by which scontrol would
# requeue them all.
tries=${{SLURM_RESTART_COUNT:-0}}
if [ "$status" -eq {STOPPED_EXIT} ] ||
    {{ [ "$status" -gt 128 ] && [ "$tries" -lt {_TRIES} ]; }}; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$status"
"""


def array_script(job: SlurmJob, words: Sequence[str], workers: int) -> str:
    """A job array of identical workers, which divide the runs of one command by their claims.
    words: after `run`.

    All share the number of the array as start token, so that with --force a late or requeued worker
    re-runs nothing that another has made. A worker that finds only runs of others at work ends, and
    frees its place.
    """
    command = f'biobench run --start-token "$SLURM_ARRAY_JOB_ID" --no-wait {shlex.join(words)}'
    header = job.header(output="%x-%A_%a.out", signal="B:", gpus=1, lines=[f"--array=1-{workers}"])
    remark = f"# before: mkdir -p {LOGS}"
    return "\n".join([*header, remark, "set -u", *job.setup, _WORKER % command])


def pretraining_words(words: list[str]) -> tuple[str, str, list[str]]:
    """Recipe, folder of the run and further options, of the words after `pretrain`. Raises
    UsageError, also for a word that would end a comment of the script.
    """
    for word in words:
        if not word.isprintable():
            raise UsageError(
                f"'{word}' holds a line end or another sign that is not printed",
                hint="choose another name",
            )
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--out", default="runs/pretraining")
    for option in ("--resume", "--built-corpus"):  # the script gives these itself
        parser.add_argument(option, action="store_true")
    if words[:1] == ["run"]:
        words = words[1:]
    parsed, unparsed = parser.parse_known_args(words)
    if not unparsed or unparsed[0].startswith("-"):
        raise UsageError(
            "no recipe is named",
            hint="biobench slurm --nodes 2 --time 60 -- pretrain RECIPE --out DIR",
        )
    return unparsed[0], parsed.out, unparsed[1:]


def pretraining_script(
    job: SlurmJob, recipe: str, out: str, *, nodes: int, gpus: int, options: Sequence[str]
) -> str:
    """One job that pretrains on `nodes` nodes of `gpus` processes; requeued, it resumes. The corpus
    is built before.

    `srun` starts the processes with the variables that torchrun would set, so that the signal
    before the time limit reaches each of them, and their exit status the script. When the first has
    ended the others have five minutes, in which a state is saved.
    """
    lines = [f"--nodes={nodes}", f"--ntasks-per-node={gpus}"]
    header = job.header(output="%x-%j.out", signal="", gpus=gpus, lines=lines)
    ranks = (
        f"RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS LOCAL_RANK=$SLURM_LOCALID "
        f"LOCAL_WORLD_SIZE={gpus}"
    )
    command = shlex.join(["biobench", "pretrain", recipe, "--out", out, "--built-corpus", *options])
    process = shlex.quote(f"{ranks} exec {command} $resume")
    before = [
        f"# before, on one machine: mkdir -p {LOGS}",
        f"# before, on one machine: {corpus_command(recipe, out, options)}",
    ]
    steps = _PRETRAINING % (shlex.quote(out), process)
    return "\n".join([*header, *before, "set -u", *job.setup, steps])


_PRETRAINING = f"""\
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$(({_PORT} + SLURM_JOB_ID %% 1000))
export MASTER_ADDR MASTER_PORT
resume=$([ -d %s ] && echo --resume)
export resume
srun --kill-on-bad-exit=0 --wait=300 bash -c %s &
child=$!
wait "$child"
status=$?
if [ "$status" -eq {STOPPED_EXIT} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""


def corpus_command(recipe: str, out: str, options: Sequence[str]) -> str:
    """What builds the corpus of the recipe where the run looks for it: in a folder next to its
    own."""
    parent = out.rstrip("/").rpartition("/")[0] or "."
    return shlex.join(
        ["biobench", "corpus", "build", recipe, "--cache", f"{parent}/corpora", *options]
    )
