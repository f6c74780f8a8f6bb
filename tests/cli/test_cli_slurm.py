"""`biobench slurm`: scripts that bash accepts, that hand a signal on and ask for another try."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

WORKER = "-- run dummy --task demo_ner"


def accepted(script: str) -> None:
    """bash can read it."""
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_array_of_workers(biobench):
    options = "--time 04:00:00 --partition gpu_p5 --gpu h100 --workers 16 --grace 300"
    command = "-- run 'org/my model' --suite fr --force --offline"
    out = biobench(
        "slurm", options, "--setup 'module load python' --sbatch=--account=abc@h100", command
    ).out
    accepted(out)
    wishes = set(re.findall(r"^#SBATCH (.*)$", out, re.MULTILINE))
    asked = {
        "--partition=gpu_p5",
        "--time=04:00:00",
        "--gres=gpu:h100:1",
        "--array=1-16",
        "--account=abc@h100",
    }
    assert wishes >= asked | {"--requeue", "--signal=B:TERM@300", "--output=logs/%x-%A_%a.out"}
    assert "module load python\n" in out
    shared = 'biobench run --start-token "$SLURM_ARRAY_JOB_ID" --no-wait'
    assert f"\n{shared} 'org/my model' --suite fr --force --offline &\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time soon", WORKER), "--time 'soon' is not a time limit"),
        (("--time 60 --partition 'a\n#SBATCH --x'", WORKER), "is no option of sbatch"),
        (("--time 60 --sbatch account=x", WORKER), "'account=x' is no option of sbatch"),
        (("--time 60 --grace 1", WORKER), "--grace 1 is out of range"),
        (("--time 60 --nodes 2", WORKER), "--nodes is for `pretrain`"),
        (("--time 60", WORKER, "--sedes 1"), "No such option: --sedes"),
        (("--time 60 -- report",), "slurm starts no 'report'"),
        (("--time 60 -- pretrain toy_detour",), "how many nodes is not said"),
        (("--time 60 --nodes 2 -- pretrain --out x",), "no recipe is named"),
        (
            ("--time 60 --nodes 2 -- pretrain r --out 'x\nrm -rf y'",),
            "holds a line end",
        ),
    ],
)
def test_what_it_refuses(biobench, arguments, message):
    assert message in biobench("slurm", *arguments).refusal()


def test_pretraining_on_nodes(biobench):
    options = "--nodes 2 --gpus-per-node 4 --time 1-00:00:00 --gpu any"
    command = "-- pretrain toy_detour --out runs/detour --resume --set engine.seed=3"
    out = biobench("slurm", options, command).out
    accepted(out)
    for line in (
        "#SBATCH --nodes=2\n",
        "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --gres=gpu:4\n",
        "biobench corpus build toy_detour --cache runs/corpora --set engine.seed=3\n",
        "--out runs/detour --built-corpus --set engine.seed=3 $resume",
        "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS",
    ):
        assert line in out


FAKE = '#!/bin/bash\necho "$0 $*" >> calls\n'
RUN = """#!/bin/bash
trap 'echo saved >> calls; exit 75' TERM
echo started >> calls
for n in $(seq 600); do sleep 0.1; done
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_signal_is_handed_on_and_the_job_requeued(biobench, tmp_path):
    """The script itself, with stand-ins for `biobench` and `scontrol`."""
    (tmp_path / "job.sh").write_text(biobench("slurm --time 60", WORKER).out)
    (tmp_path / "bin").mkdir()
    for name, text in (("biobench", RUN), ("scontrol", FAKE)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    array = {"SLURM_JOB_ID": "17", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **array}
    process = subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env=env)
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
