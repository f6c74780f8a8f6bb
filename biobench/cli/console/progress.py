"""Progress: a bar on a terminal, plain lines otherwise; always on stderr, so that stdout stays the product."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn

from biobench.cli.console.common import percent
from biobench.core.progress import QUIET, Display, in_words
from biobench.finetune.loop import ProgressNote
from biobench.runs.result import RunName, RunResult


@dataclass
class _Shown:
    """A run under way. bar: its line on a terminal; last: when it last spoke without one (seconds)."""

    label: str
    bar: TaskID | None
    last: float


class RunTerminal(Display):
    """A `Reporter` for people."""

    def __init__(self, log: Path | None = None) -> None:
        columns = (TextColumn("{task.completed}/{task.total}"), TimeRemainingColumn())
        super().__init__("{task.description}", BarColumn(), *columns, "{task.fields[what]}", transient=True, log=log)
        self.runs: dict[str, _Shown] = {}

    def __enter__(self) -> RunTerminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins."""
        self._drop(run.key)  # a worker that died left it
        shown = _Shown(f"[{position}/{total}] {run.model} · {run.task} · seed {run.seed}", None, time.monotonic())
        if self.bar is None:
            self.say(f"{shown.label}: started")
        else:
            self.note(f"{shown.label}: started")
            shown.bar = self.bar.add_task(shown.label, total=None, what="loading")
        self.runs[run.key] = shown

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """The run moved on."""
        shown = self.runs[run.key]
        if isinstance(what, ProgressNote):
            self.say(f"{shown.label}: step {done}/{total}, {what}")
        if self.bar is not None and shown.bar is not None:
            self.bar.update(shown.bar, completed=done, total=total, what=what)
        if time.monotonic() - shown.last >= QUIET:
            shown.last = time.monotonic()
            tell = self.say if self.bar is None else self.note
            tell(f"{shown.label}: step {done}/{total}, {what}")

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
