"""`biobench slurm`: scripts that bash accepts, that hand a signal on and ask for another try."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.runs.jobs.slurm import SlurmJob, array_script
from tests.helpers.cli_make import Said

Command = Callable[..., Said]
FAST = ("--limit", "24", "--set", "training.epochs=1", "--device", "cpu")


@pytest.fixture
def plan(biobench: Command, tiny: Path) -> str:
    said = biobench("plan", tiny, "--task", "demo_ner", "--seeds", "1-5", *FAST, "-o", "my plan.json")
    assert said.status == 0, said.err
    return "my plan.json"


def accepted(script: str) -> None:
    """bash can read it."""
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_array_of_runs(biobench: Command, plan: str) -> None:
    said = biobench(
        *("slurm", plan, "--time", "04:00:00", "--partition", "gpu_p5", "--gpu", "h100", "--at-once", "16"),
        *("--grace", "300", "--setup", "module load python", "--option=--offline", "--account", "abc@h100"),
    )
    assert "--account 'abc@h100' has characters" in said.refusal()
    said = biobench(
        *("slurm", plan, "--time", "04:00:00", "--partition", "gpu_p5", "--gpu", "h100", "--at-once", "16"),
        *("--grace", "300", "--setup", "module load python", "--option=--offline"),
    )
    accepted(said.out)
    wishes = re.findall(r"^#SBATCH (.*)$", said.out, re.MULTILINE)
    assert {"--partition=gpu_p5", "--time=04:00:00", "--gres=gpu:h100:1", "--array=0-4%16"} <= set(wishes)
    assert {"--requeue", "--signal=B:TERM@300", "--output=logs/%x-%A_%a.out"} <= set(wishes)
    assert "module load python\n" in said.out
    assert "biobench run --plan 'my plan.json' --offline --array-index \"$SLURM_ARRAY_TASK_ID\" &" in said.out


def test_an_array_of_shards_without_a_gpu(biobench: Command, plan: str) -> None:
    out = biobench("slurm", plan, "--time", "60", "--shards", "3").out
    accepted(out)
    assert "#SBATCH --array=1-3\n" in out
    assert '--shard "$SLURM_ARRAY_TASK_ID/3" &' in out
    assert "gres" not in out
    # no more jobs than runs
    assert "#SBATCH --array=1-5\n" in biobench("slurm", plan, "--time", "60", "--shards", "1000000000").out


@pytest.mark.parametrize(("parts", "shard", "said"), [(1001, False, False), (1002, False, True), (1001, True, True)])
def test_an_array_that_many_clusters_refuse_says_so(parts: int, shard: bool, said: bool) -> None:
    script = array_script(SlurmJob(time="60"), "plan.json", parts, shard=shard, options=(), at_once=None)
    assert ("# a cluster whose MaxArraySize is not above 1001 needs `--shards`" in script) == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time", "soon"), "--time 'soon' is not a time limit"),
        (("--time", "60", "--partition", "a\n#SBATCH --x"), "--partition"),
        (("--time", "60", "--grace", "1"), "--grace 1 is out of range"),
        (("--time", "60", "--torchrun"), "--torchrun goes with --nodes"),
    ],
)
def test_what_it_refuses(biobench: Command, plan: str, arguments: tuple[str, ...], message: str) -> None:
    assert message in biobench("slurm", plan, *arguments).refusal()


def test_pretraining_on_nodes(biobench: Command) -> None:
    said = biobench(
        *("slurm", "toy_detour", "--nodes", "2", "--gpus-per-node", "4", "--time", "1-00:00:00", "--gpu", "any"),
        *("--out", "runs/detour"),
    )
    accepted(said.out)
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4", "#SBATCH --gres=gpu:4"} <= set(said.out.splitlines())
    assert "biobench corpus build toy_detour --cache runs/corpora" in said.out
    assert "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS" in said.out
    both = biobench(
        *("slurm", "toy_detour", "--nodes", "2", "--gpus-per-node", "4", "--time", "60"),
        *("--out", "runs/detour", "--torchrun"),
    ).out
    accepted(both)
    assert "torchrun --nnodes=2 --nproc-per-node=4" in both


FAKE = """#!/bin/bash
echo "$0 $*" >> calls
"""
RUN = """#!/bin/bash
trap 'echo saved >> calls; exit 75' TERM
echo started >> calls
for n in $(seq 600); do sleep 0.1; done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_signal_is_handed_on_and_the_job_requeued(biobench: Command, plan: str, tmp_path: Path) -> None:
    """The script itself, with stand-ins for `biobench` and `scontrol`."""
    (tmp_path / "job.sh").write_text(biobench("slurm", plan, "--time", "60").out)
    (tmp_path / "bin").mkdir()
    for name, text in (("biobench", RUN), ("scontrol", FAKE)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "17"}
    array = {"SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}
    process = subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env={**env, **array})
    try:
        until = time.monotonic() + 20
        while not (tmp_path / "calls").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 75
    finally:
        process.kill()
        process.wait()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[:2] == ["started", "saved"]
    assert calls[2].endswith("scontrol requeue 17_3"), "17 alone would be the whole array"


def test_a_script_names_a_checkpoints_own_code(biobench: Command, tiny: Path) -> None:
    biobench("plan", tiny, "--task", "demo_ner", "--seeds", "1", *FAST, "--trust-remote-code", "-o", "plan.json")
    assert "asks for the checkpoint's own code" in biobench("slurm", "plan.json", "--time", "60").refusal()
    said = biobench("slurm", "plan.json", "--time", "60", "--option=--trust-remote-code")
    assert "biobench run --plan plan.json --trust-remote-code --array-index" in said.out
    assert "own code" in biobench("run", "--plan", "plan.json", "--array-index", "0").refusal()
