"""`verify`: a submission is checked in a process of its own, under limits of memory and processor
time.

The limits hold for the whole check: a file that needs more, or that breaks the library that reads
it, ends the process and is a finding.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from biobench.core.processes import limit_process
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
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
"""Variables that say how many there are; each thread would reserve memory."""


def verify(folder: Path, data_dir: DataRoot = None, against: Path | None = None) -> Verification:
    """`examine` under limits; whatever the submission holds, this gives findings and no error of a
    library.
    """
    if is_refused(check_layout(folder)):
        return examine(folder)  # nothing is opened
    words = [str(folder), str(data_dir or ""), str(against or ""), str(SECONDS), str(MEMORY)]
    # The submission's folder may be the current one, and must not bring modules of its own: -P, and
    # no relative path in the environment.
    command = [sys.executable, "-P", "-m", "biobench.submission.guard", *words]
    done = subprocess.run(
        command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode != 0:
        bounds = f"{SECONDS} s of processor time and {MEMORY} bytes of memory"
        ended = error("L07", ".", f"cannot be checked in {bounds}: {_end_of(done)}")
        return Verification(str(folder), "", (ended,))
    name, model, checks, runs, reproduced = json.loads(done.stdout)
    return Verification(
        folder=name,
        model=model,
        checks=tuple(Check(*check) for check in checks),
        runs=tuple(RunState(*run) for run in runs),
        reproduced=reproduced,
    )


def _environment() -> dict[str, str]:
    """That of the process of a check: this one's, single-threaded, without relative paths."""
    paths = [str(PACKAGE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {
        **os.environ,
        **dict.fromkeys(_THREADS, "1"),
        "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, paths)),
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }


def _end_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """Why a process ended early: the signal, else the last line that it printed."""
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return f"{name} ended the process"
    printed = done.stderr.decode("utf-8", "replace").strip()
    if not printed:
        return "no reason"
    return printed.splitlines()[-1][:200]


def _main() -> None:
    folder, data_dir, against, seconds, memory = sys.argv[1:]
    limit_process(int(memory), int(seconds))
    results = Path(against) if against else None
    found = examine(Path(folder), data_dir or None, results)
    findings = [found.folder, found.model, found.checks, found.runs, found.reproduced]
    print(json.dumps(findings), flush=True)


if __name__ == "__main__":
    _main()
