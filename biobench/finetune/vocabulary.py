"""Only the embedding rows that the training documents use are trained; the others are decayed,
exactly.

A row whose token never occurs in training has no gradient, so AdamW changes it by nothing but
weight decay, the same factor for all such rows. The used rows become a compact table with its own
gradient and optimiser state (for a biomedical task often a tenth of the vocabulary); the factor is
applied to the rest when the full table is needed. The result is that of dense AdamW on the whole
table, at the cost of the used rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding as look_up

from biobench.core.arrays import Ints
from biobench.models.encoder import Encoder


class UsedRows(nn.Module):
    """Stands in for an embedding while it is trained."""

    lookup: Tensor
    used: Tensor

    def __init__(self, whole: nn.Embedding, used: Tensor) -> None:
        """used: (rows,) ids of the rows that can have a gradient."""
        super().__init__()
        self.whole = whole
        self.rows = nn.Parameter(whole.weight.detach()[used].clone())
        self.register_buffer("used", used, persistent=False)
        device = used.device
        lookup = torch.zeros(whole.num_embeddings, dtype=torch.long, device=device)
        lookup[used] = torch.arange(len(used), device=device)
        self.register_buffer("lookup", lookup, persistent=False)
        self.padding: int | None = None
        if whole.padding_idx is not None:
            self.padding = int(lookup[whole.padding_idx])
        self.pending = 1.0
        """What the rows of the whole table that are not used are still to be multiplied by."""

    def forward(self, ids: Tensor) -> Tensor:
        """(…, width): from the compact table in training, from the whole one otherwise."""
        if self.training:
            return look_up(self.lookup[ids], self.rows, padding_idx=self.padding)
        states: Tensor = self.whole(ids)
        return states

    def decayed(self, rate: float, weight_decay: float) -> None:
        """Note one optimiser step: what it did to every row that was not used."""
        self.pending *= 1.0 - rate * weight_decay

    @torch.no_grad()
    def write_back(self) -> None:
        """Bring the whole table up to date."""
        self.whole.weight.mul_(self.pending)
        self.whole.weight[self.used] = self.rows.detach()
        self.pending = 1.0


@contextmanager
def trained_rows(encoder: Encoder, documents: Iterable[Ints]) -> Iterator[UsedRows | None]:
    """Train only the embedding rows that `documents` (arrays of ids) use; the embedding is put back
    at the end.

    Gives None, and changes nothing, where the encoder's input embedding is not a plain table.
    """
    whole = _plain_table(encoder)
    if whole is None:
        yield None
        return
    pads = [encoder.pad_id]
    if whole.padding_idx is not None:
        pads.append(whole.padding_idx)
    ids = np.concatenate([*documents, pads])
    used = torch.from_numpy(np.unique(ids))
    stand_in = UsedRows(whole, used.to(whole.weight.device))
    whole.weight.requires_grad_(False)
    encoder.model.set_input_embeddings(stand_in)
    try:
        yield stand_in
    finally:
        encoder.model.set_input_embeddings(whole)
        whole.weight.requires_grad_(True)


def _plain_table(encoder: Encoder) -> nn.Embedding | None:
    """The encoder's input embedding, where a gradient is all that changes its rows."""
    try:
        table = encoder.model.get_input_embeddings()
    except NotImplementedError:  # a family that embeds by several tables (CANINE)
        return None
    if type(table) is nn.Embedding and table.max_norm is None and table.weight.requires_grad:
        return table
    return None
