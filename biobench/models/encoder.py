"""Every encoder as one thing: sequences of ids in, `hidden (tokens, width)` out.

Families that dispatch their attention through the model library run packed: documents end to end in one
row, no padding. At load time the packed states are proved equal to the padded ones on probe sequences;
a family that cannot run packed, or whose proof fails, runs padded. Which one is used is part of the record.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.models.attention import PACKED, Layout, packed
from biobench.models.dropout import use_cheap_dropout

Ints = NDArray[np.int64]

_PROOF_TOLERANCE = 2e-4
"""Largest difference between packed and padded states in fp32, relative to the states' standard deviation."""


class Encoder(nn.Module):
    """An encoder that maps sequences to `hidden (tokens, width)`, tokens of all sequences end to end."""

    def __init__(self, model: PreTrainedModel, pad_id: int) -> None:
        super().__init__()
        self.model = model
        self.pad_id = pad_id
        self.width: int = model.config.hidden_size if hasattr(model.config, "hidden_size") else model.config.dim
        self.position_offset = 0
        self.attention: Literal["packed", "padded"] = "padded"
        # A pooler feeds nothing here; without it no gradient, memory or weight decay is spent on it.
        if hasattr(model, "pooler"):
            setattr(model, "pooler", None)  # noqa: B010
        use_cheap_dropout(model)
        self._prove()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    def forward(self, sequences: Sequence[Ints], types: Sequence[Ints] | None = None) -> Tensor:
        """hidden: (sum of lengths, width).

        types: token types of each sequence (empty: all 0); only encoders that were built with several read them.
        """
        if types is not None:
            types = self._types(sequences, types)
        if self.attention == "packed":
            return self._packed(sequences, self.position_offset, types)
        return self._padded(sequences, types)

    def _types(self, sequences: Sequence[Ints], types: Sequence[Ints]) -> list[Ints] | None:
        """One type a token; None where all are 0 or the encoder has no use for them."""
        known = getattr(self.model.config, "type_vocab_size", None) or 0
        largest = max((int(t.max()) for t in types if len(t)), default=0)
        if not 0 < largest < known or "token_type_ids" not in inspect.signature(self.model.forward).parameters:
            return None
        return [t if len(t) else np.zeros(len(s), dtype=np.int64) for s, t in zip(sequences, types, strict=True)]

    def _packed(self, sequences: Sequence[Ints], offset: int, types: Sequence[Ints] | None = None) -> Tensor:
        lengths = [len(s) for s in sequences]
        ids = torch.from_numpy(np.concatenate(sequences))[None].to(self.device)
        positions = torch.from_numpy(np.concatenate([np.arange(offset, offset + n) for n in lengths]))[None]
        more = (
            {} if types is None else {"token_type_ids": torch.from_numpy(np.concatenate(types))[None].to(self.device)}
        )
        with packed(Layout(lengths, self.device)):
            states: Tensor = self.model(input_ids=ids, position_ids=positions.to(self.device), **more).last_hidden_state
        return states.view(-1, states.shape[-1])

    def _padded(self, sequences: Sequence[Ints], types: Sequence[Ints] | None = None) -> Tensor:
        longest = max(len(s) for s in sequences)
        ids = np.full((len(sequences), longest), self.pad_id, dtype=np.int64)
        mask = np.zeros((len(sequences), longest), dtype=np.int64)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = 1
        real = torch.from_numpy(mask).to(self.device)
        more = {}
        if types is not None:
            segments = np.zeros_like(ids)
            for row, own in enumerate(types):
                segments[row, : len(own)] = own
            more = {"token_type_ids": torch.from_numpy(segments).to(self.device)}
        states: Tensor = self.model(
            input_ids=torch.from_numpy(ids).to(self.device), attention_mask=real, **more
        ).last_hidden_state
        return states[real.bool()]

    def _prove(self) -> None:
        """Choose packed attention if it gives the padded states; else stay padded."""
        model = self.model
        accepts = inspect.signature(model.forward).parameters
        if not getattr(model, "_supports_attention_backend", False) or "position_ids" not in accepts:
            return
        sequences = self._probes()
        training = model.training
        model.train(False)
        with torch.no_grad():
            wanted = self._padded(sequences).float()
            before = model.config._attn_implementation
            model.set_attn_implementation(PACKED)
            pad = model.config.pad_token_id
            for offset in dict.fromkeys((0, 1 + pad if isinstance(pad, int) else 0)):
                limit = getattr(model.config, "max_position_embeddings", None)
                if offset and isinstance(limit, int) and offset + max(map(len, sequences)) > limit:
                    continue
                error = (self._packed(sequences, offset).float() - wanted).abs().max()
                if error <= _PROOF_TOLERANCE * wanted.std():
                    self.attention, self.position_offset = "packed", offset
                    break
            else:
                model.set_attn_implementation(before)
        model.train(training)

    def _probes(self) -> list[Ints]:
        """Two sequences that reach beyond any local window, without the padding id."""
        config = self.model.config
        local = getattr(config, "sliding_window", None) or getattr(config, "local_attention", None) or 0
        longest = max(24, 2 * int(local) + 8)
        limit = getattr(config, "max_position_embeddings", None)
        if isinstance(limit, int):
            pad = config.pad_token_id if isinstance(config.pad_token_id, int) else 0
            longest = max(2, min(longest, limit - pad - 1))
        rng = np.random.default_rng(0)
        ids = [rng.integers(0, config.vocab_size, size=n) for n in (longest, max(2, longest // 3), 5)]
        return [np.where(s == self.pad_id, (self.pad_id + 1) % config.vocab_size, s) for s in ids]
