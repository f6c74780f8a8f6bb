"""The CPUs and memory that this process may use, and how its threads wait. Free of torch: it acts
before torch loads.

A container, a pod or a batch job sees the whole machine in most places and its own share in its
control groups alone. A limit may stand at any level above the process: every level from the group
of the process up to the root is read, and the least counts. Source: the kernel's documentation of
control groups, version 2 (cgroup-v2).

GNU OpenMP lets a thread that waits spin for a while before it sleeps. On a machine with free cores
that saves a few microseconds at each of the many joins of a step; where other work wants the cores,
or a container's quota is spent, the spinning thread keeps the one it waits for from running, and a
step takes many times as long (docs/performance.md has the figures). So the spinning is cut short,
and on a busy machine threads sleep at once.
"""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

from biobench.core.processes import system_text

SPINS = 1000
"""Turns that a waiting thread spins: no slower than the library's own 300,000 on free cores,
measured.
"""
BUSY = 0.75
"""Share of the usable CPUs that other work takes, from which waiting threads sleep at once."""
GROUPS = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")
_GROUP = re.compile(r"^0::/*(.*)$", re.MULTILINE)
_QUOTA = re.compile(r"(0*[1-9]\d*) (0*[1-9]\d*)", re.ASCII)
"""Microseconds of CPU time that each period of so many grants; `max` stands for no limit."""
_DROPPED = re.compile(r"^inactive_file (\d+)$", re.MULTILINE)
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def prepare_threads(threads: int | None = None) -> int:
    """Set the number of threads and their waiting in the environment, for this process and its
    children.

    threads: as the user asked; None takes `OMP_NUM_THREADS`, else the usable CPUs. Settings of the
    user's own environment are kept. To be called before torch is imported; where torch is loaded
    already, a number that the user asked for is set there too, but how its threads wait stays.
    Returns the number of threads.
    """
    # a list has a number for each level of nesting, of which torch has one
    text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    wished = _whole(text) or 0
    count = threads or wished or usable_cpus()
    if count != wished:
        os.environ["OMP_NUM_THREADS"] = str(count)
    if os.environ.keys().isdisjoint(_WAITING):
        _shorten_waiting()
    if threads is not None and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    return count


def _shorten_waiting() -> None:
    """Let waiting threads sleep at once where cores are short, and spin for a moment elsewhere."""
    if cpu_quota() is not None or machine_load() > BUSY * usable_cpus():
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    else:
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


def _whole(text: str) -> int | None:
    """The number that a text is; None where it is none."""
    if text.isdecimal():
        return int(text)
    return None


def usable_cpus() -> int:
    """CPUs that this process may use, at least 1: its affinity, and no more than its quota rounded
    up.
    """
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    limit = cpu_quota()
    if limit is not None:
        allowed = min(allowed, math.ceil(limit))
    return max(1, allowed)


def machine_load() -> float:
    """Load of the last minute; 0 where the system does not tell it, as in a container that hides
    it.
    """
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def cpu_quota(groups: Path = GROUPS, root: Path = ROOT) -> float | None:
    """CPUs that the control groups of this process grant, the least of all levels; None where none
    limits it.
    """
    granted: list[float] = []
    for folder in _levels(groups, root):
        quota = _QUOTA.fullmatch(system_text(folder / "cpu.max"))
        if quota:
            granted.append(int(quota[1]) / int(quota[2]))
    return min(granted, default=None)


def memory_left(groups: Path = GROUPS, root: Path = ROOT) -> int | None:
    """Bytes until the nearest memory limit of this process's control groups, not below 0; None
    without a limit.

    What the group uses counts without the file pages that the kernel drops first when memory runs
    short.
    """
    amounts: list[int] = []
    for folder in _levels(groups, root):
        used = _whole(system_text(folder / "memory.current"))
        if used is None:
            continue
        dropped = _DROPPED.search(system_text(folder / "memory.stat"))
        if dropped:
            used = max(0, used - int(dropped[1]))
        for name in ("max", "high"):
            limit = _whole(system_text(folder / f"memory.{name}"))
            if limit is not None:
                amounts.append(max(0, limit - used))
    return min(amounts, default=None)


def _levels(groups: Path, root: Path) -> list[Path]:
    """The folders of the process's group and of all above it; containers see theirs there."""
    levels: list[Path] = []
    for name in _GROUP.findall(system_text(groups)):
        group = Path(name)
        for level in (group, *group.parents):
            levels.append(root / level)
    return levels
