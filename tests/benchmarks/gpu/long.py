"""Fine-tuning on long documents, with dropout on attention, and of nested spans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from tests.benchmarks.gpu.fine_tuning import measure_product
from tests.benchmarks.gpu.material import BASE, BERT, checkpoint, drawn_lengths, training_task
from tests.benchmarks.gpu.setting import Measurement, Setting


def measurements(setting: Setting) -> Iterator[Measurement]:
    """From the longest documents to the head of nested spans."""
    longest, count = setting.pick(8192, 96), setting.pick(6 * 16, 4 * 2)
    french = [min(longest, n) for n in drawn_lengths("french_documents", count, seed=2)]
    token, span = "ncbi_disease_single", "quaero_medline"
    cases = {
        "16 documents of 8,192 tokens": (BASE, token, [longest] * count),
        "16 French documents": (BASE, token, french),
        "BERT base, dropout on attention": (BERT, token, [setting.pick(256, 48)] * count),
        "span head, 60 words": (BASE, span, [setting.pick(62, 14)] * count),
        "span head, 512 words": (BASE, span, [setting.pick(514, 22)] * count),
    }
    for name, case in cases.items():
        yield name, partial(measure_task, setting, *case)


def measure_task(setting: Setting, model: str, task: str, lengths: list[int]) -> dict[str, Any]:
    """Figures of the product's step on documents of these lengths, 16 a step."""
    made_for, batch = checkpoint(setting, model), setting.pick(16, 2)
    prepared = training_task(made_for, task, lengths, batch, "protocol.max_length=8192")
    figures = measure_product(made_for, prepared, torch.device(setting.device))
    tokens = sum(prepared.train.lengths) * batch / len(lengths)
    return {**figures, "tokens_per_s": round(1000 * tokens / figures["ms"])}
