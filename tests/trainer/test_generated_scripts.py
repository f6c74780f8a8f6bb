"""The script that `biobench slurm --nodes` prints, run on this machine: two nodes of two processes each."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers.cli_make import SCRIPT, process
from tests.helpers.trainer_make import train
from tests.helpers.two_processes import curve
from trainer import api
from trainer.ledger import read_ledger

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


def bash(folder: Path, *command: str, **more: str) -> None:
    """As in a job: the program on its path, no variables of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BIOBENCH_")}
    path = f"{folder / 'bin'}:{SCRIPT.parent}:{kept['PATH']}"
    env = {**kept, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}
    done = subprocess.run(["bash", *command], cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_batch_script_of_two_nodes(small: list[str], tmp_path: Path) -> None:
    """With a stand-in for `srun`; the processes, their group and their corpus are real."""
    fields = [field for field in small if not field.startswith("corpus.cache")]
    sets = [part for field in fields for part in ("--set", field)]
    options = ("--nodes", "2", "--gpus-per-node", "2", "--time", "60")
    run = ("pretrain", "toy_detour", "--out", "runs/four", "--quiet", *sets)
    printed = process("slurm", *options, "--", *run, cwd=tmp_path)
    assert printed.status == 0, printed.err
    (tmp_path / "job.sh").write_text(printed.out)
    (tmp_path / "bin").mkdir()
    for name, content in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / "bin" / name).write_text(content)
        (tmp_path / "bin" / name).chmod(0o755)
    (build,) = re.findall(r"^# before, on one machine: (biobench corpus build .*)$", printed.out, re.MULTILINE)
    bash(tmp_path, "-c", build)
    # the script's port is 29500 and the last three digits of the job's number
    bash(tmp_path, "job.sh", SLURM_JOB_ID=str(os.getpid()), SLURM_JOB_NODELIST="first,second")
    assert not (tmp_path / "requeued").exists()
    one, four = tmp_path / "runs" / "one", tmp_path / "runs" / "four"
    train(one, fields, built_corpus=True)
    assert read_ledger(four).world_sizes == (4,)
    assert api.ledger_diff(one, four).matched
    assert curve(four) == pytest.approx(curve(one), abs=1e-5)
