"""torch's flex attention in the place of a variable-length kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from biobench.core.attention import Kernel

_masks: dict[tuple[int, int, int, tuple[int, int]], Any] = {}
"""By documents, tokens, the longest document and the window. Reading the offsets would make the
host wait; no step has two sets of documents that agree in all three.
"""


@lru_cache
def _compiled(function: Any) -> Any:
    return torch.compile(function, dynamic=False)


def flex_kernel() -> Kernel:
    """A kernel that takes documents and windows as a block mask."""
    return Kernel("flex", _attend)


def _attend(
    *states: Tensor, window_size: tuple[int, int], enable_gqa: bool = False, scale: float | None
) -> Tensor:
    """query, key, value (tokens, heads, width), offsets and longest document of either side."""
    query, key, value, offsets, _, longest, _ = states
    mask_key = (len(offsets), len(query), int(longest), window_size)
    if mask_key not in _masks:
        _masks[mask_key] = _mask(offsets, len(query), window_size)
    rows = (x.transpose(0, 1)[None] for x in (query, key, value))
    attend = _compiled(flex_attention) if query.is_cuda else flex_attention
    out: Tensor = attend(*rows, block_mask=_masks[mask_key], scale=scale, enable_gqa=enable_gqa)
    return out[0].transpose(0, 1)


def _mask(offsets: Tensor, tokens: int, window: tuple[int, int]) -> Any:
    positions = torch.arange(tokens, device=offsets.device)
    documents = torch.searchsorted(offsets, positions, right=True)
    left, right = (tokens if reach < 0 else reach for reach in window)

    def seen(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (documents[q] == documents[k]) & (q - k <= left) & (k - q <= right)

    # without compilation the mask of all tokens by all tokens is made first
    make = _compiled(create_block_mask) if offsets.is_cuda else create_block_mask
    return make(seen, None, None, tokens, tokens, device=offsets.device)
