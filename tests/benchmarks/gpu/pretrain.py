"""Pretraining of ModernBERT base as the recipes say, then with one switch at a time.

By the product's own preparation, batches and step, on windows of random tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.nn.attention import SDPBackend

from tests.benchmarks.gpu.clock import Clock, Train, forget, measure
from tests.benchmarks.gpu.flex import flex_kernel
from tests.benchmarks.gpu.machine import measured_flops
from tests.benchmarks.gpu.material import BASE, LARGE, SPECIAL, shape
from tests.benchmarks.gpu.setting import Measurement, Setting
from tests.benchmarks.trainer_sides import vocabulary_of
from trainer.cost.flops import peak_of, phase_cost
from trainer.model import attention
from trainer.model.network import build_model, make_config
from trainer.recipe.library import load_recipe
from trainer.train.batches import Batches
from trainer.train.distributed import World, fast_products
from trainer.train.phase import prepare
from trainer.train.step import train_step

RECIPES = {BASE: "en_base", LARGE: "en_large"}
PHASES = {"clm": 0, "mlm": 1}
"""Objective to the phase of the shipped recipes that has it."""
WINDOWS = 8
"""Of a step; the base recipe gives a forward pass as many."""
UNCHANGED = nullcontext()
FLASH_FIRST = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, *attention.ORDER[2:])


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Both objectives as they are, then the switches on the causal one."""
    base = partial(measure_pretraining, setting, BASE)
    for objective in PHASES:
        yield objective, partial(base, objective)
    plain = "engine.compile=false"
    flash_first = patch.object(attention, "ORDER", FLASH_FIRST)
    yield "clm, loss eager", partial(base, "clm", loss_compiled=False)
    yield "clm, flash before cuDNN", partial(base, "clm", inside=flash_first)
    for micro in setting.pick((4, 2), (4,)):
        yield f"clm, {micro} windows a forward pass", partial(base, "clm", f"batch.micro={micro}")
    yield "clm, layers and loss plain", partial(base, "clm", plain)
    if setting.device == "cuda":  # flex attention has no gradients on a CPU
        flex = patch.object(attention, "KERNELS", (flex_kernel(),))
        yield "clm, flex, layers and loss plain", partial(base, "clm", plain, inside=flex)


class RandomWindows:
    """A corpus of random tokens; a window is the same however many are read with it."""

    def __init__(self, length: int, vocabulary: int) -> None:
        self.length, self.vocabulary = length, vocabulary

    def __len__(self) -> int:
        return 10_000

    def read(self, indices: np.ndarray) -> np.ndarray:
        """(windows, length) tokens."""
        windows = []
        for index in indices:
            generator = np.random.default_rng(int(index))
            windows.append(generator.integers(len(SPECIAL), self.vocabulary, self.length))
        return np.stack(windows)


def steps_by(
    setting: Setting,
    model_name: str,
    objective: str,
    *overrides: str,
    loss_compiled: bool = True,
) -> tuple[Train, dict[str, Any], float]:
    """What trains some steps of an objective; notes, with the losses of a target that it fills in;
    and the operations of a step.
    """
    length, device = setting.pick(8192, 64), torch.device(setting.device)
    sizes = (f"batch.sequences={WINDOWS}", f"corpus.sequence_length={length}")
    recipe, index = load_recipe(RECIPES[model_name], [*sizes, *overrides]), PHASES[objective]
    phase, world = recipe.phases[index], World(0, 1, device)
    torch.manual_seed(0)
    with device:
        model = build_model(make_config(shape(setting, model_name)))
    with attention.preferred(device), fast_products(device):
        training = prepare(recipe, index, model, None, world)
    training.module.compiled_loss &= loss_compiled
    rows = model.config.vocab_size
    corpus: Any = SimpleNamespace(train=RandomWindows(length, rows))
    batches = Batches(recipe, index, corpus, vocabulary_of(rows), world, fixed=True)
    steps, rate = setting.pick(12, 4), recipe.optimizer.learning_rate
    notes: dict[str, Any] = {"paths": training.kernels}

    def train(clock: Clock) -> None:
        losses = []
        with attention.preferred(device), fast_products(device):
            for number in range(steps):
                batch = batches.at(number * WINDOWS, prefetch=number + 1 < steps)
                total, _ = train_step(
                    training, batches, batch, targets=batch.targets, rate=rate, number=number
                )
                losses.append(total / batch.targets)
                clock.tick()
        notes.setdefault("losses", [round(float(losses[i]), 4) for i in (0, -1)])

    cost = phase_cost(model, phase, length=recipe.length_of(phase))
    return train, notes, cost * recipe.step_tokens_of(phase)


def measure_pretraining(
    setting: Setting,
    model_name: str,
    objective: str,
    *overrides: str,
    inside: AbstractContextManager[Any] = UNCHANGED,
    **options: Any,
) -> dict[str, Any]:
    """Figures of a step, with tokens a second and its share of the peak and of the large product.

    inside: the switch that is measured. losses: of a target at the first and the last step of the
    first time; every way to compute an objective must give nearly the same.
    """
    device = torch.device(setting.device)
    forget(device)
    with inside:
        train, notes, operations = steps_by(setting, model_name, objective, *overrides, **options)
        figures = measure(train, device)
    steps_a_second = 1000 / figures["ms"]
    figures["tokens_per_s"] = round(steps_a_second * WINDOWS * setting.pick(8192, 64))
    peak = peak_of(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
    for share, ceiling in (("mfu", peak), ("of_product", measured_flops(setting))):
        if ceiling is not None:
            figures[share] = round(steps_a_second * operations / ceiling, 3)
    return {**figures, **notes}
