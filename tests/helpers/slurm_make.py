"""A real Slurm of several nodes on this machine: a slurmd for each, with a port of its own on the loopback address.

apt-get install slurm-wlm munge
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers.ports import free_port

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "munged", "mungekey")
PATIENCE = 1200.0
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# a requeued job waits until its credential is out of date, which takes two minutes unless `cred_expire` says less
_CONFIGURATION = """\
ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
SlurmctldPort={control}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=20
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str | None:
    """Why this machine can run no Slurm; None where it can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"slurm-wlm and munge are not installed: no {', '.join(missing)}"
    return None if hasattr(os, "geteuid") and os.geteuid() == 0 else "slurmd needs root"


def wait_for(what: Callable[[], object], why: Callable[[], str]) -> None:
    """Look twice a second; `why` says what is the matter where it never comes."""
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, why()
        time.sleep(0.5)


@dataclass
class Slurm:
    """A running cluster. daemons: by the name of the node, or of the program."""

    folder: Path
    environment: dict[str, str]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __call__(self, *words: str, cwd: Path | None = None) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(
            words, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def begin(self, name: str, *words: str) -> None:
        """Start a daemon; its output stands in the folder."""
        with (self.folder / f"{name}.out").open("w") as out:
            self.daemons[name] = subprocess.Popen(words, env=self.environment, stdout=out, stderr=out)
        time.sleep(1.5)
        assert self.daemons[name].poll() is None, (self.folder / f"{name}.out").read_text()


@contextmanager
def slurm_cluster(folder: Path, nodes: Sequence[str], cpus: int) -> Iterator[Slurm]:
    """A cluster of nodes with these names, all of which are idle when it begins."""
    for parent in (folder, *folder.parents):  # munged refuses a socket below a folder that others may not enter
        if parent.stat().st_uid == os.geteuid() and parent not in (Path("/tmp"), Path("/")):
            parent.chmod(parent.stat().st_mode & ~0o022 | 0o055)
    for name in ("state", *(f"spool.{node}" for node in nodes)):
        (folder / name).mkdir()
    host = socket.gethostname()
    lines = [f"NodeName={n} NodeAddr=127.0.0.1 NodeHostname={host} Port={free_port()} CPUs={cpus}" for n in nodes]
    text = _CONFIGURATION.format(folder=folder, control=free_port(), nodes="\n".join(lines), names=",".join(nodes))
    (folder / "slurm.conf").write_text(text)
    slurm = Slurm(folder, {**os.environ, "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf")})
    slurm("mungekey", "--create", f"--keyfile={folder}/munge.key")
    places = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={folder}/munge.{ending}" for option, ending in places.items()]
    try:
        slurm.begin("munged", "munged", "--foreground", "--force", *options)
        slurm.begin("slurmctld", "slurmctld", "-D", "-c")
        for node in nodes:
            slurm.begin(node, "slurmd", "-D", "-c", "-N", node)
        wait_for(lambda: slurm("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(nodes), lambda: "no nodes")
        yield slurm
    finally:
        for daemon in reversed(slurm.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
