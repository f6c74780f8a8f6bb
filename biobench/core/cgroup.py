"""What the control groups of this process grant of the machine: CPU time and memory, at all levels. Linux only.

A container, a pod or a batch job sees the whole machine in most places and its own share in these files alone. A
limit may stand at any level above the process, and a container sees its own group as the root: every level from the
group of the process up to the root is read, and the least counts. Versions 1 and 2, also mounted side by side.
Source: the kernel's documentation of control groups (cgroup-v1/memory, scheduler/sched-bwc, cgroup-v2).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

GROUPS = Path("/proc/self/cgroup")
ROOT = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 60
"""Version 1 writes the largest number of pages where it limits nothing."""


def cpu_quota(groups: Path = GROUPS, root: Path = ROOT) -> float | None:
    """CPUs that the control groups of this process grant, the least of all levels; None where none limits it."""
    granted = [share for share in map(_cpus, _levels("cpu", groups, root)) if share is not None]
    return min(granted, default=None)


def memory_left(groups: Path = GROUPS, root: Path = ROOT) -> int | None:
    """Bytes until the nearest memory limit of this process's control groups, not below 0; None without a limit.

    What the group uses counts without the file pages that the kernel drops first when memory runs short.
    """
    left = [rest for rest in map(_bytes_left, _levels("memory", groups, root)) if rest is not None]
    return max(0, min(left)) if left else None


def _levels(controller: str, groups: Path, root: Path) -> Iterator[Path]:
    try:
        lines = groups.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        if line.count(":") < 2:
            continue
        _, controllers, path = line.split(":", 2)
        if not controllers:
            bases = [root, root / "unified"]
        elif controller in controllers.split(","):
            # Mounted under the names of its controllers together; most systems add a link for each.
            bases = [root / name for name in dict.fromkeys((controller, controllers))]
        else:
            continue
        group = Path(path.lstrip("/"))
        for base in bases:
            yield from (base / part for part in (group, *group.parents))


def _cpus(folder: Path) -> float | None:
    if (folder / "cpu.max").is_file():
        amount, _, period = _text(folder / "cpu.max").partition(" ")
    else:
        amount, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    try:
        share = float(amount) / float(period)
    except (ValueError, ZeroDivisionError):
        return None  # no such file, or `max`: no limit at this level
    return share if share > 0 else None


def _bytes_left(folder: Path) -> int | None:
    limits = [_text(folder / name) for name in ("memory.max", "memory.high", "memory.limit_in_bytes")]
    limit = min((int(text) for text in limits if text.isdecimal()), default=_NO_LIMIT)
    used = _text(folder / "memory.current") or _text(folder / "memory.usage_in_bytes")
    if limit >= _NO_LIMIT or not used.isdecimal():
        return None
    rows = [line.split() for line in _text(folder / "memory.stat").splitlines()]
    pages = {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}
    dropped_first = pages.get("total_inactive_file", pages.get("inactive_file", 0))
    return limit - max(0, int(used) - dropped_first)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
