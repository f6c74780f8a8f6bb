"""The primary log: one JSON object a line, in `metrics.jsonl`; other trackers get the same lines."""

from __future__ import annotations

import json
import uuid
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from biobench.errors import UsageError
from trainer.disk import write_json, write_text, writing

FILE = "metrics.jsonl"
TRACKED = "tracker.json"
"""Under which id each tracker knows the run."""


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
    """wandb and trackio, which share most of an interface: a run that is resumed goes on with its own curve.

    wandb finds a run again by its id, which is kept in `TRACKED`; trackio by its name.
    """

    def __init__(self, kind: str, out: Path, name: str, config: dict[str, Any]) -> None:
        self.module = import_module(kind)
        try:
            known: dict[str, str] = json.loads((out / TRACKED).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        run_id = known.get(kind) or f"{name}-{uuid.uuid4().hex[:8]}"
        options = {"id": run_id, "name": name} if kind == "wandb" else {"name": run_id}
        self.module.init(project="biobench-pretrain", config=config, resume="allow", **options)
        if kind not in known:
            write_json(out / TRACKED, known | {kind: run_id})

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
    return _TensorBoard(out) if kind == "tensorboard" else _RunModule(kind, out, name, config)
