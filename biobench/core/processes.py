"""Names of processes, by which others ask whether the one that began something has ended.

This is asked of the system, by no clock that can be set. A process is named by the machine's boot
and process namespace, its number, and its start in ticks since that boot, so that a number used
again is another name. Of processes elsewhere nothing can be said from here.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sys
import time
from functools import cache
from pathlib import Path

NAME = re.compile(r"(?P<place>[0-9a-f]{8})-(?P<number>[0-9a-f]+)-(?P<start>[0-9a-f]+)")
"""How a process is written: 8 hex digits of its place, its number and its start, as hex numbers."""
_STATE = 0
_START = 19
"""Places in `/proc/<pid>/stat` behind the name in brackets, from 0 (proc(5), fields 3 and 22)."""


def this_process() -> str:
    """The name of the calling process; empty on a system that does not tell (it has no Linux
    `/proc`).
    """
    number = os.getpid()
    place = _place()
    fields = _fields_of(number)
    if not place or not fields:
        return ""
    return f"{place}-{number:x}-{int(fields[_START]):x}"


def has_ended(process: str) -> bool | None:
    """Whether the process of this name has ended; None where this cannot be known from here."""
    match = NAME.fullmatch(process)
    if match is None or match["place"] != _place():
        return None
    number = int(match["number"], 16)
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # another user's process, whose start may be hidden
    fields = _fields_of(number)
    if not fields:
        return False
    start = str(int(match["start"], 16))
    return fields[_STATE] in ("Z", "X") or fields[_START] != start


@cache
def _place() -> str:
    """Of this boot and of the namespaces of process numbers and of the clock since boot."""
    spaces = (Path("/proc/self/ns/pid"), Path("/proc/self/ns/time"))
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        names = [boot, *(os.readlink(path) for path in spaces if path.is_symlink())]
    except OSError:
        return ""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]


def _fields_of(number: int) -> list[str]:
    """What the system tells of a process behind its name; empty where it tells nothing."""
    return system_text(Path(f"/proc/{number}/stat")).rpartition(")")[2].split()


def system_text(file: Path) -> str:
    """What the system tells in a file of its own, without blanks at the ends; empty where it tells
    nothing.
    """
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def limit_process(memory: int, seconds: int) -> None:
    """Bound what this process may take from now on, and let it leave no dump; limits that it is
    under already stay. Windows has none of them, macOS none of memory.

    memory: bytes of address space beyond what it has; seconds: of processor time.
    """
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower_limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + seconds)
    pages, _, _ = system_text(Path("/proc/self/statm")).partition(" ")
    if pages:
        size = int(pages) * os.sysconf("SC_PAGE_SIZE")
        _lower_limit(resource.RLIMIT_AS, size + memory)


def _lower_limit(kind: int, limit: int) -> None:
    """One of the system's limits, by a signal or an error at first and for good one unit above."""
    import resource

    soft, hard = (
        math.inf if bound == resource.RLIM_INFINITY else bound for bound in resource.getrlimit(kind)
    )
    lowered = min(limit, soft, hard)
    resource.setrlimit(kind, (int(lowered), int(min(lowered + 1, hard))))
