"""Fine-tuning on long documents, with dropout on attention, and of nested spans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from biobench.finetune.engine import load_encoder
from tests.benchmarks.gpu.fine_tuning import measure_product
from tests.benchmarks.gpu.material import BASE, BERT, checkpoint, drawn_lengths, generated_task
from tests.benchmarks.gpu.setting import Measurement, Setting


def measurements(setting: Setting) -> Iterator[Measurement]:
    """From the longest documents to the head of nested spans."""
    longest, batch = setting.pick(8192, 96), setting.pick(16, 2)
    count = setting.pick(6, 3) * batch
    french = drawn_lengths("french_documents", count, seed=2)
    french = [min(longest, length) for length in french]
    token, span = "ncbi_disease_single", "quaero_medline"
    lengths: dict[str, tuple[str, str, list[int]]] = {
        "16 documents of 8,192 tokens": (BASE, token, [longest] * count),
        "16 French documents": (BASE, token, french),
        "BERT base, dropout on attention": (BERT, token, [setting.pick(256, 48)] * count),
    }
    for words in (60, 512):
        size = setting.pick(words, 12 + words // 64)
        lengths[f"span head, {words} words"] = (BASE, span, [size + 2] * count)
    for name, (model, task, sizes) in lengths.items():
        yield name, lambda m=model, t=task, n=sizes: measure_task(setting, m, t, n, batch)


def measure_task(
    setting: Setting, model: str, task: str, lengths: list[int], batch: int
) -> dict[str, Any]:
    """Figures of the product's step on documents of these lengths, so many a step."""
    torch._dynamo.reset()
    steps, rest = len(lengths) // batch, lengths[:2]
    made_for = checkpoint(setting, model)
    prepared = generated_task(
        made_for,
        task,
        {"train": lengths, "validation": rest, "test": rest},
        "training.epochs=",
        f"training.max_steps={steps}",
        f"training.batch_size={batch}",
        f"training.evaluate_every={steps}",
        "protocol.max_length=8192",
    )
    loaded = load_encoder(made_for, torch.device(setting.device))
    figures = measure_product(loaded, prepared)
    tokens = sum(prepared.train.lengths) / steps
    return {**figures, "tokens_per_s": round(1000 * tokens / figures["ms"])}
