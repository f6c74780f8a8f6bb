"""The probe's network: pooled or pooling over cached states, then a linear layer or a small MLP."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from biobench.schema.training import Probe


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
        if probe.kind == "linear":
            self.layers = nn.Sequential(nn.Dropout(probe.dropout), nn.Linear(width, outputs))
        else:
            self.layers = nn.Sequential(
                nn.Dropout(probe.dropout),
                nn.Linear(width, hidden),
                nn.GELU(),
                nn.Dropout(probe.dropout),
                nn.Linear(hidden, outputs),
            )

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
