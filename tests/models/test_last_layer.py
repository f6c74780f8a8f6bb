"""The last layer leaves out tokens that no head reads, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from biobench.encode.tokens import Encoded
from biobench.finetune.network import Network
from biobench.models.encoder import Encoder
from biobench.models.heads import LinearHead
from biobench.models.loading import find_checkpoint
from biobench.models.weights import load_base
from tests.helpers.checkpoints import make_checkpoint

OUTPUTS = 3


def made(family: str, folder: Path) -> Encoder:
    checkpoint = find_checkpoint(str(make_checkpoint(family, folder)))
    return Encoder(load_base(checkpoint, torch.float32), pad_id=1)


def trained(network: Network, windows: list[Encoded]) -> list[Tensor]:
    """Logits, gradients and the next random number of one step with dropout."""
    torch.manual_seed(0)
    network.zero_grad()
    logits = network(windows)
    logits.square().sum().backward()
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    return [logits, *gradients, torch.rand(1)]


@pytest.mark.parametrize(
    ("family", "adapter_dropout", "computed"),
    [("bert", None, 3), ("roberta", None, 3), ("bert", 0.0, 3), ("bert", 0.2, 43)],
)
def test_a_step_is_the_same_with_dropout_when_the_head_reads_first_tokens(
    family: str, adapter_dropout: float | None, computed: int, tmp_path: Path
) -> None:
    encoder = made(family, tmp_path).train()
    network = Network(encoder, LinearHead(encoder.width, OUTPUTS, 0.1, 0.5, "cls"))
    words = np.arange(1, 4)
    windows = [Encoded(np.arange(5, 5 + n), words, words, False, words + 1) for n in (9, 30, 4)]
    last_layer, tokens = encoder.last_layer, []
    assert last_layer is not None
    output = last_layer.layer.get_submodule("output")
    output.register_forward_hook(lambda module, inputs, states: tokens.append(states.shape[1]))
    if adapter_dropout is not None:
        output.dense = torch.nn.Sequential(torch.nn.Dropout(adapter_dropout), output.dense)
    limited = trained(network, windows)
    encoder.last_layer = None
    torch.testing.assert_close(limited, trained(network, windows), atol=1e-6, rtol=1e-5)
    assert tokens == [computed, 43]


def test_all_tokens_are_computed_for_other_heads_and_without_a_head(tmp_path: Path) -> None:
    encoder = made("bert", tmp_path).eval()
    words = np.arange(1, 4)
    window = Encoded(np.arange(5, 15), words, words, False, words + 1)
    with torch.no_grad():
        hidden = encoder([window.ids])
        assert (hidden != 0).any(1).all()
        for pooling in (None, "mean"):
            head = LinearHead(encoder.width, OUTPUTS, 0.1, 0.5, pooling)
            read: list[Tensor] = []
            head.register_forward_pre_hook(lambda module, inputs, read=read: read.append(inputs[0]))
            Network(encoder, head).eval()([window])
            assert torch.equal(read[0], hidden)


def test_a_layer_of_another_kind_is_left_whole(tmp_path: Path) -> None:
    assert made("modernbert", tmp_path).last_layer is None
