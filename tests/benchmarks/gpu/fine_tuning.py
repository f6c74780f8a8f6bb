"""Fine-tuning as the product does it, and as the model library's users do it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn
from torch.nn.utils import clip_grad_norm_
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModelForTokenClassification,
    DataCollatorForTokenClassification,
    DataCollatorWithFlattening,
)

from biobench.encode.batches import epoch_order
from biobench.finetune.engine import LoadedEncoder, finetune, load_encoder
from biobench.finetune.loop import Outcome
from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint, load_tokenizer
from tests.benchmarks.gpu.clock import Clock, forget, measure
from tests.benchmarks.hf_trainer import Windows

VARLEN = "gpu_script_varlen"


def product(loaded: LoadedEncoder, prepared: Prepared, clock: Clock, seed: int = 1) -> Outcome:
    """One seed by the product, in bf16; the clock ticks after each step."""

    def progress(done: int, total: int, message: str) -> None:
        if message.startswith("loss"):
            clock.tick()

    return finetune(loaded, prepared, seed, "bf16", progress)


def measure_product(
    made_for: Checkpoint, prepared: Prepared, device: torch.device, *, compiled: bool = True
) -> dict[str, Any]:
    """Figures of the product's step: what computed attention, and what the product went back on."""
    forget(device)
    loaded, outcomes = load_encoder(made_for, device), []
    encoder = loaded.encoder
    if not compiled:
        encoder.compiles, encoder.plain = False, "plain layers were asked for"

    def train(clock: Clock) -> None:
        outcomes.append(product(loaded, prepared, clock))

    figures = measure(train, device)
    notes = {"paths": list(encoder.paths), "slow": encoder.slow_parts()}
    return {**figures, **notes, "backoffs": outcomes[-1].record.backoffs}


def measure_library(
    made_for: Checkpoint, prepared: Prepared, device: torch.device, *, compiled: bool, flat: bool
) -> dict[str, Any]:
    """Figures of the library's token classifier in a plain loop over the product's batches, in bf16
    and by fused AdamW.

    flat: documents end to end and variable-length attention, in place of padding.
    """
    forget(device)
    model = AutoModelForTokenClassification.from_pretrained(
        made_for.folder,
        num_labels=len(prepared.outputs),
        attn_implementation=VARLEN if flat else "sdpa",
        dtype=torch.float32,
    ).to(device)
    forward = torch.compile(model) if compiled else model
    recipe, split = prepared.spec.training, prepared.train
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    rows = Windows(prepared, split).rows
    orders = epoch_order(split.lengths, recipe.batch_size, 1, 0, recipe.batching)
    batches = list(orders)[: recipe.max_steps]
    collate: Any = DataCollatorForTokenClassification(load_tokenizer(made_for))
    if flat:
        collate = DataCollatorWithFlattening(return_flash_attn_kwargs=True)

    def train(clock: Clock) -> None:
        model.train()
        for batch in batches:
            inputs = dict(collate([dict(rows[i]) for i in batch]))
            for name, value in inputs.items():
                if isinstance(value, Tensor):
                    inputs[name] = value.to(device)
            with torch.autocast(device.type, torch.bfloat16):
                loss = forward(**inputs).loss
            loss.backward()
            clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            clock.tick()

    return measure(train, device)


def _varlen_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int = 0,
    **_: Any,
) -> tuple[Tensor, None]:
    """torch's variable-length kernel behind the library's interface, as flash-attn is there."""
    reach = (-1, -1) if sliding_window is None else (sliding_window - 1, sliding_window - 1)
    rows = (x[0].transpose(0, 1).to(value.dtype) for x in (query, key, value))
    ends, longest = cu_seq_lens_q, max_length_q
    out = varlen_attn(*rows, ends, ends, longest, longest, scale=scaling, window_size=reach)
    return out[None], None


AttentionInterface.register(VARLEN, _varlen_attention)
AttentionMaskInterface.register(VARLEN, lambda *_, **__: None)
