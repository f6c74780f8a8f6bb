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
    each = torch.arange(len(sizes), device=hidden.device)
    owner = torch.repeat_interleave(each, sizes, output_size=units.tokens)
    within = torch.arange(len(owner), device=hidden.device) - (sizes.cumsum(0) - sizes)[owner]
    total = torch.zeros(len(sizes), hidden.shape[1], device=hidden.device)
    return total.index_add(0, owner, hidden[units.first[owner] + within].float()) / sizes[:, None]


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
        pooling = self.pooling
        if pooling is None:
            pooling = "first"
        else:
            units = _whole_sequences(units.lengths, hidden)
        logits: Tensor = self.linear(self.dropout(pool(hidden, units, pooling)))
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
            sums.append(torch.stack([vectors.sum(0), vectors.square().sum(0)]))
        mean, square = torch.stack(sums).sum(0) / real.sum()
        self.mean.copy_(mean)
        self.scale.copy_((square - mean.square()).clamp(min=1e-12).rsqrt())

    def forward(self, states: Tensor, real: Tensor) -> Tensor:
        """states: (documents, vectors, width); real: (documents, vectors), False where there is no
        vector.
        """
        rows = (states.float() - self.mean) * self.scale
        if self.direction is None:
            return self.layers(rows[:, 0])  # type: ignore[no-any-return]
        weights = (rows @ self.direction) / rows.shape[-1] ** 0.5
        weights = weights.masked_fill(~real, float("-inf")).softmax(-1)
        return self.layers((weights[..., None] * rows).sum(1))  # type: ignore[no-any-return]
