"""Heads consume `hidden (tokens, width)` and the `Units` of the batch, whatever the encoder behind them.

A probe's head consumes cached states instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from biobench.core.machine import to_device
from biobench.schema.training import Probe


@dataclass(frozen=True, slots=True)
class Units:
    """Where the words of each sequence stand.

    first, stop: (words,) rows of `hidden`; counts: (sequences,) words; lengths: (sequences,) tokens. tokens: of all
    words together; None makes the mean over a word's tokens ask the device for it.
    """

    first: Tensor
    stop: Tensor
    counts: Sequence[int]
    lengths: Sequence[int] = ()
    tokens: int | None = None


def pool(hidden: Tensor, lengths: Sequence[int], pooling: Literal["cls", "mean"]) -> Tensor:
    """(sequences, width): each sequence's first token, or the mean of its tokens (in fp32)."""
    counts = torch.tensor(lengths)
    if pooling == "cls":
        return hidden[to_device(counts.cumsum(0) - counts, hidden.device)]
    owner = to_device(torch.repeat_interleave(torch.arange(len(lengths)), counts), hidden.device)
    sizes = to_device(counts, hidden.device)
    total = torch.zeros(len(lengths), hidden.shape[1], dtype=torch.float32, device=hidden.device)
    return total.index_add(0, owner, hidden.float()) / sizes[:, None]


def _linear(width: int, outputs: int, std: float) -> nn.Linear:
    layer = nn.Linear(width, outputs)
    nn.init.normal_(layer.weight, std=std)
    nn.init.zeros_(layer.bias)
    return layer


class TokenHead(nn.Module):
    """Dropout and a linear layer on the first token of each word."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float) -> None:
        super().__init__()
        self.dropout, self.linear = nn.Dropout(dropout), _linear(width, outputs, std)

    def forward(self, hidden: Tensor, units: Units) -> Tensor:
        """Logits: (words, outputs) in fp32."""
        return self.linear(self.dropout(hidden[units.first])).float()  # type: ignore[no-any-return]


class SequenceHead(nn.Module):
    """Pooling (first token or mean), dropout and a linear layer."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float, pooling: Literal["cls", "mean"]) -> None:
        super().__init__()
        self.pooling = pooling
        self.dropout, self.linear = nn.Dropout(dropout), _linear(width, outputs, std)

    def forward(self, hidden: Tensor, units: Units) -> Tensor:
        """Logits: (sequences, outputs) in fp32."""
        return self.linear(self.dropout(pool(hidden, units.lengths, self.pooling))).float()  # type: ignore[no-any-return]


class ProbeHead(nn.Module):
    """(documents, vectors, width) cached states to (documents, outputs) logits, in fp32.

    mlp: dropout, linear, GELU, dropout, linear. With pooling `attention` one learned direction weighs the
    document's vectors (a softmax of their products with it over the root of the width).
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int, outputs: int, probe: Probe) -> None:
        super().__init__()
        hidden = probe.hidden or width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.direction = nn.Parameter(torch.zeros(width)) if probe.pooling == "attention" else None
        drop = nn.Dropout(probe.dropout)
        if probe.kind == "linear":
            self.layers = nn.Sequential(drop, nn.Linear(width, outputs))
        else:
            self.layers = nn.Sequential(drop, nn.Linear(width, hidden), nn.GELU(), drop, nn.Linear(hidden, outputs))

    def standardise(self, states: Tensor, real: Tensor) -> None:
        """Take mean and standard deviation of each dimension from these states' real vectors."""
        count, total = 0, torch.zeros_like(self.mean, dtype=torch.float64)
        square = torch.zeros_like(total)
        for part, present in zip(torch.split(states, 256), torch.split(real, 256), strict=True):
            rows = part[present].double()
            count += len(rows)
            total = total + rows.sum(0)
            square = square + rows.square().sum(0)
        mean = total / count
        variance = (square / count - mean.square()).clamp(min=1e-12)
        self.mean.copy_(mean)
        self.scale.copy_(variance.sqrt().reciprocal())

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """states: (documents, vectors, width); real: (documents, vectors), False where there is no vector."""
        rows = (states.float() - self.mean) * self.scale
        if self.direction is None:
            return self.layers(rows[:, 0])  # type: ignore[no-any-return]
        weights = (rows @ self.direction) / rows.shape[-1] ** 0.5
        weights = weights.masked_fill(~real, float("-inf")).softmax(-1)
        return self.layers((weights[..., None] * rows).sum(1))  # type: ignore[no-any-return]
