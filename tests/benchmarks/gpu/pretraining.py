"""Pretraining steps by the product's own preparation, batches and step, on random windows."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tests.benchmarks.gpu.clock import Clock, Train, measure
from tests.benchmarks.gpu.material import BASE, LARGE, SPECIAL, shape
from tests.benchmarks.gpu.setting import Setting
from trainer.cost.flops import peak_of, phase_cost
from trainer.model import attention
from trainer.model.network import build_model, make_config
from trainer.model.objectives import Vocabulary
from trainer.recipe.library import load_recipe
from trainer.recipe.spec import Recipe
from trainer.train.batches import Batches
from trainer.train.distributed import World
from trainer.train.phase import PreparedPhase, prepare
from trainer.train.step import train_step

PHASES = {"clm": 0, "mlm": 1}
"""Objective to the phase of the shipped recipes that has it."""
WINDOWS = 8
"""Of a step; the base recipe gives a forward pass as many."""
Change = Callable[[PreparedPhase], None]


def unchanged(training: PreparedPhase) -> None:
    """The phase as the product prepares it."""


class RandomWindows:
    """A corpus of random tokens, the same on each reading."""

    def __init__(self, count: int, length: int, vocabulary: int) -> None:
        self.count, self.length, self.vocabulary = count, length, vocabulary

    def __len__(self) -> int:
        return self.count

    def read(self, indices: np.ndarray) -> np.ndarray:
        """(windows, length) tokens."""
        size = (len(indices), self.length)
        generator = np.random.default_rng(indices.tolist())
        return generator.integers(len(SPECIAL), self.vocabulary, size)


def recipe_of(setting: Setting, model_name: str, *overrides: str) -> Recipe:
    """The shipped English recipe of a model, with few windows a step."""
    length, name = setting.pick(8192, 64), {BASE: "en_base", LARGE: "en_large"}[model_name]
    sizes = (f"batch.sequences={WINDOWS}", f"corpus.sequence_length={length}")
    return load_recipe(name, [*sizes, *overrides])


def steps_by(
    setting: Setting,
    model_name: str,
    objective: str,
    *overrides: str,
    change: Change = unchanged,
) -> tuple[Train, Recipe, PreparedPhase]:
    """What trains some steps of an objective, with its recipe and phase."""
    device, recipe = torch.device(setting.device), recipe_of(setting, model_name, *overrides)
    index, steps = PHASES[objective], setting.pick(12, 3)
    with torch.device(device):
        model = build_model(make_config(shape(setting, model_name)))
    torch.set_float32_matmul_precision("high")  # as a run does
    world = World(0, 1, device)
    with attention.preferred(device):
        training = prepare(recipe, index, model, None, world)
    change(training)
    rows = model.config.vocab_size
    special = np.arange(rows) < len(SPECIAL)
    words = Vocabulary(SPECIAL["[SEP]"], SPECIAL["[MASK]"], special, np.flatnonzero(~special))
    corpus: Any = SimpleNamespace(
        train=RandomWindows(10_000, recipe.length_of(recipe.phases[index]), rows)
    )
    batches = Batches(recipe, index, corpus, words, world, fixed=True)

    def train(clock: Clock) -> None:
        with attention.preferred(device):
            for number in range(steps):
                batch = batches.at(number * WINDOWS, more=number + 1 < steps)
                rate = recipe.optimizer.learning_rate
                train_step(
                    training, batches, batch, targets=batch.targets, rate=rate, number=number
                )
                clock.tick()

    return train, recipe, training


def measure_pretraining(
    setting: Setting,
    model_name: str,
    objective: str,
    *overrides: str,
    change: Change = unchanged,
) -> dict[str, Any]:
    """Figures of a step: with tokens a second and its share of the peak and of the product."""
    torch._dynamo.reset()
    device = torch.device(setting.device)
    train, recipe, training = steps_by(setting, model_name, objective, *overrides, change=change)
    figures = measure(train, device, setting.pick(12, 3))
    phase = recipe.phases[PHASES[objective]]
    speed = 1000 * recipe.step_tokens_of(phase) / figures["ms"]
    flops = speed * phase_cost(training.module.model, phase, length=recipe.length_of(phase))
    figures |= {"tokens_per_s": round(speed), "paths": training.kernels}
    peak = peak_of(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
    if peak is not None:
        figures["mfu"] = round(flops / peak, 3)
    if (measured := setting.measured_tflops()) is not None:
        figures["of_product"] = round(flops / measured / 1e12, 3)
    return figures
