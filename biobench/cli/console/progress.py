"""Progress of runs on the terminal: a line a run with its bar; without a terminal plain lines."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from biobench.core.progress import QUIET, Display, ProgressNote, about
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.runs.table import percent


@dataclass
class _Shown:
    """A run under way. bar: its line on a terminal; last: when it last spoke without one
    (seconds)."""

    label: str
    bar: TaskID | None
    last: float


class _Warnings(logging.Handler):
    """Warnings of the program as lines among the others."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.WARNING)
        self.display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        with suppress(
            RuntimeError
        ):  # a signal came in the middle of a line, which is not to be written into
            self.display.say(record.getMessage())


def _text_column(text: str, ratio: int) -> TextColumn:
    return TextColumn(text, table_column=Column(ratio=ratio, no_wrap=True, overflow="ellipsis"))


class RunTerminal(Display, Reporter):
    """A `Reporter` for people; while it is open it also shows warnings."""

    def __init__(self) -> None:
        super().__init__(
            _text_column("{task.description}", ratio=7),
            BarColumn(bar_width=6),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            _text_column("{task.fields[what]}", ratio=3),
            transient=True,
            expand=True,
        )
        self.runs: dict[str, _Shown] = {}
        self.warned: set[str] = set()
        self.warnings = _Warnings(self)

    def __enter__(self) -> RunTerminal:
        logging.getLogger("biobench").addHandler(self.warnings)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("biobench").removeHandler(self.warnings)
        self.close()

    def stage(self, what: str) -> None:
        """What is done before and between runs."""
        self.say(what)

    def warn(self, line: str) -> None:
        """Said once, though several workers find it."""
        if line not in self.warned:
            self.warned.add(line)
            self.say(line)

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins."""
        self._drop(run.key)  # a worker that died left it
        # the model comes last, as the end of a long line is cut
        label = f"[{position}/{total}] {run.task} · seed {run.seed} · {run.model}"
        bar = None
        if self.bar is None:
            self.announce(f"{label}: started")
        else:
            bar = self.bar.add_task(label, total=None, what="")
        self.runs[run.key] = _Shown(label, bar, time.monotonic())

    def announce(self, line: str) -> None:
        """What a run begins to do."""
        self.say(line)

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """The run moved on."""
        entry = self.runs[run.key]
        line = f"{entry.label}: {what}"
        if total:
            line = f"{entry.label}: step {done}/{total}, {what}"
        if self.bar is not None and entry.bar is not None:
            self.bar.update(entry.bar, completed=done, total=total or None, what=what)
        if isinstance(what, ProgressNote):
            self.announce(line)
        elif self.bar is None and time.monotonic() - entry.last >= QUIET:
            entry.last = time.monotonic()
            self.say(line)

    def finish(self, result: RunResult) -> None:
        """A run ended."""
        if result.key is not None:
            self._drop(result.key)
        seed = "" if result.seed is None else f" · seed {result.seed}"
        line = f"{result.model} · {result.task}{seed}: {result.status}"
        if result.scores:
            line += f", {result.headline} {percent(result.scores[result.headline])}"
        if result.status == "done" and result.seconds is not None:
            line += f" in {result.seconds:.1f} s"
        if result.status in ("failed", "unavailable"):
            line += f" ({result.reason})"
        self.say_finished(line)

    def say_finished(self, line: str) -> None:
        """A run ended, in words."""
        self.say(line)

    def _drop(self, key: str) -> None:
        entry = self.runs.pop(key, None)
        if self.bar is not None and entry is not None and entry.bar is not None:
            self.bar.remove_task(entry.bar)


class BriefRunTerminal(RunTerminal):
    """A `Reporter` that gives each run one line, when it ends: how many have ended, and about how
    long the others take.
    """

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()
        self.ended = 0
        self.total = 0

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins; the time counts from the first."""
        if not self.total:
            self.began = time.monotonic()
        self.total = total
        super().start(run, position, total)

    def announce(self, line: str) -> None:
        """Nothing: the line of its end says enough."""

    def say_finished(self, line: str) -> None:
        """With the number of runs that have ended; alone before any has begun."""
        if not self.total:
            self.say(line)
            return
        self.ended += 1
        remaining = max(self.total - self.ended, 0)
        if remaining:
            seconds = (time.monotonic() - self.began) / self.ended * remaining
            line += f"; {about(seconds)} left"
        self.say(f"[{self.ended}/{self.total}] {line}")
