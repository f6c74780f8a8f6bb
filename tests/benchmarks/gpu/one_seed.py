"""A step of one seed of ModernBERT base on sentences: the library's ways beside the product's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from biobench.finetune.engine import load_encoder
from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint
from tests.benchmarks.gpu.clock import measure
from tests.benchmarks.gpu.fine_tuning import library, measure_product, steps_of
from tests.benchmarks.gpu.material import BASE, checkpoint, drawn_lengths, generated_task
from tests.benchmarks.gpu.setting import Measurement, Setting

LIBRARY = {
    "HF compiled": (True, False),
    "HF compiled, flattened, varlen": (True, True),
}
"""Name to (compiled, flattened)."""


def sentences(setting: Setting, made_for: Checkpoint) -> Prepared:
    """Some steps of the task `ncbi_disease_single`, on generated sentences of its lengths."""
    steps, batch = setting.pick(30, 3), setting.pick(16, 4)
    lengths, rest = drawn_lengths("ncbi_disease", batch * steps, seed=1), [20] * batch
    if setting.tiny:
        lengths = [24] * batch * steps  # one shape: the library's way is traced once
    return generated_task(
        made_for,
        "ncbi_disease_single",
        {"train": lengths, "validation": rest, "test": rest},
        "training.epochs=",
        f"training.max_steps={steps}",
        f"training.batch_size={batch}",
        f"training.evaluate_every={steps}",
    )


def measurements(setting: Setting) -> Iterator[Measurement]:
    """The library's plain way, the product's two, and then the library's best ones."""
    device, made_for = torch.device(setting.device), checkpoint(setting, BASE)
    prepared = sentences(setting, made_for)

    def library_row(compiled: bool, flat: bool) -> dict[str, Any]:
        train = library(made_for, prepared, device, compiled=compiled, flat=flat)
        return measure(train, device, steps_of(prepared))

    yield "HF eager", lambda: library_row(False, False)
    loaded = load_encoder(made_for, device)
    yield "ours plain", lambda: measure_product(loaded, prepared, compiled=False)
    yield "ours compiled", lambda: measure_product(loaded, prepared)
    for name, (compiled, flat) in LIBRARY.items():
        yield name, lambda c=compiled, f=flat: library_row(c, f)
