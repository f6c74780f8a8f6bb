"""`verify`: a submission is checked in a process of its own, under limits of memory and processor
time.

The limits hold for the whole check: a file that needs more, or that breaks the library that reads
it, ends the process and is a finding.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from biobench.data.locate import DataRoot
from biobench.submission.checks import Check, RunState, Verification, error, is_refused
from biobench.submission.layout import check_layout
from biobench.submission.verify import examine
from biobench.version import PACKAGE

SECONDS = 600
"""Processor time of one check, reading the owner's data and results included; the shipped runs
take 0.34 s each.
"""
MEMORY = 3 * 2**29
"""Bytes of address space, beyond what the process has before it opens anything."""


def verify(folder: Path, data_dir: DataRoot = None, against: Path | None = None) -> Verification:
    """`examine` under limits; whatever the submission holds, this gives findings and no error of a
    library.
    """
    if is_refused(check_layout(folder)):
        return examine(folder)  # nothing is opened
    words = [str(folder), str(data_dir or ""), str(against or ""), str(SECONDS), str(MEMORY)]
    # The submission's folder may be the current one, and must not bring modules of its own: -P, and
    # no relative path.
    paths = [str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    # Each thread would reserve memory.
    safe = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"), "1"
    )
    safe |= {
        "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, paths)),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    command = [sys.executable, "-P", "-m", "biobench.submission.guard", *words]
    done = subprocess.run(
        command, env={**os.environ, **safe}, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode == 0:
        name, model, checks, runs, reproduced = json.loads(done.stdout)
        findings = tuple(Check(*c) for c in checks), tuple(RunState(*r) for r in runs)
        return Verification(name, model, *findings, reproduced)
    printed = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = printed[-1][:200] if printed else "no reason"
    if done.returncode < 0:
        reason = f"{signal.Signals(-done.returncode).name} ended the process"
    ended = (
        f"cannot be checked in {SECONDS} s of processor time and {MEMORY} bytes of memory: {reason}"
    )
    return Verification(str(folder), "", (error("L07", ".", ended),))


def _main() -> None:
    folder, data_dir, against, seconds, memory = sys.argv[1:]
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        size = Path("/proc/self/statm")  # macOS has none
        pages = int(size.read_text().split()[0]) if size.is_file() else 2**22
        limit = pages * os.sysconf("SC_PAGE_SIZE") + int(memory)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
        limit = math.ceil(time.process_time()) + int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    results = Path(against) if against else None
    v = examine(Path(folder), data_dir or None, results)
    print(json.dumps([v.folder, v.model, v.checks, v.runs, v.reproduced]), flush=True)


if __name__ == "__main__":
    _main()
