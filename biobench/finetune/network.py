"""Encoder and head as one trainable network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from biobench.encode.tokens import Encoded
from biobench.models.encoder import Attention, Encoder
from biobench.models.heads import SequenceHead, TokenHead
from biobench.models.loading import Checkpoint
from biobench.models.span_head import SpanHead, SpanScores, Units
from biobench.models.stock import StockHead
from biobench.schema.task import Head


class Network(nn.Module):
    """encoder -> hidden (tokens, width) -> head -> logits."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    @property
    def attention(self) -> Attention:
        """How batches meet the encoder."""
        return self.encoder.attention

    def forward(self, encoded: Sequence[Encoded]) -> Tensor | SpanScores:
        """Logits (fp32): one row per visible word (token tasks) or per window; or the scores of spans."""
        lengths = [len(e) for e in encoded]
        hidden = self.encoder([e.ids for e in encoded], [e.types for e in encoded])
        begins = np.cumsum([0, *lengths[:-1]])
        rows = np.concatenate([e.first + b for e, b in zip(encoded, begins, strict=True)])
        if isinstance(self.head, SpanHead):
            stops = np.concatenate([e.stop + b for e, b in zip(encoded, begins, strict=True)])
            first, stop = (torch.from_numpy(x).to(hidden.device) for x in (rows, stops))
            scores: SpanScores = self.head(hidden, Units(first, stop, [len(e.words) for e in encoded]))
            return scores
        logits: Tensor = self.head(hidden, lengths, torch.from_numpy(rows).to(hidden.device))
        return logits


def build_head(head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
    """A fresh head; its weights come from torch's current random state."""
    std = float(getattr(checkpoint.config, "initializer_range", 0.02) or 0.02)
    if head.span is not None:
        return SpanHead(width, outputs, head.dropout, head.pooling, head.span)
    if head.kind == "token":
        return TokenHead(width, outputs, head.dropout, std)
    if head.pooling == "stock":
        return StockHead(checkpoint, outputs)
    return SequenceHead(width, outputs, head.dropout, std, "mean" if head.pooling == "mean" else "cls")
