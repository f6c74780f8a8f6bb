"""Telling of a run: a bar or plain lines for whoever waits, and `metrics.jsonl`, one JSON object a line.

Other trackers get the same lines as the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from biobench.core.progress import QUIET, Display
from biobench.errors import UsageError
from trainer.disk import write_text, writing


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


def before_training(what: str, fraction: float, total: int) -> Tick:
    """The report of a stage before the training. fraction: nan where it is unknown; total: steps of the whole run."""
    return Tick(what, 0, total, fraction=None if math.isnan(fraction) else fraction)


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
        # after the colon come counts
        state = (tick.what.partition(":")[0], 10 * done // total if total else -1)
        if state != self.last or time.monotonic() - self.spoke > QUIET:
            self.last, self.spoke = state, time.monotonic()
            steps = f" {done}%" if tick.fraction is not None else f" {done}/{total}" if total else ""
            left = f"  {tick.seconds_left:,.0f} s left" if tick.seconds_left else ""
            self.say(f"{tick.what}{steps}  {detail}{left}".rstrip())


FILE = "metrics.jsonl"


class Metrics:
    """Appends to `metrics.jsonl`; a resumed run first drops the lines after its checkpoint."""

    def __init__(self, out: Path, *, from_step: int, tracker: Tracker | None = None) -> None:
        self.file = out / FILE
        self.tracker = tracker
        if self.file.is_file():
            lines = [line for line in read_metrics(self.file) if line["total_step"] <= from_step]
            write_text(self.file, "".join(json.dumps(line) + "\n" for line in lines))

    def write(self, line: dict[str, Any]) -> None:
        """Append one line; it has at least `event` and `total_step`."""
        with writing(self.file), self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self.tracker is not None:
            flat = {k: v for k, v in line.items() if not isinstance(v, dict)}
            for name, parts in line.items():
                flat |= {f"{name}/{k}": v for k, v in parts.items()} if isinstance(parts, dict) else {}
            numbers = {
                f"{line['event']}/{k}": float(v)
                for k, v in flat.items()
                if isinstance(v, (int, float)) and not isinstance(v, bool) and k != "total_step"
            }
            self.tracker.log(numbers, int(line["total_step"]))

    def close(self) -> None:
        """Finish the tracker, if any."""
        if self.tracker is not None:
            self.tracker.close()


def read_metrics(file: Path) -> list[dict[str, Any]]:
    """The lines of a metrics file. A last line cut short by a kill is left out."""
    lines: list[dict[str, Any]] = []
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


class Tracker:
    """Somewhere else that metrics go: TensorBoard, or wandb and trackio, which share most of an interface.

    A run that is resumed continues its curve: both find it again by a name made of the run's folder and beginning.
    """

    def __init__(self, kind: str, out: Path, name: str, config: dict[str, Any]) -> None:
        if kind == "tensorboard":
            self._board = import_module("torch.utils.tensorboard").SummaryWriter(str(out / "tensorboard"))
            self.close = self._board.close
            return
        self._board, module = None, import_module(kind)
        begun = f"{out.absolute()} {(out / 'recipe.json').stat().st_mtime_ns}"
        known = f"{name}-{hashlib.sha256(begun.encode()).hexdigest()[:8]}"
        options = {"id": known, "name": name} if kind == "wandb" else {"name": known}
        module.init(project="biobench-pretrain", config=config, resume="allow", **options)
        self._log, self.close = module.log, module.finish

    def log(self, values: dict[str, float], step: int) -> None:
        """Take the numbers of one line."""
        if self._board is None:
            self._log(values, step=step)
            return
        for name, value in values.items():
            self._board.add_scalar(name, value, step)


def check_tracker(kind: str) -> None:
    """Raise UsageError when the tracker's package is not installed; said before a corpus is built."""
    if kind != "none" and find_spec(kind) is None:
        raise UsageError(
            f"logging.tracker is {kind}, which is not installed", hint=f"pip install {kind}, or tracker: none"
        )
