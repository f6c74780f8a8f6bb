"""Two processes give the golden curve, under DDP and FSDP2, and hand a run over to one and back;
Slurm's script.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.cli_make import SCRIPT, process
from tests.helpers.trainer_make import train
from tests.helpers.two_processes import GOLDEN, curve, two_processes
from trainer import api
from trainer.ledger import read_ledger
from trainer.train.progress import Tick


def test_ddp_gives_the_golden_curve_and_one_process_takes_over(
    small: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "ddp"
    two_processes(out, small)
    assert curve(out) == pytest.approx(GOLDEN, abs=1e-5)
    taken = shutil.copytree(out, tmp_path / "taken")
    shutil.rmtree(taken / "model")
    (taken / "ledger.json").unlink()
    (taken / "checkpoints" / "latest").write_text("end-1-detour")
    assert train(taken, small, resume=True).ledger.world_sizes == (2, 1)
    assert curve(taken) == pytest.approx(GOLDEN, abs=1e-5)
    a, b = (load_file(run / "model" / "model.safetensors") for run in (out, taken))
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_fsdp2_continues_a_stopped_single_process_on_the_golden_curve(
    small: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "fsdp"

    def listen(tick: Tick) -> None:
        if tick.done == 9:
            os.kill(os.getpid(), signal.SIGTERM)

    assert train(out, small, progress=listen).status == "preempted"
    assert len(curve(out)) == 10
    two_processes(out, [*small, "engine.distributed=fsdp2", "batch.micro=2"], "--resume")
    assert curve(out) == pytest.approx(GOLDEN, abs=1e-5)


@pytest.mark.parametrize("strategy", [pytest.param("ddp", marks=pytest.mark.slow), "fsdp2"])
def test_freezing_thawing_and_isolation_are_the_same_on_two_processes(
    strategy: str, small: list[str], tmp_path: Path
) -> None:
    phases = ("phases.0.freeze={layers: '0-1'}", "phases.1.isolate_documents=true")
    overrides = [*small, *phases, f"engine.distributed={strategy}"]
    one = train(tmp_path / "one", overrides).ledger
    two_processes(tmp_path / "two", overrides)
    assert curve(tmp_path / "two") == pytest.approx(curve(tmp_path / "one"), abs=1e-5)
    folders = ("two/phases/detour", "two/model", "one/phases/detour")
    frozen, final, same = (load_file(tmp_path / folder / "model.safetensors") for folder in folders)
    for name, value in frozen.items():
        if name.startswith(("model.layers.0.", "model.layers.1.")):
            assert torch.equal(value, same[name])
            assert not torch.equal(value, final[name])
    assert api.ledger_diff(tmp_path / "one", tmp_path / "two").matched
    two = read_ledger(tmp_path / "two")
    assert (two.world_sizes, two.distributed) == ((2,), strategy)
    for mine, theirs in zip(one.phases, two.phases, strict=True):
        assert mine.targets == theirs.targets, "of both processes"
        assert mine.validation_loss == pytest.approx(theirs.validation_loss, abs=1e-5)


ROOT = Path(__file__).resolve().parents[2]
SRUN = """\
#!/bin/bash
# Slurm's own starts the tasks on their nodes; this one starts all of them here, with the
# variables that a task reads.
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
    done = subprocess.run(
        ["bash", *command], cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
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
    (build,) = re.findall(
        r"^# before, on one machine: (biobench corpus build .*)$", printed.out, re.MULTILINE
    )
    bash(tmp_path, "-c", build)
    # the script's port is 29500 and the last three digits of the job's number
    bash(tmp_path, "job.sh", SLURM_JOB_ID=str(os.getpid()), SLURM_JOB_NODELIST="first,second")
    assert not (tmp_path / "requeued").exists()
    one, four = tmp_path / "runs" / "one", tmp_path / "runs" / "four"
    train(one, fields, built_corpus=True)
    assert read_ledger(four).world_sizes == (4,)
    assert api.ledger_diff(one, four).matched
    assert curve(four) == pytest.approx(curve(one), abs=1e-5)
