"""Texts of random tokens, over which two ways to compute the same states are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from biobench.models.inputs import Ints

_PROOF_TOLERANCE = 2e-4
"""Largest difference between two ways to compute the same states in fp32, relative to their
standard deviation.
"""


class Probes:
    """Sequences of ids that may stand in a text of one encoder."""

    def __init__(self, config: Any, ids: Ints) -> None:
        """ids: that may be drawn; the padding id is none of them."""
        self.config = config
        self.ids = ids

    def sequences(self) -> list[Ints]:
        """Three, the first of which reaches beyond any local window that the config names."""
        rng = np.random.default_rng(0)
        longest = self.length()
        return [self.draw(rng, length) for length in (longest, max(2, longest // 3), 5)]

    def draw(self, rng: np.random.Generator, length: int) -> Ints:
        """(length,) ids at random."""
        drawn: Ints = rng.choice(self.ids, size=length)
        return drawn

    def length(self, least: int = 24) -> int:
        """Tokens that reach beyond any local window that the config names, `least` at least; fewer
        where the position embeddings do not reach as far.
        """
        named = (getattr(self.config, name, None) for name in ("sliding_window", "local_attention"))
        local = next((int(window) for window in named if window), 0)
        length = max(least, 2 * local + 8)
        limit = getattr(self.config, "max_position_embeddings", None)
        if not isinstance(limit, int):
            return length
        return max(2, min(length, limit - self.padding_id() - 1))

    def padding_id(self) -> int:
        """That of the config, 0 where it names none."""
        pad = getattr(self.config, "pad_token_id", None)
        return pad if isinstance(pad, int) else 0


def agree(states: Tensor, wanted: Tensor) -> bool:
    """Whether two ways computed the same states; NaN never does."""
    error = (states - wanted).abs().max()
    return bool(error <= _PROOF_TOLERANCE * wanted.std())
