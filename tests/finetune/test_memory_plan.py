"""Memory of a run, by numbers: what a backward pass keeps, counted on a CPU that passes for an
accelerator.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig, ModernBertConfig

from biobench.core import attention as core
from biobench.core.machine import Precision
from biobench.finetune.network import activation_bytes
from biobench.models import attention
from biobench.models.encoder import Encoder
from tests.helpers.kernels import torch_kernel_on_cpu

GIB = 2**30


def saved_bytes(encoder: Encoder, documents: int, precision: Precision) -> int:
    """Of the tensors that the backward pass of documents of 64 tokens reads, weights left out."""
    weights = {p.untyped_storage().data_ptr() for p in encoder.parameters()}
    storages: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage
        return tensor

    in_bf16 = precision == "bf16"
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=in_bf16),
    ):
        encoder([np.full(64, 7) for _ in range(documents)])
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("inner", [96, 384])
@pytest.mark.parametrize("made", [BertConfig, ModernBertConfig])
def test_activations_are_planned_at_what_they_are_or_up_to_six_tenths_more(
    made: type, inner: int, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "KERNEL_DEVICES", ("cpu",))
    monkeypatch.setattr(core, "TYPES", (torch.float32, torch.bfloat16))
    config = made(
        vocab_size=50,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=inner,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    encoder = Encoder(AutoModel.from_config(config), 0).train()
    encoder.kernels = (torch_kernel_on_cpu(),)
    small, large = (saved_bytes(encoder, documents, precision) for documents in (2, 8))
    ratio = activation_bytes(config, 6 * 64, precision) / (large - small)
    assert 1.0 <= ratio <= 1.6


def test_the_largest_micro_batch_of_a_base_model_takes_forty_gigabytes() -> None:
    base = SimpleNamespace(hidden_size=768, intermediate_size=1152, num_hidden_layers=22)
    assert 38 * GIB < activation_bytes(base, 65_536, "bf16") < 46 * GIB
