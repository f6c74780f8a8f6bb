"""Heads consume `hidden (tokens, width)` and `lengths`, whatever the encoder behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn


def _starts(lengths: Sequence[int], device: torch.device) -> Tensor:
    """(sequences,) position of each sequence's first token."""
    sizes = torch.tensor(lengths)
    return (sizes.cumsum(0) - sizes).to(device)


def pool(hidden: Tensor, lengths: Sequence[int], pooling: Literal["cls", "mean"]) -> Tensor:
    """(sequences, width): each sequence's first token, or the mean of its tokens (in fp32)."""
    if pooling == "cls":
        return hidden[_starts(lengths, hidden.device)]
    sizes = torch.tensor(lengths, device=hidden.device)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), sizes)
    total = torch.zeros(len(lengths), hidden.shape[1], dtype=torch.float32, device=hidden.device)
    return total.index_add(0, owner, hidden.float()) / sizes[:, None]


class TokenHead(nn.Module):
    """Dropout and a linear layer on chosen tokens."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor, lengths: Sequence[int], positions: Tensor) -> Tensor:
        """positions: (chosen,) rows of `hidden`. Logits: (chosen, outputs) in fp32."""
        return self.linear(self.dropout(hidden[positions])).float()  # type: ignore[no-any-return]


class SequenceHead(nn.Module):
    """Pooling (first token or mean), dropout and a linear layer."""

    def __init__(self, width: int, outputs: int, dropout: float, std: float, pooling: Literal["cls", "mean"]) -> None:
        super().__init__()
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(width, outputs)
        nn.init.normal_(self.linear.weight, std=std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor, lengths: Sequence[int], positions: Tensor) -> Tensor:
        """Logits: (sequences, outputs) in fp32. `positions` is not used."""
        return self.linear(self.dropout(pool(hidden, lengths, self.pooling))).float()  # type: ignore[no-any-return]
