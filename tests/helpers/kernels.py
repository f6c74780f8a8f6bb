"""Stand-ins for the variable-length kernels of accelerators, with the real signatures; `CALLS`
notes each call.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from biobench.core.attention import Kernel


def reference(
    q: Tensor, k: Tensor, v: Tensor, offsets: Tensor, window: tuple[int, int], scale: float | None
) -> Tensor:
    """What the kernels' documentation says: (tokens, heads, width), query i sees keys i - left to i
    + right.
    """
    assert q.dtype == k.dtype == v.dtype, "a kernel takes one type"
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    parts = []
    for begin, end in pairwise(offsets.tolist()):
        mask = _seen(end - begin, window)
        rows = (x[begin:end].transpose(0, 1) for x in (q, k, v))
        parts.append(
            scaled_dot_product_attention(*rows, attn_mask=mask, scale=scale).transpose(0, 1)
        )
    return torch.cat(parts)


def alone(
    states: list[Tensor], lengths: list[int], window: int | None, scale: float | None = None
) -> Tensor:
    """(1, tokens, heads, width): each document by itself, |i - j| < window is visible.

    states: query, key, value (1, heads, tokens, width).
    """
    reach = -1 if window is None else window - 1
    q, k, v = (x[0].transpose(0, 1) for x in states)
    return reference(q, k, v, torch.tensor([0, *lengths]).cumsum(0), (reach, reach), scale)[None]


CALLS: list[dict[str, Any]] = []


def varlen_attn(
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q,
    max_k,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
):
    """As torch declares it."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert enable_gqa or key.shape[1] == query.shape[1]
    assert type(window_size) is tuple
    CALLS.append(
        {
            "name": "torch",
            "heads": key.shape[1],
            "enable_gqa": enable_gqa,
            "longest": (max_q, max_k),
        }
    )
    return reference(query, key, value, cu_seq_q, window_size, scale)


def flash_attn_varlen_func(
    q,
    k,
    v,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p=0.0,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    alibi_slopes=None,
    deterministic=False,
    return_attn_probs=False,
    block_table=None,
):
    """As flash-attn 2 declares it. Dropout is noted, not done."""
    CALLS.append(
        {
            "name": "flash_attn",
            "heads": k.shape[1],
            "dropout": dropout_p,
            "deterministic": deterministic,
        }
    )
    left, right = window_size
    return reference(q, k, v, cu_seqlens_q, (left, 0 if causal else right), softmax_scale)


def _seen(tokens: int, window: tuple[int, int]) -> Tensor:
    """(tokens, tokens) bool: query i sees keys i - left to i + right, -1 all."""
    left, right = window
    far = torch.arange(tokens)[None, :] - torch.arange(tokens)[:, None]
    return ((far >= -left) | (left < 0)) & ((far <= right) | (right < 0))


def _slopes(
    change: Tensor, q: Tensor, k: Tensor, v: Tensor, window: tuple[int, int], scale: float
) -> list[Tensor]:
    """Gradients of one document's attention: (tokens, heads, width) each, by hand, below torch's
    own.
    """
    scores = torch.einsum("ihw,jhw->hij", q, k) * scale
    scores.masked_fill_(~_seen(len(q), window), -torch.inf)
    chances = scores.softmax(-1)
    slope = torch.einsum("ihw,jhw->hij", change, v)
    slope = chances * (slope - (slope * chances).sum(-1, keepdim=True)) * scale
    products = (
        ("hij,jhw->ihw", slope, k),
        ("hij,ihw->jhw", slope, q),
        ("hij,ihw->jhw", chances, change),
    )
    return [torch.einsum(*product) for product in products]


@lru_cache
def torch_kernel_on_cpu() -> Kernel:
    """torch's own kernel, whose operators now compute on a CPU too: what is traced is what a GPU is
    given.
    """
    from torch.nn.attention import varlen

    @varlen._varlen_attn.register_kernel("cpu")
    def _(q, k, v, offsets, _k, _longest, _l, _causal=False, scale=None, window=None, *_more):
        out = reference(q, k, v, offsets, (window[0], window[1]), scale)
        return out.contiguous(), q.new_zeros(q.shape[1], len(q)), torch.zeros(2, dtype=torch.uint64)

    @varlen._varlen_attn_backward.register_kernel("cpu")
    def _(
        change, q, k, v, _out, _lse, offsets, _k, _m, _l, _causal, _random, scale=None, window=None
    ):
        ends = pairwise(offsets.tolist())
        reach = (window[0], window[1])
        parts = [_slopes(*(x[a:b] for x in (change, q, k, v)), reach, scale) for a, b in ends]
        return tuple(torch.cat(rows) for rows in zip(*parts, strict=True))

    return Kernel("torch", varlen.varlen_attn)
