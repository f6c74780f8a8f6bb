"""A real Slurm of three nodes: workers share twelve runs, one is killed, one's node is lost, one meets its time limit.

apt-get install slurm-wlm munge
pytest -m slow tests/runs/test_slurm_real.py      # some minutes: time limits count in minutes
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from biobench.store import Store
from tests.helpers.cli_make import SCRIPT, process
from tests.helpers.slurm_make import Slurm, slurm_cluster, wait_for, why_not
from tests.helpers.tiny import make_tiny_encoder

ROOT = Path(__file__).resolve().parents[2]
NODES = ("n1", "n2", "n3")
TASKS = {"short": ("1-10", 3), "middle": ("1", 20), "long": ("1", 180)}
"""Seeds and epochs."""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Nodes of one CPU, so that each has one job."""
    with slurm_cluster(tmp_path_factory.mktemp("slurm"), NODES, 1) as cluster:
        yield cluster


def prepared(folder: Path) -> Counter[str]:
    """A batch script in the folder; how many runs each task has."""
    make_tiny_encoder(folder / "tiny")
    spec = (ROOT / "tasks" / "demo" / "demo_topic.yaml").read_text(encoding="utf-8")
    for name, (seeds, epochs) in TASKS.items():
        text = spec.replace("id: demo_topic", f"id: {name}").replace("seeds: 42-43", f"seeds: {seeds}")
        (folder / f"{name}.yaml").write_text(text.replace("epochs: 8", f"epochs: {epochs}"))
    (folder / "logs").mkdir()
    setup = f"export PATH={SCRIPT.parent}:$PATH PYTHONPATH={ROOT} OMP_NUM_THREADS=1"
    # Slurm looks at limits twice a minute: the signal comes after 90 seconds, in which a slow machine starts a run
    options = ("--time", "2", "--grace", "15", "--cpus", "1", "--setup", setup, "--setup", "unset BIOBENCH_DATA_DIR")
    tasks = [word for name in TASKS for word in ("--task", f"{name}.yaml")]
    command = ("run", "tiny", *tasks, "--device", "cpu", "--threads", "1", "--no-gate")
    script = process("slurm", "--workers", "3", *options, "--", *command, cwd=folder)
    assert script.status == 0, script.err
    (folder / "job.sh").write_text(script.out)
    return Counter({"short": 10, "middle": 1, "long": 1})


@pytest.mark.parametrize("arrays", [1, 2])
def test_every_run_once_whatever_ends_a_task(slurm: Slurm, tmp_path: Path, arrays: int) -> None:
    """The second time with two arrays of the same command."""
    runs = prepared(tmp_path)
    submitted = [slurm("sbatch", "--parsable", "job.sh", cwd=tmp_path) for _ in range(arrays)]
    results = tmp_path / "results"

    def at_work(task: str) -> list[dict[str, str]]:
        """What the processes that make a run of the task say of themselves."""
        beats = [json.loads(p.read_text() or "{}") for p in results.glob(f"locks/{task}/*.running")]
        return [beat for beat in beats if beat]

    def why() -> str:
        logs = "\n".join(f"{p.name}: {p.read_text()[-500:]}" for p in sorted((tmp_path / "logs").iterdir()))
        return f"{slurm('squeue')}\n{slurm('sinfo', '-N')}\n{logs}"

    # the longest runs come first, so the middle one has a node of its own from the beginning
    wait_for(lambda: at_work("middle"), why)
    lost = slurm("squeue", "-h", "-j", at_work("middle")[0]["job"], "-o", "%N")
    slurm.lose(lost)

    def victims() -> list[dict[str, str]]:
        """Where there is one array, its job that has the array's own number: what requeues it must requeue no other."""
        return [beat for beat in at_work("short") if arrays > 1 or beat["job"] == submitted[0]]

    wait_for(victims, why)
    os.kill(int(victims()[0]["pid"]), signal.SIGKILL)
    wait_for(lambda: not slurm("squeue", "-h"), why)
    records = Store(results).records()
    assert Counter(record.task.id for record in records) == runs, why()
    (long,) = [record for record in records if record.task.id == "long"]
    assert long.training.resumed >= 1, "it was longer than its limit, and did not begin anew"
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert logs.count(": done") == 12, "each run was made once"
    assert "No error" not in logs, "a job requeued the whole array: scontrol then says of each what became of it"
    assert "Killed" in logs or "137" in logs
    assert slurm("sinfo", "-h", "-n", lost, "-o", "%t").startswith("down")
    status = process("status", cwd=tmp_path)
    assert status.out.startswith("results: 12 done, 0 running, 0 failed")
    assert not list(results.glob("locks/*/*.running"))
