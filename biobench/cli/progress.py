"""Progress: a bar on a terminal, plain lines otherwise; always on stderr, so that stdout stays the product."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from biobench.cli.common import percent
from biobench.run.plan import Item
from biobench.run.result import RunResult

_PLAIN_SECONDS = 30.0
"""Without a terminal, a run in progress says where it is at most this often."""


class Terminal:
    """A `Reporter` for people."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr)
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.label = ""
        self.last = 0.0
        if self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[what]}"),
                console=self.console,
                transient=True,
            )

    def __enter__(self) -> Terminal:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()

    def start(self, item: Item, position: int, total: int) -> None:
        """A run begins."""
        self.label = f"[{position}/{total}] {item.checkpoint.id} · {item.task.id} · seed {item.seed}"
        self.last = time.monotonic()
        if self.bar is None:
            self._say(f"{self.label}: started")
        else:
            self.task = self.bar.add_task(self.label, total=None, what="loading")

    def step(self, done: int, total: int, what: str) -> None:
        """The run moved on."""
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total, what=what)
        elif self.bar is None and time.monotonic() - self.last >= _PLAIN_SECONDS:
            self.last = time.monotonic()
            self._say(f"{self.label}: step {done}/{total}, {what}")

    def finish(self, result: RunResult) -> None:
        """A run ended."""
        if self.bar is not None and self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None
        seed = "" if result.seed is None else f" · seed {result.seed}"
        line = f"{result.model} · {result.task}{seed}: {result.status}"
        if result.scores:
            line += f", {result.primary} {percent(result.scores[result.primary])}"
        if result.status == "done" and result.seconds is not None:
            line += f" in {result.seconds:.1f} s"
        if result.status in ("failed", "unavailable"):
            line += f" ({result.reason})"
        self._say(line)

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
