"""Texts of random tokens, over which two ways to compute the same states are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from biobench.core.arrays import Ints

_WINDOWS = ("sliding_window", "local_attention")
"""How configs call the width of local attention."""
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
        windows = [getattr(self.config, name, None) for name in _WINDOWS]
        local = next(filter(None, windows), 0)
        length = max(least, 2 * int(local) + 8)
        if self._limit is None:
            return length
        return max(2, min(length, self._limit - self.padding_id() - 1))

    def reaches(self, position: int) -> bool:
        """Whether the position embeddings have so many rows."""
        return self._limit is None or position <= self._limit

    @property
    def _limit(self) -> int | None:
        """Rows of the position embeddings; None where the config names no number."""
        limit = getattr(self.config, "max_position_embeddings", None)
        if isinstance(limit, int):
            return limit
        return None

    def padding_id(self) -> int:
        """That of the config, 0 where it names none."""
        pad = getattr(self.config, "pad_token_id", None)
        if isinstance(pad, int):
            return pad
        return 0


def agree(states: Tensor, wanted: Tensor) -> bool:
    """Whether two ways computed the same states; NaN never does."""
    error = (states - wanted).abs().max()
    return bool(error <= _PROOF_TOLERANCE * wanted.std())
