"""Telling whoever waits: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from biobench.core.progress import QUIET, Display


@dataclass(frozen=True)
class Tick:
    """One report. done and total count optimiser steps of the whole run; seconds_left is an estimate.

    fraction: how much of what comes before the training is done, None where that is unknown.
    """

    what: str
    done: int
    total: int
    loss: float | None = None
    tokens_per_second: float | None = None
    seconds_left: float | None = None
    fraction: float | None = None


Listener = Callable[[Tick], None]


def stage_of(what: str) -> str:
    """What stands before the colon: after it come counts."""
    return what.partition(":")[0]


class Stages:
    """Tells a listener of what comes before the training, with an estimate of the time left in each stage.

    total: optimiser steps of the whole run.
    """

    def __init__(self, listener: Listener, total: int) -> None:
        self.listener, self.total = listener, total
        self._stage, self._began, self._first = "", 0.0, 0.0

    def __call__(self, what: str, fraction: float) -> None:
        """fraction: how much of the stage is done, nan where that is unknown."""
        now = time.perf_counter()
        if stage_of(what) != self._stage:
            self._stage, self._began, self._first = stage_of(what), now, fraction
        gained = fraction - self._first
        left = (now - self._began) * (1 - fraction) / gained if gained > 0 else None
        known = None if math.isnan(fraction) else fraction
        self.listener(Tick(what, 0, self.total, seconds_left=left, fraction=known))


def silent(_: Tick) -> None:
    """Tell nobody."""


class TrainingDisplay(Display):
    """A bar, or a line whenever the stage or a tenth of it has changed, or after `QUIET`."""

    def __init__(self) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[detail]}"), TimeRemainingColumn())
        super().__init__("{task.description}", *columns)
        self.task = None if self.bar is None else self.bar.add_task("", total=None, detail="")
        self.last = ("", -1)
        self.spoke = -math.inf

    def __call__(self, tick: Tick) -> None:
        detail = "" if tick.loss is None else f"loss {tick.loss:.3f}"
        if tick.tokens_per_second:
            detail += f"  {tick.tokens_per_second:,.0f} tokens/s"
        # before the first step there are no steps to show
        done, total = tick.done, tick.total if tick.done else 0
        if tick.fraction is not None:
            done, total = int(100 * tick.fraction), 100
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, description=tick.what, completed=done, total=total or None, detail=detail)
            return
        state = (stage_of(tick.what), 10 * done // total if total else -1)
        if state != self.last or time.monotonic() - self.spoke > QUIET:
            self.last, self.spoke = state, time.monotonic()
            steps = f" {done}%" if tick.fraction is not None else f" {done}/{total}" if total else ""
            left = f"  {tick.seconds_left:,.0f} s left" if tick.seconds_left else ""
            self.say(f"{tick.what}{steps}  {detail}{left}".rstrip())
