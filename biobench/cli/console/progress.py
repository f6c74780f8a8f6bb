"""Progress of runs on the terminal: a line a run with its bar; without a terminal plain lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TaskID, TimeRemainingColumn
from rich.text import Text

from biobench.core.progress import QUIET, Display, ProgressNote, in_words
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.runs.table import percent

_BAR = 6
_FIXED = _BAR + 22
"""Columns of the terminal for the bar, the steps, the time that is left and the gaps between all parts of a line."""


class _Shortened(ProgressColumn):
    """A text in its share of the line, so that a long one drives nothing else out. end: letters of its end that stay.

    width: of the terminal, in columns.
    """

    def __init__(self, width: Callable[[], int], share: float, end: int, text: Callable[[Task], str]) -> None:
        super().__init__()
        self.width, self.share, self.end, self.text = width, share, end, text

    def render(self, task: Task) -> Text:
        """All of it, or what fits."""
        text, room = self.text(task), max(8, int(self.share * (self.width() - _FIXED)))
        if len(text) > room:
            end = min(self.end, room // 2)
            text = f"{text[: room - end - 1]}…{text[len(text) - end :]}"
        return Text(text, no_wrap=True)


@dataclass
class _Shown:
    """A run under way. bar: its line on a terminal; last: when it last spoke without one (seconds)."""

    label: str
    bar: TaskID | None
    last: float


class _Warnings(logging.Handler):
    """Warnings of the program as lines among the others, in the log file too."""

    def __init__(self, display: Display) -> None:
        super().__init__(logging.WARNING)
        self.display = display

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        with suppress(RuntimeError):  # a signal came in the middle of a line, which is not to be written into
            self.display.say(record.getMessage())


class RunTerminal(Display, Reporter):
    """A `Reporter` for people; while it stands it also says what the program warns of."""

    def __init__(self, log: Path | None = None) -> None:
        def width() -> int:
            return self.console.width

        columns: tuple[ProgressColumn, ...] = (
            _Shortened(width, 0.7, 24, lambda task: task.description),  # task and seed stand at the end
            BarColumn(bar_width=_BAR),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            _Shortened(width, 0.3, 0, lambda task: str(task.fields["what"])),
        )
        super().__init__(*columns, transient=True, log=log)
        self.runs: dict[str, _Shown] = {}
        self.warnings = _Warnings(self)

    def __enter__(self) -> RunTerminal:
        logging.getLogger("biobench").addHandler(self.warnings)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        logging.getLogger("biobench").removeHandler(self.warnings)
        self.close()

    def stage(self, what: str) -> None:
        """What is done before and between runs."""
        self.say(what)

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins."""
        self._drop(run.key)  # a worker that died left it
        shown = _Shown(f"[{position}/{total}] {run.model} · {run.task} · seed {run.seed}", None, time.monotonic())
        if self.bar is None:
            self.say(f"{shown.label}: started")
        else:
            self.note(f"{shown.label}: started")
            shown.bar = self.bar.add_task(shown.label, total=None, what="")
        self.runs[run.key] = shown

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """The run moved on."""
        shown = self.runs[run.key]
        line = f"{shown.label}: step {done}/{total}, {what}" if total else f"{shown.label}: {what}"
        if self.bar is not None and shown.bar is not None:
            self.bar.update(shown.bar, completed=done, total=total or None, what=what)
        if isinstance(what, ProgressNote):
            self.say(line)
        elif time.monotonic() - shown.last >= QUIET:
            shown.last = time.monotonic()
            (self.say if self.bar is None else self.note)(line)

    def finish(self, result: RunResult) -> None:
        """A run ended."""
        if result.key is not None:
            self._drop(result.key)
        seed = "" if result.seed is None else f" · seed {result.seed}"
        line = f"{result.model} · {result.task}{seed}: {result.status}"
        if result.scores:
            line += f", {result.primary} {percent(result.scores[result.primary])}"
        if result.status == "done" and result.seconds is not None:
            line += f" in {result.seconds:.1f} s"
        if result.seconds_left is not None:
            line += f"; about {in_words(result.seconds_left)} left"
        if result.status in ("failed", "unavailable"):
            line += f" ({result.reason})"
        self.say(line)

    def _drop(self, key: str) -> None:
        shown = self.runs.pop(key, None)
        if self.bar is not None and shown is not None and shown.bar is not None:
            self.bar.remove_task(shown.bar)
