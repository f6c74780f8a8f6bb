"""A machine's measured speed, as `trainer.cost.bench` takes it and `trainer.cost.plan` reckons with it."""

from __future__ import annotations

import statistics
from pathlib import Path

from biobench.errors import StoreError
from biobench.schema.strict import Strict
from trainer.disk import write_json


class PhaseSpeed(Strict):
    """One phase. tokens_per_second: of all processes; utilisation: of the measured matrix rate; parts: shares of a step
    by name, of the time on the device that computes."""

    name: str
    objective: str
    window_tokens: int
    tokens_per_second: float
    flops_per_token: float
    utilisation: float
    parts: dict[str, float]


class MachineSpeed(Strict):
    """A measurement of one machine with one recipe. matrix_flops: multiply-adds counted as two, a second."""

    recipe: str
    device: str
    torch: str
    threads: int
    precision: str
    matrix_flops: float
    phases: tuple[PhaseSpeed, ...]

    def utilisation(self) -> float:
        """Part of the matrix rate that training reaches, the mean over the phases."""
        return statistics.fmean(p.utilisation for p in self.phases)

    def lines(self) -> list[str]:
        """The measurement as text."""
        lines = [
            f"{self.recipe} on {self.device} ({self.precision}, torch {self.torch}, {self.threads} threads): "
            f"matrix products reach {self.matrix_flops / 1e12:.3g} TFLOP/s"
        ]
        for p in self.phases:
            parts = ", ".join(f"{name} {share:.0%}" for name, share in p.parts.items())
            lines += [
                f"  {p.name} ({p.objective}, windows of {p.window_tokens:,}): {p.tokens_per_second:,.0f} tokens/s, "
                f"{p.utilisation:.0%} of the matrix rate",
                f"    {parts}",
            ]
        return lines


def read_speed(file: Path) -> MachineSpeed:
    """A measurement that `biobench pretrain bench --out` wrote. Raises StoreError."""
    try:
        return MachineSpeed.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            "this is no measurement of a machine", hint="make one with `biobench pretrain bench --out FILE`", file=file
        ) from error


def write_speed(speed: MachineSpeed, file: Path) -> None:
    """Write a measurement for `read_speed`. Raises StoreError."""
    write_json(file, speed.model_dump(mode="json"))
