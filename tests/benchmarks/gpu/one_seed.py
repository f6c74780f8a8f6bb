"""A step of one seed of ModernBERT base on sentences: the library's ways beside the product's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint
from tests.benchmarks.gpu.fine_tuning import measure_library, measure_product
from tests.benchmarks.gpu.material import BASE, checkpoint, drawn_lengths, training_task
from tests.benchmarks.gpu.setting import Measurement, Setting


def sentences(setting: Setting, made_for: Checkpoint, *, steps: int = 32) -> Prepared:
    """Some steps of the task `ncbi_disease_single`, on generated sentences of its lengths."""
    batch = setting.pick(16, 4)
    lengths = drawn_lengths("ncbi_disease", batch * steps, seed=1)
    if setting.tiny:
        lengths = [24] * batch * 4  # one shape: the library's way is traced once
    return training_task(made_for, "ncbi_disease_single", lengths, batch)


def measurements(setting: Setting) -> Iterator[Measurement]:
    """The library's plain way, the product's two, and then the library's best ones."""
    device, made_for = torch.device(setting.device), checkpoint(setting, BASE)
    given = (made_for, sentences(setting, made_for), device)
    yield "HF eager", partial(measure_library, *given, compiled=False, flat=False)
    yield "ours plain", partial(measure_product, *given, compiled=False)
    yield "ours compiled", partial(measure_product, *given)
    yield "HF compiled", partial(measure_library, *given, compiled=True, flat=False)
    flattened = partial(measure_library, *given, compiled=True, flat=True)
    yield "HF compiled, flattened, varlen", flattened
