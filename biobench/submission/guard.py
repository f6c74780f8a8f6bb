"""`verify`: a submission is checked in a process of its own, under limits of memory and processor time.

What the process needs for the owner's data and for itself is not counted; each file of the submission is. A file that
needs more, or that breaks the library that reads it, ends that process and is a finding.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import biobench
from biobench.report.tasks import shipped
from biobench.submission.checks import Check, Verification
from biobench.submission.layout import check_layout
from biobench.submission.verify import examine

SECONDS = 4.0
"""Processor time for one file of a submission, five times what one of the largest shipped tasks takes (anatem, 0.8 s):
on a crowded machine the same work is counted as several times as much, and an honest file must not be refused."""
ALLOWANCE, SECONDS_A_FILE = 10.0, 0.5
"""Processor time for all files together: this, and so much more a file. A run has two, so that no number of runs takes
more than a second each; the shipped ones take 0.34 s a run."""
MEMORY = 2**30
"""Bytes for one file, beyond what the process had before it."""
WALL_SECONDS = 1_800.0
"""For the whole submission, reading the owner's data included."""


def verify(folder: str | Path, data_dir: str | Path | None = None, against: str | Path | None = None) -> Verification:
    """`examine` under limits; whatever the submission holds, this gives findings and no error of a library."""
    if any(c.grade == "error" for c in check_layout(Path(folder))):
        return examine(folder)  # nothing is opened
    words = [str(folder), *("" if p is None else str(p) for p in (data_dir, against))]
    # -P: a submission's folder may be the current one, and must not bring modules of its own
    command = [sys.executable, "-P", "-m", "biobench.submission.guard", *words]
    done: subprocess.CompletedProcess[bytes] | None = None
    try:
        done = subprocess.run(
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WALL_SECONDS,
            check=False,
        )
        printed = done.stdout
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout or b""
    lines = printed.decode("utf-8", "replace").splitlines()
    if done is not None and done.returncode == 0 and lines:
        return Verification.from_json(json.loads(lines[-1]))
    where = json.loads(lines[-1])["at"] if lines else "."
    return Verification(str(folder), "", (Check("L07", "error", where, _ended(done)),))


def _ended(done: subprocess.CompletedProcess[bytes] | None) -> str:
    if done is None:
        return f"the check took more than {WALL_SECONDS:g} s"
    if done.returncode == -signal.SIGPROF:
        return f"takes more than {SECONDS:g} s of processor time, or more than is left for all files"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1][:200] if lines else ""
    if done.returncode < 0:
        return f"ended the process that read it ({signal.Signals(-done.returncode).name}; more memory than is given?)"
    return f"cannot be checked: {last}"


def _environment() -> dict[str, str]:
    """That of this process, with this package first, and without threads that would each reserve memory.

    A relative folder of PYTHONPATH is left out: it may be the submission's.
    """
    whole = filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [str(Path(biobench.__file__).parents[1]), *whole]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
    return {**os.environ, **single, "PYTHONPATH": os.pathsep.join(paths), "ARROW_DEFAULT_MEMORY_POOL": "system"}


class FileLimits:
    """What is done inside one has `SECONDS` and `MEMORY`, and of the time no more than is left for all files."""

    def __init__(self) -> None:
        self.left = ALLOWANCE

    @contextmanager
    def __call__(self, where: str) -> Iterator[None]:
        """`where` is printed first, for whoever finds the process dead."""
        print(json.dumps({"at": where}), flush=True)
        if sys.platform == "win32":
            yield
            return
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        self.left += SECONDS_A_FILE
        seconds, began = max(min(SECONDS, self.left), 0.01), time.process_time()
        # without a handler the kernel ends the process when the timer has run down
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, hard))
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
            self.left -= time.process_time() - began


def _size() -> int:
    """Address space of this process in bytes; 2**34 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**34


def prepare() -> None:
    """Load what the process needs for itself, so that its time is not that of the first file."""
    shipped()


def _main() -> None:
    folder, data_dir, against = sys.argv[1:]
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prepare()
    try:
        verification = examine(folder, data_dir or None, against or None, FileLimits())
    except Exception as error:
        print("".join(traceback.format_exception_only(error)).strip(), file=sys.stderr)
        sys.exit(1)
    print(json.dumps(verification.as_json()), flush=True)


if __name__ == "__main__":
    _main()
