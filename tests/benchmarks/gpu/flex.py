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


@lru_cache(maxsize=1)
def _compiled() -> Any:
    return torch.compile(flex_attention, dynamic=False)


def flex_kernel() -> Kernel:
    """A kernel that takes documents and windows as a block mask."""
    return Kernel("flex", _attend)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: Tensor,
    _offsets: Tensor,
    longest: int,
    _longest: int,
    *,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
) -> Tensor:
    """query: (tokens, heads, width), as the variable-length kernels take it."""
    rows = (x.transpose(0, 1)[None] for x in (query, key, value))
    mask = _mask(offsets, len(query), longest, window_size)
    out: Tensor = _compiled()(*rows, block_mask=mask, scale=scale, enable_gqa=enable_gqa)
    return out[0].transpose(0, 1)


def _mask(offsets: Tensor, tokens: int, longest: int, window: tuple[int, int]) -> Any:
    key = (len(offsets), tokens, longest, window)
    if key in _masks:
        return _masks[key]
    places = torch.arange(tokens, device=offsets.device)
    documents = torch.searchsorted(offsets, places, right=True)
    left, right = (tokens if reach < 0 else reach for reach in window)

    def seen(_batch: Tensor, _head: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (documents[q] == documents[k]) & (q - k <= left) & (k - q <= right)

    mask = create_block_mask(
        seen, None, None, tokens, tokens, device=str(offsets.device), _compile=True
    )
    _masks[key] = mask
    return mask
