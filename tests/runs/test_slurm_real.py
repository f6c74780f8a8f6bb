"""A real Slurm of one node on the loopback address: an array of twelve runs, one killed, one at its time limit.

apt-get install slurm-wlm munge
pytest -m slow tests/runs/test_slurm_real.py      # ten minutes: limits and requeues count in minutes
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from biobench.store import Store
from tests.helpers.cli_make import SCRIPT, process
from tests.helpers.ports import free_port
from tests.helpers.tiny import make_tiny_encoder

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "munged", "mungekey")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 1200.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"slurm-wlm and munge are not installed: no {', '.join(MISSING)}"),
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="slurmd needs root"),
]

CONFIGURATION = """\
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={control}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=20
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname={host} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


def wait_for(what: Callable[[], object], why: str) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, why
        time.sleep(0.5)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which sbatch finds the cluster."""
    folder = tmp_path_factory.mktemp("slurm")
    folder.chmod(0o755)
    for parent in folder.parents:  # munged refuses a socket below a folder that others may write
        if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
        if parent == Path("/"):
            break
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(folder=folder, control=free_port(), node=free_port(), host=socket.gethostname())
    )
    env = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "SLURM_CONF": str(folder / "slurm.conf")}
    subprocess.run(["mungekey", "--create", f"--keyfile={folder}/munge.key"], env=env, check=True)
    munged = [
        *("munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket"),
        *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"),
    ]
    daemons = [munged, ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-N", "localhost", "-c"]]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in daemons:
            with (folder / f"{command[0]}.out").open("w") as out:
                processes.append(subprocess.Popen(command, env=env, stdout=out, stderr=out))
            time.sleep(1.5)
            assert processes[-1].poll() is None, (folder / f"{command[0]}.out").read_text()
        wait_for(lambda: b"idle" in subprocess.run(["sinfo", "-h"], env=env, capture_output=True).stdout, "no node")
        yield env
    finally:
        for one in reversed(processes):
            one.terminate()
            try:
                one.wait(timeout=20)
            except subprocess.TimeoutExpired:
                one.kill()


def test_every_run_once_whatever_ends_a_task(slurm: dict[str, str], tmp_path: Path) -> None:
    make_tiny_encoder(tmp_path / "tiny")
    spec = (ROOT / "tasks" / "demo" / "demo_topic.yaml").read_text(encoding="utf-8")
    for name, seeds, epochs in (("short", "1-11", 1), ("long", "1", 60)):
        text = spec.replace("id: demo_topic", f"id: {name}").replace("seeds: 42-43", f"seeds: {seeds}")
        (tmp_path / f"{name}.yaml").write_text(text.replace("epochs: 8", f"epochs: {epochs}"))
    tasks = ("--task", "short.yaml", "--task", "long.yaml", "--device", "cpu", "--threads", "1", "--no-gate")
    planned = process("plan", "tiny", *tasks, cwd=tmp_path)
    assert planned.status == 0, planned.err
    (tmp_path / "logs").mkdir()
    setup = f"export PATH={SCRIPT.parent}:$PATH PYTHONPATH={ROOT} OMP_NUM_THREADS=1"
    options = ("--time", "1", "--grace", "15", "--cpus", "1", "--setup", setup, "--setup", "unset BIOBENCH_DATA_DIR")
    script = process("slurm", "plan.json", *options, cwd=tmp_path)
    assert script.status == 0, script.err
    (tmp_path / "job.sh").write_text(script.out)
    subprocess.run(["sbatch", "job.sh"], cwd=tmp_path, env=slurm, check=True, timeout=60)
    runs = {run["key"]: run["task"] for run in json.loads((tmp_path / "plan.json").read_text())["runs"]}
    assert len(runs) == 12
    results = tmp_path / "results"

    def at_work(task: str) -> list[int]:
        """Processes that make a run of the task."""
        beats = [json.loads(p.read_text() or "{}") for p in results.glob(f"locks/{task}/*.running")]
        return [beat["pid"] for beat in beats if beat]

    wait_for(lambda: at_work("short"), "no short run began")
    os.kill(at_work("short")[0], signal.SIGKILL)
    wait_for(lambda: len(list(results.glob("runs/*/*.json"))) == 12, describe(slurm, tmp_path))
    wait_for(lambda: not subprocess.run(["squeue", "-h"], env=slurm, capture_output=True).stdout, "jobs are left")
    records = Store(results).records()
    assert {record.key: record.task.id for record in records} == runs
    (long,) = [record for record in records if record.task.id == "long"]
    assert long.training.resumed >= 1, "it was longer than its limit, and did not begin anew"
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert logs.count(": done") == 12, "each run was made once"
    assert "Killed" in logs or "137" in logs
    status = process("status", "--plan", "plan.json", cwd=tmp_path)
    assert status.out.startswith("results: 12 done, 0 running, 0 failed")


def describe(slurm: dict[str, str], folder: Path) -> str:
    """What Slurm and the logs say, for a test that waits in vain."""
    queue = subprocess.run(["squeue"], env=slurm, capture_output=True, text=True).stdout
    logs = "\n".join(f"{p.name}: {p.read_text()[-500:]}" for p in sorted((folder / "logs").iterdir()))
    return f"{queue}\n{logs}\n{sys.version}"
