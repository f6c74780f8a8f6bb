"""The script that `biobench slurm --nodes` prints, run on this machine: two nodes of two processes each."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.cli_make import SCRIPT, process
from trainer import api
from trainer.ledger import read_ledger
from trainer.train.progress import read_metrics

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SRUN = """\
#!/bin/bash
# Slurm's own starts the tasks on their nodes; this one starts all of them here, with the variables that a task reads.
while [[ $1 == --* ]]; do shift; done
for task in 0 1 2 3; do
    SLURM_PROCID=$task SLURM_NTASKS=4 SLURM_LOCALID=$((task % 2)) SLURM_NODEID=$((task / 2)) "$@" &
done
status=0
for job in $(jobs -p); do wait "$job" || status=$?; done
exit $status
"""
SCONTROL = """\
#!/bin/bash
[[ $1 == requeue ]] && echo "requeued $2" >> requeued && exit
printf '127.0.0.1\\nsecond\\n'
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a job finds: the program on its path, no variables of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BIOBENCH_")}
    path = f"{folder / 'bin'}:{SCRIPT.parent}:{kept['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def script(folder: Path, small: list[str], *more: str) -> str:
    """What the command prints, for a run below `folder`; nothing but overrides is added."""
    sets = [part for field in small if not field.startswith("corpus.cache") for part in ("--set", field)]
    options = ("--nodes", "2", "--gpus-per-node", "2", "--time", "60", *more)
    command = ("pretrain", "toy_detour", "--out", "runs/model", "--quiet", *sets)
    printed = process("slurm", *options, "--", *command, cwd=folder)
    assert printed.status == 0, printed.err
    return printed.out


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its inode and time, but for locks and the note that the shards were proved."""
    return {
        str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns)
        for p in folder.rglob("*")
        if p.is_file() and p.suffix != ".lock" and p.name != "verified.json"
    }


def build_as_it_says(text: str, folder: Path) -> Path:
    """Run the command that the script names for before; the folder of corpora."""
    (command,) = re.findall(r"^# before, on one machine: (biobench corpus build .*)$", text, re.MULTILINE)
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "runs" / "corpora"


def equals_one_process(folder: Path, small: list[str], steps: int = 20) -> None:
    """The same ledger, losses and weights as one process that was never interrupted."""
    sets = [field for field in small if not field.startswith("corpus.cache")]
    api.pretrain("toy_detour", out=folder / "runs" / "one", overrides=sets, progress="none", built_corpus=True)
    one, four = folder / "runs" / "one", folder / "runs" / "model"
    assert read_ledger(four).world_sizes == (4,)
    assert api.ledger_diff(one, four).matched
    losses = [
        [line["loss"] for line in read_metrics(out / "metrics.jsonl") if line["event"] == "train"]
        for out in (one, four)
    ]
    assert len(losses[0]) == steps
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    a, b = (load_file(out / "model" / "model.safetensors") for out in (one, four))
    assert a.keys() == b.keys()
    for name, value in a.items():
        torch.testing.assert_close(value, b[name], rtol=1e-4, atol=1e-4)


def test_the_batch_script_of_two_nodes(small: list[str], tmp_path: Path) -> None:
    """With a stand-in for `srun`; the processes, their group and their corpus are real."""
    text = script(tmp_path, small)
    (tmp_path / "job.sh").write_text(text)
    (tmp_path / "bin").mkdir()
    for name, content in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / "bin" / name).write_text(content)
        (tmp_path / "bin" / name).chmod(0o755)
    corpora = build_as_it_says(text, tmp_path)
    before = files(corpora)
    # the script's port is 29500 and the last three digits of the job's number
    job = environment(tmp_path, SLURM_JOB_ID=str(os.getpid()), SLURM_JOB_NODELIST="first,second")
    done = subprocess.run(
        ["bash", "job.sh"], cwd=tmp_path, env=job, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not (tmp_path / "requeued").exists()
    assert files(corpora) == before, "the job reads the corpus and builds nothing"
    equals_one_process(tmp_path, small)
