"""Heads consume `hidden (tokens, width)` and the `Units` of the batch, whatever the encoder behind
them.

A probe's head consumes cached states instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from biobench.core.machine import to_device
from biobench.schema.training import Probe


@dataclass(frozen=True, slots=True)
class Units:
    """Where the words of each sequence stand.

    first, stop: (words,) rows of `hidden`; counts: (sequences,) words; lengths: (sequences,)
    tokens. tokens: of all words together; None makes the mean over a word's tokens ask the device
    for it.
    """

    first: Tensor
    stop: Tensor
    counts: Sequence[int]
    lengths: Sequence[int] = ()
    tokens: int | None = None


def pool(hidden: Tensor, units: Units, pooling: str) -> Tensor:
    """(units, width): the first token of each unit, or (`mean`, in fp32) the mean of its tokens."""
    if pooling != "mean":
        return hidden[units.first]
    sizes = units.stop - units.first
    numbers = torch.arange(len(sizes), device=hidden.device)
    # of each token that belongs to a unit: its unit, and its row
    owner = torch.repeat_interleave(numbers, sizes, output_size=units.tokens)
    begins = sizes.cumsum(0) - sizes
    within = torch.arange(len(owner), device=hidden.device) - begins[owner]
    rows = units.first[owner] + within
    sums = torch.zeros(len(sizes), hidden.shape[1], device=hidden.device)
    sums = sums.index_add(0, owner, hidden[rows].float())
    return sums / sizes[:, None]


class LinearHead(nn.Module):
    """Dropout and a linear layer on the first token of each word, or (pooling) on each sequence's
    first token or mean.

    std: of the initial weights.
    """

    def __init__(
        self, width: int, outputs: int, dropout: float, std: float, pooling: str | None = None
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor, units: Units) -> Tensor:
        """Logits: (words or sequences, outputs) in fp32."""
        pooling = self.pooling or "first"
        if self.pooling is not None:
            units = _whole_sequences(units.lengths, hidden)
        pooled = pool(hidden, units, pooling)
        logits: Tensor = self.linear(self.dropout(pooled))
        return logits.float()


def _whole_sequences(lengths: Sequence[int], hidden: Tensor) -> Units:
    """Each sequence as one unit."""
    counts = torch.tensor(lengths)
    stops = counts.cumsum(0)
    begins = stops - counts
    return Units(
        first=to_device(begins, hidden.device),
        stop=to_device(stops, hidden.device),
        counts=(),
        tokens=len(hidden),
    )


class ProbeHead(nn.Module):
    """(documents, vectors, width) cached states to (documents, outputs) logits, in fp32.

    mlp: dropout, linear, GELU, dropout, linear. With pooling `attention` one learned direction
    weighs the document's vectors (a softmax of their products with it over the root of the width).
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int, outputs: int, probe: Probe) -> None:
        super().__init__()
        hidden = probe.hidden or width
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.direction: nn.Parameter | None = None
        if probe.pooling == "attention":
            self.direction = nn.Parameter(torch.zeros(width))
        drop = nn.Dropout(probe.dropout)
        layers: list[nn.Module] = [drop]
        if probe.kind == "mlp":
            layers += [nn.Linear(width, hidden), nn.GELU(), drop]
            width = hidden
        self.layers = nn.Sequential(*layers, nn.Linear(width, outputs))

    def standardise(self, states: Tensor, real: Tensor) -> None:
        """Take mean and standard deviation of each dimension from these states' real vectors."""
        chunks = zip(torch.split(states, 256), torch.split(real, 256), strict=True)
        sums: list[Tensor] = []
        for chunk, is_real in chunks:
            vectors = chunk[is_real].double()
            squares = vectors.square()
            sums.append(torch.stack([vectors.sum(0), squares.sum(0)]))
        mean, square = torch.stack(sums).sum(0) / real.sum()
        variance = square - mean.square()
        self.mean.copy_(mean)
        self.scale.copy_(variance.clamp(min=1e-12).rsqrt())

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """states: (documents, vectors, width); real: (documents, vectors), False where there is no
        vector.
        """
        vectors = (states.float() - self.mean) * self.scale
        pooled = vectors[:, 0]
        if self.direction is not None:
            products = vectors @ self.direction
            products = products / vectors.shape[-1] ** 0.5
            weights = products.masked_fill(~real, float("-inf")).softmax(-1)
            pooled = (weights[..., None] * vectors).sum(1)
        logits: Tensor = self.layers(pooled)
        return logits
