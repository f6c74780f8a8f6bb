"""How fast a machine trains a recipe: tokens a second, share of its peak, and the largest parts of a step.

Tokens a second come from the loop's own metrics; the split by part from further steps under torch's profiler, whose
overhead the first figure does not have. The peak is the maker's figure for a GPU, and on a CPU what matrix products
reach here.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from biobench.core.machine import resolve_device
from biobench.schema.strict import Strict
from trainer.cost.flops import peak_of, phase_cost
from trainer.cost.plan import skeleton
from trainer.model.guard import freeze
from trainer.model.network import LABEL
from trainer.recipe.spec import Checkpoints, Recipe
from trainer.train.progress import FILE, read_metrics
from trainer.train.step import PARTS

WARM = 3
"""Steps before the clock: allocation, compilation, caches."""
_SIDE = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the matrices whose product is timed."""


class PhaseSpeed(Strict):
    """One phase. tokens_per_second: of all processes; utilisation: of the peak; parts: shares of a step by name, of
    the time on the device that computes."""

    name: str
    objective: str
    tokens_per_second: float
    utilisation: float
    parts: dict[str, float]


class MachineSpeed(Strict):
    """A measurement of one machine with one recipe. peak_flops: multiply-adds counted as two, a second."""

    recipe: str
    device: str
    precision: str
    peak_flops: float
    phases: tuple[PhaseSpeed, ...]

    def lines(self) -> list[str]:
        """The measurement as text."""
        lines = [f"{self.recipe} on {self.device} ({self.precision}, peak {self.peak_flops / 1e12:.3g} TFLOP/s)"]
        for p in self.phases:
            parts = ", ".join(f"{name} {share:.0%}" for name, share in p.parts.items())
            speed = f"{p.tokens_per_second:,.0f} tokens/s, {p.utilisation:.0%} of peak"
            lines.append(f"  {p.name} ({p.objective}): {speed}; {parts}")
        return lines


def bench(recipe: Recipe, train: Callable[[Recipe, Path], None], *, steps: int = 20) -> MachineSpeed:
    """Train `steps` steps of each phase and measure. train: runs a recipe into a folder."""
    device = torch.device(resolve_device(recipe.engine.device, "engine.device").type)
    bf16 = recipe.engine.precision == "bf16" or (recipe.engine.precision == "auto" and device.type == "cuda")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    peak = peak_of(name) or matrix_rate(device, torch.bfloat16 if bf16 else torch.float32)
    model, speeds = skeleton(recipe), []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "corpora"
        train(_short(recipe, steps, cache), Path(folder) / "timed")
        lines = [x for x in read_metrics(Path(folder) / "timed" / FILE) if x["event"] == "train"]
        for index, phase in enumerate(recipe.phases):
            with torch.profiler.profile() as profiler:  # of all kinds of device that are there
                train(_short(recipe.model_copy(update={"phases": [phase]}), WARM, cache), Path(folder) / str(index))
            freeze(model, phase.freeze)
            cost = phase_cost(model, phase, length=recipe.length_of(phase)).total
            first, *_, last = (x for x in lines if x["phase"] == phase.name)
            speed = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
            speeds.append(
                PhaseSpeed(
                    name=phase.name,
                    objective=phase.objective,
                    tokens_per_second=speed,
                    utilisation=speed * cost / peak,
                    parts=_parts(profiler, device),
                )
            )
    precision = "bf16" if bf16 else "fp32"
    return MachineSpeed(recipe=recipe.name, device=name, precision=precision, peak_flops=peak, phases=tuple(speeds))


def matrix_rate(device: torch.device, dtype: torch.dtype, *, side: int | None = None, rounds: int = 10) -> float:
    """Operations a second of a square matrix product, the median of `rounds`."""
    size = side or _SIDE[device.type]
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for number in range(rounds + WARM):
        began = time.perf_counter()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if number >= WARM:
            seconds.append(time.perf_counter() - began)
    return 2.0 * size**3 / statistics.median(seconds)


def _short(recipe: Recipe, steps: int, cache: Path) -> Recipe:
    """The recipe with `WARM` steps and `steps` more in each phase, logged at the end of either."""

    phases = [
        phase.model_copy(
            update={
                "tokens": (WARM + steps) * recipe.step_tokens_of(phase),
                "schedule": phase.schedule.model_copy(update={"warmup": 0, "cooldown": None}),
            }
        )
        for phase in recipe.phases
    ]
    corpus = recipe.corpus if recipe.corpus.cache else recipe.corpus.model_copy(update={"cache": str(cache.absolute())})
    logging = {"every": max(WARM, steps // 2), "evaluate": None, "tracker": "none", "probe": None}
    changes = {"phases": phases, "corpus": corpus, "reuse": None, "checkpoints": Checkpoints()}
    return recipe.model_copy(update=changes | {"logging": recipe.logging.model_copy(update=logging)})


def _parts(profiler: torch.profiler.profile, device: torch.device) -> dict[str, float]:
    """Share of each part of a step, the largest first; the loss is taken out of the forward pass."""
    sums = dict.fromkeys(PARTS, 0.0)
    for event in profiler.key_averages():
        name = event.key.removeprefix(LABEL)
        if event.key.startswith(LABEL) and name in sums:
            sums[name] += event.device_time_total if device.type == "cuda" else event.cpu_time_total
    sums["forward"] -= sums["loss"]
    total = sum(sums.values()) or 1.0
    return {name: value / total for name, value in sorted(sums.items(), key=lambda part: -part[1])}
