"""Reports of a run: a bar or plain lines on the terminal, and `metrics.jsonl`, one JSON object a
line.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from biobench.core.progress import QUIET, Display
from trainer.disk import write_text, writing


@dataclass(frozen=True)
class Tick:
    """One report. done and total count optimiser steps of the whole run; seconds_left is an
    estimate.

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


def silent(_: Tick) -> None:
    """No report."""


class TrainingDisplay(Display):
    """A bar, or a line whenever the stage or a tenth of it has changed, or after `QUIET`."""

    def __init__(self) -> None:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeRemainingColumn(),
        )
        super().__init__("{task.description}", *columns)
        if self.bar is not None:
            self.bar.add_task("", total=None, detail="")
        self.last = ("", -1)
        self.spoke = -math.inf

    def __call__(self, tick: Tick) -> None:
        detail = "" if tick.loss is None else f"loss {tick.loss:.3f}"
        if tick.tokens_per_second:
            detail += f"  {tick.tokens_per_second:,.0f} tokens/s"
        done, total, counts = _part_done(tick)
        if self.bar is not None:
            self.bar.update(
                self.bar.task_ids[0],
                description=tick.what,
                completed=done,
                total=total or None,
                detail=detail,
            )
            return
        # after the colon come counts
        state = (tick.what.partition(":")[0], 10 * done // total if total else -1)
        if state == self.last and time.monotonic() - self.spoke <= QUIET:
            return
        self.last, self.spoke = state, time.monotonic()
        if tick.seconds_left:
            detail += f"  {tick.seconds_left:,.0f} s left"
        self.say(f"{tick.what}{counts}  {detail}".rstrip())


def _part_done(tick: Tick) -> tuple[int, int, str]:
    """(done, total, both as text); total 0 and no text where it is unknown how much is done."""
    if tick.fraction is not None:
        percent = int(100 * tick.fraction)
        return percent, 100, f" {percent}%"
    if tick.done:
        return tick.done, tick.total, f" {tick.done}/{tick.total}"
    return 0, 0, ""


FILE = "metrics.jsonl"


class Metrics:
    """Appends to `metrics.jsonl`; a resumed run first drops the lines after its checkpoint."""

    def __init__(self, out: Path, *, from_step: int) -> None:
        self.file = out / FILE
        if self.file.is_file():
            lines = [line for line in read_metrics(self.file) if line["total_step"] <= from_step]
            write_text(self.file, "".join(json.dumps(line) + "\n" for line in lines))

    def write(self, line: dict[str, Any]) -> None:
        """Append one line; it has at least `event` and `total_step`."""
        with writing(self.file), self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """The lines of a metrics file. A last line cut short by a kill is skipped."""
    lines: list[dict[str, Any]] = []
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(from_json(text))
        except ValueError:
            break
    return lines
