"""Telling whoever waits: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tick:
    """One report. done and total count optimiser steps of the whole run; seconds_left is an estimate."""

    what: str
    done: int
    total: int
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None


Listener = Callable[[Tick], None]


def silent(_: Tick) -> None:
    """Tell nobody."""


class Terminal:
    """A rich progress bar on stderr, or a line whenever the message or a tenth of the steps has changed."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.task: Any = None
        self.last = ("", -1)
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[detail]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=None, detail="")

    def __call__(self, tick: Tick) -> None:
        detail = "" if tick.loss is None else f"loss {tick.loss:.3f}"
        if tick.tokens_per_second:
            detail += f"  {tick.tokens_per_second:,.0f} tokens/s"
        if self.bar is not None:
            self.bar.update(
                self.task, description=tick.what, completed=tick.done, total=tick.total or None, detail=detail
            )
            return
        tenth = 10 * tick.done // tick.total if tick.total else -1
        if (tick.what, tenth) != self.last:
            self.last = (tick.what, tenth)
            steps = f" {tick.done}/{tick.total}" if tick.total else ""
            left = f"  {tick.seconds_left:,.0f} s left" if tick.seconds_left else ""
            print(f"{tick.what}{steps}  {detail}{left}".rstrip(), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()
