"""Progress: bars on a terminal, plain lines otherwise; always on stderr, so that stdout stays the product."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.progress import Progress, ProgressColumn

from biobench.errors import UsageError

QUIET = 60.0
"""Without a terminal, what is under way and has only counted on says so at most this often (seconds)."""


class ProgressNote(str):
    """What is happening in long work, and worth a line that stays."""

    __slots__ = ()


class Display:
    """The bars, with these columns, or the lines. bar: None where there is no terminal.

    log: a file to which every line is added, with the time, whatever the terminal shows. Raises UsageError where it
    cannot be written.
    """

    def __init__(self, *columns: str | ProgressColumn, transient: bool = False, log: Path | None = None) -> None:
        self.log: TextIO | None = None
        try:
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                self.log = log.open("a", encoding="utf-8", errors="replace")
        except OSError as error:
            what = f"--log-file {log} cannot be written: {error.strerror or error}"
            raise UsageError(what, hint="choose another file") from error
        self.console = Console(stderr=True)
        self.bar: Progress | None = None
        if self.console.is_terminal:
            self.bar = Progress(*columns, console=self.console, transient=transient)
            self.bar.start()

    def say(self, line: str) -> None:
        """A line of its own, above the bars."""
        self.note(line)
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """A line for the log file alone, where there is one. A disk that is full ends the log, not the work."""
        if self.log is None:
            return
        try:
            self.log.write(f"{datetime.now().astimezone().isoformat(' ', timespec='seconds')} {line}\n")
            self.log.flush()
        except OSError as error:
            self.log = None
            self.say(f"the log file cannot be written any more: {error.strerror or error}")

    def close(self) -> None:
        """Take the bars away, and close the log."""
        if self.log is not None:
            self.log.close()
            self.log = None
        if self.bar is not None:
            self.bar.stop()


def in_words(seconds: float) -> str:
    """For people: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
