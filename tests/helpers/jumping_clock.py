"""A wall clock that jumps while processes run: libfaketime's where it is installed, else one for `time.time` alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

DAY = 86_400
VARIABLE = "BIOBENCH_TEST_CLOCK"
"""Names the file that `tests/helpers/launcher.py` reads the offset from, in seconds."""


def faketime() -> Path | None:
    """The library for programs with several threads, as Debian's `libfaketime` has it; None where there is none."""
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class JumpingClock:
    """The clock of the processes that are started with `environment`.

    libfaketime changes all calls for the time of day, the substitute `time.time` and `time.time_ns`. The times of files
    are the kernel's and stay true, so a jump moves those of the files that are there the other way. Afterwards the
    files have aged by the jump (or come from the future), and the clock of the processes is that far from that of the
    file system.
    """

    def __init__(self, folder: Path, library: Path | None) -> None:
        self.file, self.library, self.offset = folder / "clock", library, 0
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """What a process must be started with; the monotonic clock stays as it is."""
        if self.library is None:
            return {VARIABLE: str(self.file)}
        return {
            "LD_PRELOAD": str(self.library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: int, folders: Iterable[Path] = ()) -> None:
        """From now on it is so much later; `folders` hold what the processes have written."""
        self.offset += seconds
        self._write()
        for folder in folders:
            # os.walk passes over folders that a process has just renamed
            for path in [folder, *(Path(root) / n for root, d, f in os.walk(folder) for n in (*d, *f))]:
                with suppress(FileNotFoundError):  # a process has just renamed it
                    status = path.lstat()
                    times = (status.st_atime_ns - seconds * 10**9, status.st_mtime_ns - seconds * 10**9)
                    os.utime(path, ns=times, follow_symlinks=False)

    def _write(self) -> None:
        aside = self.file.with_name(f"{self.file.name}.new")
        aside.write_text(f"{self.offset:+d}\n", encoding="ascii")
        aside.replace(self.file)
