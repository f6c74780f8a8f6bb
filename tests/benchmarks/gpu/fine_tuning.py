"""Fine-tuning as the product does it, and as the model library's users do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn
from torch.nn.utils import clip_grad_norm_
from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForTokenClassification

from biobench.encode.batches import epoch_order
from biobench.finetune.engine import LoadedEncoder, finetune
from biobench.finetune.loop import Outcome
from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint
from tests.benchmarks.gpu.clock import Clock, Train, measure

VARLEN = "gpu_script_varlen"
IGNORED = -100
PLAIN = "plain layers were asked for"


def product(loaded: LoadedEncoder, prepared: Prepared, clock: Clock, seed: int = 1) -> Outcome:
    """One seed by the product, in bf16; the clock ticks after each step."""

    def progress(done: int, total: int, message: str) -> None:
        if message.startswith("loss"):
            clock.tick()

    return finetune(loaded, prepared, seed, "bf16", progress)


def measure_product(
    loaded: LoadedEncoder, prepared: Prepared, *, compiled: bool = True
) -> dict[str, Any]:
    """Figures of the product's step, and what computed its attention."""
    encoder = loaded.encoder
    before = encoder.compiles, encoder.plain
    if not compiled:
        encoder.compiles, encoder.plain = False, PLAIN

    def train(clock: Clock) -> None:
        product(loaded, prepared, clock)

    figures = measure(train, encoder.device, steps_of(prepared))
    notes = {"paths": list(encoder.paths), "slow": encoder.slow_parts()}
    encoder.compiles, encoder.plain = before
    return {**figures, **notes}


def steps_of(prepared: Prepared) -> int:
    """Optimiser steps of a run over the task."""
    recipe = prepared.spec.training
    assert recipe.max_steps is not None
    return recipe.max_steps


def library(
    made_for: Checkpoint, prepared: Prepared, device: torch.device, *, compiled: bool, flat: bool
) -> Train:
    """The library's token classifier on the product's batches, bf16 and fused AdamW.

    flat: documents end to end and variable-length attention, in place of padding.
    """
    model = AutoModelForTokenClassification.from_pretrained(
        made_for.folder,
        num_labels=len(prepared.outputs),
        attn_implementation=VARLEN if flat else "sdpa",
        dtype=torch.float32,
    ).to(device)
    forward = torch.compile(model) if compiled else model
    recipe, split = prepared.spec.training, prepared.train
    rate, decay = recipe.learning_rate, recipe.weight_decay
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    orders = epoch_order(split.lengths, recipe.batch_size, 1, 0, recipe.batching)
    batches = list(orders)[: steps_of(prepared)]
    collate = flat_inputs if flat else padded_inputs

    def train(clock: Clock) -> None:
        model.train()
        for batch in batches:
            ids = [split.encoded[i].ids for i in batch]
            labels = [labels_of(split.encoded[i], split.targets[i]) for i in batch]
            with torch.autocast(device.type, torch.bfloat16):
                loss = forward(**collate(ids, labels, device)).loss
            loss.backward()
            clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            clock.tick()

    return train


def labels_of(encoded: Any, target: Any) -> np.ndarray:
    """A label for each token: those of words at their first tokens."""
    labels = np.full(len(encoded), IGNORED)
    labels[encoded.first] = target
    return labels


def padded_inputs(
    ids: Sequence[np.ndarray], labels: Sequence[np.ndarray], device: torch.device
) -> dict[str, Tensor]:
    """A batch padded to its longest document."""
    size = (len(ids), max(map(len, ids)))
    inputs, mask, wanted = np.zeros(size, int), np.zeros(size, int), np.full(size, IGNORED)
    for row, tokens in enumerate(ids):
        inputs[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
        wanted[row, : len(tokens)] = labels[row]
    arrays = {"input_ids": inputs, "attention_mask": mask, "labels": wanted}
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def flat_inputs(
    ids: Sequence[np.ndarray], labels: Sequence[np.ndarray], device: torch.device
) -> dict[str, Any]:
    """A batch end to end in one row, with where its documents begin."""
    lengths = [len(tokens) for tokens in ids]
    offsets = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).to(device)
    arrays = {
        "input_ids": np.concatenate(ids),
        "position_ids": np.concatenate([np.arange(n) for n in lengths]),
        "labels": np.concatenate(labels),
    }
    inputs = {name: torch.from_numpy(a)[None].to(device) for name, a in arrays.items()}
    return {**inputs, "cu_seq_lens_q": offsets, "max_length_q": max(lengths)}


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
