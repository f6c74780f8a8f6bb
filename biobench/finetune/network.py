"""Encoder and head as one trainable network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from biobench.core.transfer import to_device
from biobench.encode.tokens import Encoded
from biobench.models.encoder import Attention, Encoder
from biobench.models.heads import Units


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

    def forward(self, encoded: Sequence[Encoded]) -> Any:
        """What the head gives: logits (fp32), one row per visible word or per window; or the scores of spans."""
        lengths = [len(e) for e in encoded]
        hidden = self.encoder([e.ids for e in encoded], [e.types for e in encoded])
        begins = np.cumsum([0, *lengths[:-1]])
        first, stop = (
            to_device(np.concatenate(rows), hidden.device)
            for rows in zip(*((e.first + b, e.stop + b) for e, b in zip(encoded, begins, strict=True)), strict=True)
        )
        tokens = sum(int((e.stop - e.first).sum()) for e in encoded)
        return self.head(hidden, Units(first, stop, [len(e.words) for e in encoded], lengths, tokens))
