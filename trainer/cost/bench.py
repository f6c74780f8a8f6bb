"""How fast a machine trains a recipe: tokens a second, share of a GPU's peak, and the largest parts
of a step.

Tokens a second come from the loop's own metrics; the split by part from further steps under torch's
profiler, whose overhead the first figure does not have.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import torch

from biobench.core.machine import resolve_device
from trainer.cost.flops import device_name
from trainer.model.network import LABEL
from trainer.recipe.spec import Checkpoints, Recipe
from trainer.train.progress import FILE, read_metrics
from trainer.train.step import PARTS

WARM = 3
"""Steps before the clock: allocation, compilation, caches."""


@dataclass(frozen=True)
class PhaseSpeed:
    """One phase. tokens_per_second: of all processes; utilisation: of a GPU's data-sheet peak, None
    elsewhere; parts: shares of a step by name, of the time on the device that computes, the largest
    first.
    """

    name: str
    objective: str
    tokens_per_second: float
    utilisation: float | None
    parts: dict[str, float]


@dataclass(frozen=True)
class MachineSpeed:
    """A measurement of one machine with one recipe."""

    recipe: str
    device: str
    phases: tuple[PhaseSpeed, ...]

    def lines(self) -> list[str]:
        """The measurement as text."""
        lines = [f"{self.recipe} on {self.device}"]
        for p in self.phases:
            share = "" if p.utilisation is None else f", {p.utilisation:.0%} of peak"
            parts = ", ".join(f"{name} {share:.0%}" for name, share in p.parts.items())
            lines.append(
                f"  {p.name} ({p.objective}): {p.tokens_per_second:,.0f} tokens/s{share}; {parts}"
            )
        return lines


def bench(
    recipe: Recipe, train: Callable[[Recipe, Path], object], *, steps: int = 20
) -> MachineSpeed:
    """Train `steps` steps of each phase and measure. train: runs a recipe into a folder."""
    device = torch.device(resolve_device(recipe.engine.device, "engine.device").type)
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        timed = Path(folder) / "timed"
        train(_short(recipe, steps), timed)
        lines = [line for line in read_metrics(timed / FILE) if line["event"] == "train"]
        for index, phase in enumerate(recipe.phases):
            alone = recipe.model_copy(update={"phases": [phase]})
            with torch.profiler.profile() as profiler:  # of all kinds of device that are there
                train(_short(alone, WARM), Path(folder) / str(index))
            warmed, *_, last = [line for line in lines if line["phase"] == phase.name]
            tokens = last["tokens"] - warmed["tokens"]
            seconds = last["seconds"] - warmed["seconds"]
            speed = PhaseSpeed(
                name=phase.name,
                objective=phase.objective,
                tokens_per_second=tokens / seconds,
                utilisation=last["mfu"],
                parts=_parts(profiler, device),
            )
            speeds.append(speed)
    return MachineSpeed(recipe.name, device_name(device), tuple(speeds))


def _short(recipe: Recipe, steps: int) -> Recipe:
    """The recipe with `WARM` steps and `steps` more in each phase, logged at the end of either."""
    phases = []
    for phase in recipe.phases:
        schedule = phase.schedule.model_copy(update={"warmup": 0, "cooldown": None})
        tokens = (WARM + steps) * recipe.step_tokens_of(phase)
        phases.append(phase.model_copy(update={"tokens": tokens, "schedule": schedule}))
    every = max(WARM, steps // 2)
    logging = recipe.logging.model_copy(update={"every": every, "evaluate": None})
    changes = {"phases": phases, "reuse": None, "checkpoints": Checkpoints(), "logging": logging}
    return recipe.model_copy(update=changes)


def _parts(profiler: torch.profiler.profile, device: torch.device) -> dict[str, float]:
    """Share of each part of a step, the largest first; the loss is taken out of the forward
    pass."""
    time_of = attrgetter("device_time_total" if device.type == "cuda" else "cpu_time_total")
    sums = dict.fromkeys(PARTS, 0.0)
    for event in profiler.key_averages():
        name = event.key.removeprefix(LABEL)
        if event.key.startswith(LABEL) and name in sums:
            sums[name] += time_of(event)
    sums["forward"] -= sums["loss"]
    total = sum(sums.values()) or 1.0
    largest_first = sorted(sums, key=sums.__getitem__, reverse=True)
    return {name: sums[name] / total for name in largest_first}
