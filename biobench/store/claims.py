"""Who is making a run: a claim that one process has at a time, and its heartbeat, which other machines can read.

Where the file system has locks, the claim is the operating system's lock on `<key>.lock`, which ends with the process.
Where it has none (`flock` answers ENOLCK, ENOSYS or ENOTSUP, as some Lustre and NFS mounts do), the claim is the file
`<key>.running` itself, created exclusively: it is stale once its holder has not written it for `STALE_SECONDS`, and
another process may then replace it. Either way the file says host, process, begin and step, and is written every
`BEAT_SECONDS`.

On the machine of the holder the system tells whether its process runs; elsewhere the age of the file decides, by the
clock of the file system. A holder that was suspended, or whose file server's clock jumped, goes on with its run while
another makes it too: both store the same result under the same key, so only time is lost. Some mounts grant locks that
hold on one machine alone (`localflock`, NFS with `nolock`), which no process can see; `BIOBENCH_CLAIMS=files` is for
these.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, cast

from filelock import BaseFileLock, FileLock, Timeout

from biobench.core.files import cannot_write, folder_time, temporary_name
from biobench.core.processes import has_ended, this_process
from biobench.errors import UsageError

ClaimMode = Literal["locks", "files"]
BEAT_SECONDS = 15.0
"""Between two writes of a heartbeat; a dozen fit into `STALE_SECONDS`, so that a slow disk ends no claim."""
STALE_SECONDS = 180.0
"""A heartbeat older than this belongs to a process that has ended."""
RUNNING = ".running"
VARIABLE = "BIOBENCH_CLAIMS"
_WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)


class Heartbeat(NamedTuple):
    """What a process says of the run that it makes. started: seconds since the epoch; step, steps: 0 before training.

    job: the batch system's number of the job, or nothing. by: what its claim is. process: its name in `core.processes`.
    began, written: when the claim and this beat were made, in seconds of the holder's monotonic clock.
    """

    token: str
    host: str
    pid: int
    started: float
    step: int = 0
    steps: int = 0
    job: str = ""
    by: ClaimMode = "locks"
    process: str = ""
    began: float = 0.0
    written: float = 0.0


class Claim:
    """The right to make a run, for as long as its context lasts; see `claimed`."""

    def __init__(self, path: Path, beat: Heartbeat) -> None:
        self.path, self.beat = path, beat
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, daemon=True)

    def moved(self, step: int, steps: int) -> None:
        """The run is at this step; the next heartbeat tells it."""
        self.beat = self.beat._replace(step=step, steps=steps)

    def begin(self) -> None:
        """Write from now on."""
        self._thread.start()

    def end(self) -> None:
        """Write no more, and remove the file where it is still this claim's."""
        self._end.set()
        self._thread.join()
        with suppress(OSError):
            if self._is_mine():
                self.path.unlink()
            for pattern in (f"{self.path.name}.*.turn", f".{self.path.name}.*.tmp"):
                for path in self.path.parent.glob(pattern):
                    path.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        beat = read_heartbeat(self.path)
        return beat is not None and beat.token == self.beat.token

    def _keep_beating(self) -> None:
        while not self._end.wait(BEAT_SECONDS):
            with suppress(OSError):  # a disk that is full or away for a moment; the next one may succeed
                if self.beat.by == "files" and not self._is_mine():
                    return  # it was taken for dead and replaced
                _write(self.path, self.beat)


def claim_mode(folder: Path) -> ClaimMode:
    """Whether claims below this folder are locks or files; asks the file system. Raises UsageError and StoreError."""
    wish = os.environ.get(VARIABLE, "")
    if wish in ("locks", "files"):
        return cast(ClaimMode, wish)
    if wish:
        raise UsageError(f"{VARIABLE}='{wish}' is not known", hint="locks or files, or leave it unset")
    probe = folder / f".probe.{secrets.token_hex(6)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(probe, "xb") as stream:
            return "locks" if _locks(stream.fileno()) else "files"
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def _locks(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return os.name == "nt"  # filelock has the locks of Windows
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _WITHOUT_LOCKS:
            return False
        raise
    return True


@contextmanager
def claimed(lock_path: Path, mode: ClaimMode) -> Iterator[Claim | None]:
    """The claim of the run whose lock is `lock_path`, or at once None while another process has it.

    Raises StoreError where the folder cannot be written.
    """
    path = lock_path.with_suffix(RUNNING)
    beat = Heartbeat(
        secrets.token_hex(8),
        socket.gethostname(),
        os.getpid(),
        time.time(),
        job=os.environ.get("SLURM_JOB_ID", ""),
        by=mode,
        process=this_process(),
        began=time.monotonic(),
        written=time.monotonic(),
    )
    lock: BaseFileLock | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode == "locks":
            lock = _acquired(lock_path)
            other = read_heartbeat(path)
            # a machine that has no locks on the same folder may be at the run
            by_file = other is not None and other.by == "files" and not is_stale(path)
            mine = lock is not None and not by_file
            if mine:
                _write(path, beat)
        else:
            mine = _created(path, beat) or _replaced(path, beat)
    except OSError as error:
        if lock is not None:
            lock.release()
        raise cannot_write(lock_path, error) from error
    try:
        if not mine:
            yield None
            return
        claim = Claim(path, beat)
        claim.begin()
        try:
            yield claim
        finally:
            claim.end()
    finally:
        if lock is not None:
            lock.release()


def _acquired(path: Path) -> BaseFileLock | None:
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return None
    return lock


def _created(path: Path, beat: Heartbeat) -> bool:
    try:
        with open(path, "xb") as stream:
            stream.write(_bytes(beat))
    except FileExistsError:
        return False
    return True


def _replaced(path: Path, beat: Heartbeat) -> bool:
    """Take the place of a dead holder. Of those that try, the one that creates the `.turn` file does.

    One that died in the middle is passed over as the holder was: its `.turn` file grows stale, and the next has
    another number.
    """
    if not is_stale(path):
        return False
    before = read_heartbeat(path)
    token = "unreadable" if before is None else before.token
    number = 0
    while True:
        turn = path.with_name(f"{path.name}.{token}.{number}.turn")
        if _created(turn, beat):
            break
        if not is_stale(turn):
            return False
        number += 1
    now = read_heartbeat(path)
    if not is_stale(path) or (now is not None and now.token != token):
        turn.unlink(missing_ok=True)
        return False
    _write(path, beat)
    return True


def read_heartbeat(path: Path) -> Heartbeat | None:
    """The file's content; None where there is none, or it is being written."""
    try:
        beat = Heartbeat(**json.loads(path.read_bytes()))
        numbers = (beat.started, beat.began, beat.written)
        sound = all(isinstance(n, float) for n in numbers) and isinstance(beat.step, int)
        return beat if sound and isinstance(beat.process, str) else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def is_stale(path: Path) -> bool:
    """Whether its holder has ended or, on another machine, not written the file for `STALE_SECONDS`."""
    beat = read_heartbeat(path)
    ended = None if beat is None else has_ended(beat.process)
    if ended is not None:
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
