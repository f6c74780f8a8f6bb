"""What all steps share: the device, the size of the work, the folders. Loads no torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Measurement = tuple[str, Callable[[], dict[str, Any]]]
"""What is measured, and what measures it and gives the fields of its row."""
RESULTS = "gpu.jsonl"


@dataclass(frozen=True)
class Setting:
    """Where and how large a step is run.

    device: ``cuda`` or ``cpu``. tiny: tiny models and few steps. out: folder of the results.
    work: folder of checkpoints, logs and runs, shared by the steps of a call.
    """

    device: str
    tiny: bool
    out: Path
    work: Path

    def pick(self, full: T, tiny: T) -> T:
        """The size that this setting asks for."""
        return tiny if self.tiny else full

    def results(self) -> dict[str, dict[str, Any]]:
        """The last line of each step that stands in the results."""
        return {line["step"]: line for line in read_lines(self.out / RESULTS)}


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON that are whole: a kill may have cut one off."""
    lines = []
    for text in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def append_line(file: Path, line: dict[str, Any]) -> None:
    """Append a line of JSON at once, on a line of its own where the last one was cut off."""
    whole = not file.is_file() or file.read_bytes()[-1:] in (b"", b"\n")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(("" if whole else "\n") + json.dumps(line) + "\n")
