"""The primary log: one JSON object a line, in `metrics.jsonl`; other trackers get the same lines."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from biobench.errors import UsageError
from trainer.disk import write_text, writing

FILE = "metrics.jsonl"


class Tracker(Protocol):
    """Somewhere else that metrics go."""

    def log(self, values: dict[str, float], step: int) -> None:
        """Take the numbers of one line."""

    def close(self) -> None:
        """Finish."""


class Metrics:
    """Appends to `metrics.jsonl`; a resumed run first drops the lines after its checkpoint."""

    def __init__(self, out: Path, *, from_step: int, tracker: Tracker | None = None) -> None:
        self.file = out / FILE
        self.tracker = tracker
        if self.file.is_file():
            kept = [line for line in read_metrics(self.file) if line["total_step"] <= from_step]
            write_text(self.file, "".join(json.dumps(line) + "\n" for line in kept))

    def write(self, line: dict[str, Any]) -> None:
        """Append one line; it has at least `event` and `total_step`."""
        with writing(self.file), self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self.tracker is not None:
            numbers = {
                f"{line['event']}/{k}": float(v)
                for k, v in line.items()
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


class _TensorBoard:
    def __init__(self, out: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(str(out / "tensorboard"))

    def log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class _RunModule:
    """wandb and trackio, which share one interface."""

    def __init__(self, module: Any, name: str, config: dict[str, Any]) -> None:
        self.module = module
        module.init(project="biobench-pretrain", name=name, config=config)

    def log(self, values: dict[str, float], step: int) -> None:
        self.module.log(values, step=step)

    def close(self) -> None:
        self.module.finish()


def check_tracker(kind: str) -> None:
    """Raise UsageError when the tracker's package is not installed; said before a corpus is built."""
    if kind != "none" and find_spec(kind) is None:
        raise UsageError(
            f"logging.tracker is {kind}, which is not installed", hint=f"pip install {kind}, or tracker: none"
        )


def make_tracker(kind: str, out: Path, name: str, config: dict[str, Any]) -> Tracker | None:
    """The optional second tracker. Raises UsageError when its package is not installed."""
    check_tracker(kind)
    if kind == "none":
        return None
    return _TensorBoard(out) if kind == "tensorboard" else _RunModule(import_module(kind), name, config)
