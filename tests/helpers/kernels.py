"""Stand-ins for the variable-length kernels of accelerators, with the real signatures; `CALLS` notes each call."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def reference(q: Tensor, k: Tensor, v: Tensor, offsets: Tensor, window: tuple[int, int], scale: float | None) -> Tensor:
    """What the kernels' documentation says: (tokens, heads, width), query i sees keys i - left to i + right."""
    assert q.dtype == k.dtype == v.dtype, "a kernel takes one type"
    left, right = window
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    parts = []
    for begin, end in pairwise(offsets.tolist()):
        far = torch.arange(end - begin)[None, :] - torch.arange(end - begin)[:, None]
        mask = ((far >= -left) | (left < 0)) & ((far <= right) | (right < 0))
        rows = (x[begin:end].transpose(0, 1) for x in (q, k, v))
        parts.append(scaled_dot_product_attention(*rows, attn_mask=mask, scale=scale).transpose(0, 1))
    return torch.cat(parts)


def alone(states: list[Tensor], lengths: list[int], window: int | None, scale: float | None = None) -> Tensor:
    """(1, tokens, heads, width): each document by itself, |i - j| < window is visible.

    states: query, key, value (1, heads, tokens, width).
    """
    reach = -1 if window is None else window - 1
    q, k, v = (x[0].transpose(0, 1) for x in states)
    return reference(q, k, v, torch.tensor([0, *lengths]).cumsum(0), (reach, reach), scale)[None]


CALLS: list[dict[str, Any]] = []


def varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, return_aux=None, scale=None, window_size=(-1, -1),
    enable_gqa=False, seqused_k=None, block_table=None, num_splits=None,
):  # fmt: skip
    """As torch declares it."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert enable_gqa or key.shape[1] == query.shape[1]
    assert type(window_size) is tuple
    CALLS.append({"name": "torch", "heads": key.shape[1], "enable_gqa": enable_gqa, "longest": (max_q, max_k)})
    return reference(query, key, value, cu_seq_q, window_size, scale)


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
    return_attn_probs=False, block_table=None,
):  # fmt: skip
    """As flash-attn 2 declares it. Dropout is noted, not done."""
    CALLS.append({"name": "flash_attn", "heads": k.shape[1], "dropout": dropout_p, "deterministic": deterministic})
    left, right = window_size
    return reference(q, k, v, cu_seqlens_q, (left, 0 if causal else right), softmax_scale)
