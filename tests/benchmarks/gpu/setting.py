"""What all steps share: the device, the size of the work, the folders. Loads no torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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

    def results(self) -> Iterator[dict[str, Any]]:
        """The lines that stand in the results, the oldest first."""
        file = self.out / RESULTS
        if file.is_file():
            for text in file.read_text(encoding="utf-8").splitlines():
                yield json.loads(text)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line to the results."""
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def measured_tflops(self) -> float | None:
        """The large matrix product's rate that the step `machine` measured; None before it."""
        rates = [
            row["tflops"]
            for line in self.results()
            if line["step"] == "machine"
            for row in line["rows"]
            if row["name"] == "product 8192 x 8192 x 8192" and "tflops" in row
        ]
        return rates[-1] if rates else None
