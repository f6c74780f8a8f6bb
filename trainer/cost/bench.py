"""How fast a machine trains a recipe: a few steps of the real loop, against what its matrix products reach.

Tokens a second come from the loop's own metrics, without a profiler; the split by part from further steps under
torch's profiler, whose overhead the first figure does not have.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from biobench.core.machine import resolve_device
from trainer.cost.flops import phase_cost
from trainer.cost.plan import skeleton
from trainer.cost.speed import MachineSpeed, PhaseSpeed
from trainer.disk import check_writable
from trainer.model.interventions import freeze
from trainer.model.network import LABEL
from trainer.recipe.phases import Phase
from trainer.recipe.spec import Recipe
from trainer.train.loop import PARTS
from trainer.train.metrics import FILE, read_metrics

WARM = 3
"""Steps before the clock: allocation, compilation, caches."""
_SIDE = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the matrices whose product is timed."""


def matrix_rate(device: torch.device, dtype: torch.dtype, *, side: int | None = None, rounds: int = 10) -> float:
    """Operations a second of a square matrix product, the median of `rounds`."""
    size = side or _SIDE[device.type]
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    seconds = []
    for number in range(rounds + WARM):
        _wait(device)
        began = time.perf_counter()
        a @ b
        _wait(device)
        if number >= WARM:
            seconds.append(time.perf_counter() - began)
    return 2.0 * size**3 / statistics.median(seconds)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bench(
    recipe: Recipe, train: Callable[[Recipe, Path], None], *, steps: int = 20, trace: Path | None = None
) -> MachineSpeed:
    """Train `steps` steps of each phase and measure. trace: where the profiler's trace is written (Chrome's format).

    train: runs a recipe into a folder, as `trainer.api.pretrain` does.
    """
    if trace is not None:
        check_writable(trace)
    device = torch.device(resolve_device(recipe.engine.device, "engine.device").type)
    bf16 = recipe.engine.precision == "bf16" or (recipe.engine.precision == "auto" and device.type == "cuda")
    rate = matrix_rate(device, torch.bfloat16 if bf16 else torch.float32)
    model = skeleton(recipe)
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "corpora"
        timed = _short(recipe, steps, cache)
        train(timed, Path(folder) / "timed")
        lines = [x for x in read_metrics(Path(folder) / "timed" / FILE) if x["event"] == "train"]
        activities = [torch.profiler.ProfilerActivity.CPU]
        activities += [torch.profiler.ProfilerActivity.CUDA] if device.type == "cuda" else []
        for index, phase in enumerate(recipe.phases):
            single = recipe.model_copy(update={"phases": [phase]})
            with torch.profiler.profile(activities=activities) as profiler:
                train(_short(single, WARM, cache), Path(folder) / f"profiled-{index}")
            if trace is not None:
                profiler.export_chrome_trace(str(trace.with_stem(f"{trace.stem}-{phase.name}")))
            freeze(model, phase.freeze)
            cost = phase_cost(model, phase, length=recipe.length_of(phase)).total
            ends = [x for x in lines if x["phase"] == phase.name]
            speed = (ends[-1]["tokens"] - ends[0]["tokens"]) / (ends[-1]["seconds"] - ends[0]["seconds"])
            speeds.append(
                PhaseSpeed(
                    name=phase.name,
                    objective=phase.objective,
                    window_tokens=recipe.length_of(phase),
                    tokens_per_second=speed,
                    flops_per_token=cost,
                    utilisation=speed * cost / rate,
                    parts=_parts(profiler, device),
                )
            )
    return MachineSpeed(
        recipe=recipe.name,
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        precision="bf16" if bf16 else "fp32",
        matrix_flops=rate,
        phases=tuple(speeds),
    )


def _short(recipe: Recipe, steps: int, cache: Path) -> Recipe:
    """The recipe with `WARM` steps and `steps` more in each phase, logged at the end of either."""

    def cut(phase: Phase) -> Phase:
        tokens = (WARM + steps) * recipe.step_tokens_of(phase)
        schedule = phase.schedule.model_copy(update={"warmup": 0, "cooldown": None})
        return phase.model_copy(update={"tokens": tokens, "schedule": schedule})

    corpus = recipe.corpus if recipe.corpus.cache else recipe.corpus.model_copy(update={"cache": str(cache.absolute())})
    return recipe.model_copy(
        update={
            "phases": [cut(phase) for phase in recipe.phases],
            "corpus": corpus,
            "checkpoints": recipe.checkpoints.model_copy(update={"every": None, "export": False}),
            "logging": recipe.logging.model_copy(
                update={"every": max(WARM, steps // 2), "evaluate": None, "tracker": "none", "probe": None}
            ),
            "reuse": None,
        }
    )


def _parts(profiler: torch.profiler.profile, device: torch.device) -> dict[str, float]:
    """Share of each part of a step; the projection with its loss is taken out of the forward pass."""
    sums = dict.fromkeys(PARTS, 0.0)
    for event in profiler.key_averages():
        name = event.key.removeprefix(LABEL)
        if event.key.startswith(LABEL) and name in sums:
            sums[name] += event.device_time_total if device.type == "cuda" else event.cpu_time_total
    sums["forward"] -= sums["loss"]
    total = sum(sums.values()) or 1.0
    return {name: value / total for name, value in sums.items()}
