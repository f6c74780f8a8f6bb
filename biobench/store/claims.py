"""Who is making a run: a claim that one process has at a time, and its heartbeat, which other
machines can read.

The claim is the file `<key>.running`, created exclusively, as every file system can. It says host,
process, begin and step, and is written every `BEAT_SECONDS`. On the machine of the holder the
system knows whether its process runs; elsewhere the age of the file decides, by the clock of the
file system: a holder that has not written it for
`STALE_SECONDS` has ended, and another process may replace it. A holder that was only suspended goes
on with its run while another makes it too. It asks for its claim before it stores (`Claim.check`),
so only time is lost.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from biobench.core.files import (
    cannot_write,
    folder_time,
    kind_of,
    read_regular,
    temporary_name,
)
from biobench.core.processes import has_ended, this_process
from biobench.errors import StoreError

BEAT_SECONDS = 15.0
"""Between two writes of a heartbeat; a dozen fit into `STALE_SECONDS`, so that a slow disk ends no
claim.
"""
STALE_SECONDS = 180.0
"""A heartbeat older than this belongs to a process that has ended."""
RUNNING = ".running"
MOST_BYTES = 2**16
"""Of a claim; ours have 300."""


class Heartbeat(NamedTuple):
    """What a process says of the run that it makes. started: seconds since the epoch; step, steps:
    0 before training.

    job: the batch system's number of the job, or nothing. process: its name in `core.processes`.
    began, written: when the claim and this beat were made, in seconds of the holder's monotonic
    clock.
    """

    token: str
    host: str
    pid: int
    started: float
    step: int = 0
    steps: int = 0
    job: str = ""
    by: str = "files"
    """Earlier versions also had claims by file locks."""
    process: str = ""
    began: float = 0.0
    written: float = 0.0


_HEARTBEAT = TypeAdapter(Heartbeat)


class ReplacedError(StoreError):
    """The holder of a claim was taken for dead, and another process makes the run."""


class Claim:
    """The right to make a run, for as long as its context lasts; see `claimed`. Its heartbeat
    begins at once.
    """

    def __init__(self, path: Path, beat: Heartbeat) -> None:
        self.path = path
        self.beat = beat
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)
        self._thread.start()

    def moved(self, step: int, steps: int) -> None:
        """The run is at this step; the next heartbeat says so."""
        self.beat = self.beat._replace(step=step, steps=steps)

    def check(self, record: Path) -> None:
        """Raises ReplacedError where another process has the claim by now, or had it and stored
        `record`.
        """
        ended = not self.path.exists() and record.exists()
        if ended or _token(self.path) not in ("", self.beat.token):
            message = "another process took this run over while this one did not answer"
            raise ReplacedError(message, hint="its result counts", file=self.path)

    def end(self) -> None:
        """Write no more, and remove the file where it is still this claim's."""
        self._end.set()
        self._thread.join()
        with suppress(OSError):
            if _token(self.path) == self.beat.token:
                self.path.unlink()
            for pattern in (f"{self.path.name}.*.turn", f".{self.path.name}.*.tmp"):
                for path in self.path.parent.glob(pattern):
                    path.unlink(missing_ok=True)

    def _keep_beating(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            # a disk that is full or away for a moment; the next one may succeed
            with suppress(OSError):
                if _token(self.path) != self.beat.token:
                    return  # it was taken for dead and replaced
                _write(self.path, self.beat)


@contextmanager
def claimed(path: Path) -> Iterator[Claim | None]:
    """The claim of the run whose heartbeat is `path`, or at once None while another process has it.

    Raises StoreError where the folder cannot be written.
    """
    began = time.monotonic()
    beat = Heartbeat(
        token=secrets.token_hex(8),
        host=socket.gethostname(),
        pid=os.getpid(),
        started=time.time(),
        job=os.environ.get("SLURM_JOB_ID", ""),
        process=this_process(),
        began=began,
        written=began,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_mine = _created(path, beat)
        if not is_mine:
            _check_plain(path)
            is_mine = is_stale(path) and _replaced(path, beat)
    except OSError as error:
        raise cannot_write(path, error) from error
    if not is_mine:
        yield None
        return
    claim = Claim(path, beat)
    try:
        yield claim
    finally:
        claim.end()


def _created(path: Path, beat: Heartbeat) -> bool:
    try:
        with open(path, "xb") as stream:
            stream.write(_bytes(beat))
    except FileExistsError:
        return False
    return True


def _check_plain(path: Path) -> None:
    """Raises StoreError for what no process made as a claim, which would block the run for ever."""
    with suppress(FileNotFoundError):
        kind = kind_of(path.lstat().st_mode)
        if kind != "file":
            raise StoreError(f"is a {kind}, not a claim", hint="move it away", file=path)


def _replaced(path: Path, beat: Heartbeat) -> bool:
    """Take the place of a dead holder. Of those that try, the one that creates the `.turn` file
    does.

    Where that one died in the middle, its `.turn` file grows stale; it is then removed, and the
    next attempt succeeds.
    """
    holder = _token(path)
    turn = path.with_name(f"{path.name}.{holder or 'unreadable'}.turn")
    if not _created(turn, beat):
        if is_stale(turn):
            turn.unlink(missing_ok=True)
        return False
    if not is_stale(path) or _token(path) not in ("", holder):
        turn.unlink(missing_ok=True)
        return False
    _write(path, beat)
    return True


def _token(path: Path) -> str:
    """Of the process that has the claim; empty where its file cannot be read."""
    beat = read_heartbeat(path)
    return "" if beat is None else beat.token


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The file's content; None where there is none, or it is being written."""
    try:
        return _HEARTBEAT.validate_json(read_regular(path, MOST_BYTES))
    except (StoreError, ValueError):
        return None


def is_stale(path: Path) -> bool:
    """Whether its holder has ended or, on another machine, not written the file for
    `STALE_SECONDS`.
    """
    beat = read_heartbeat(path)
    if beat is not None and (ended := has_ended(beat.process)) is not None:
        return ended
    try:
        written = path.stat().st_mtime
    except OSError:
        return False  # its holder has just ended it
    return abs(folder_time(path.parent) - written) > STALE_SECONDS


def is_alive(path: Path) -> bool:
    """Whether the heartbeat's process runs."""
    return read_heartbeat(path) is not None and not is_stale(path)


def _write(path: Path, beat: Heartbeat) -> None:
    """Replace the file. Not flushed: it is worth nothing after a power cut."""
    temporary = temporary_name(path)
    try:
        temporary.write_bytes(_bytes(beat._replace(written=time.monotonic())))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _bytes(beat: Heartbeat) -> bytes:
    return json.dumps(beat._asdict()).encode()
