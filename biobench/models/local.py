"""Local attention of long documents in blocks of queries, so that nothing of size length x length is ever held."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

BLOCK = 256
"""Queries that are computed together, at least; a block sees its own keys and a window on either side."""
_LONG = 4
"""Blocks in a document from which it pays to compute them one by one."""


def in_blocks(length: int, window: int | None) -> bool:
    """Whether documents of this length are computed block by block: long, and with a short window."""
    return window is not None and length > _LONG * _block(window)


def local_attention(
    query: Tensor, key: Tensor, value: Tensor, window: int, real: Tensor | None, scaling: float | None
) -> Tensor:
    """query, key, value: (count, heads, length, width); result alike. No dropout.

    window counts the token itself: |i - j| < window is visible. real: (count, length) bool, None where no
    document is padded; a padded query sees at least itself.
    """
    length, reach = query.shape[2], window - 1
    size = _block(window)
    parts = []
    for begin in range(0, length, size):
        end = min(begin + size, length)
        low, high = max(0, begin - reach), min(length, end + reach)
        rows = torch.arange(begin, end, device=query.device)[:, None]
        columns = torch.arange(low, high, device=query.device)[None, :]
        mask = ((rows - columns).abs() < window)[None, None]
        if real is not None:
            mask = (mask & real[:, None, None, low:high]) | (rows == columns)[None, None]
        keys, values = key[:, :, low:high], value[:, :, low:high]
        parts.append(scaled_dot_product_attention(query[:, :, begin:end], keys, values, attn_mask=mask, scale=scaling))
    return torch.cat(parts, 2)


def _block(window: int) -> int:
    return max(BLOCK, 2 * window)
