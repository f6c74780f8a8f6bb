"""Attention over packed documents: no padding anywhere, no document sees another.

One function is registered with the model library for every family that dispatches its attention. Documents
stand end to end in one row; the layout says where each begins. On CUDA the flash-attn package's
variable-length kernel is used when it can be imported; elsewhere groups of similar length (CPU, `grouped`) or
the gathered batch (CUDA) go through scaled dot-product attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from biobench.models.grouped import Group, grouped_attention, make_groups, visible
from biobench.models.local import in_blocks

PACKED = "biobench_packed"


@dataclass(slots=True)
class Layout:
    """Where each document stands in a packed row."""

    lengths: list[int]
    device: torch.device
    _cache: dict[str, Any] | None = None

    def remember(self, name: str, make: Any) -> Any:
        """A value computed once per layout (all layers share it)."""
        if self._cache is None:
            self._cache = {}
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def cumulative(self) -> Tensor:
        """(documents + 1,) int32 offsets."""
        return self.remember(  # type: ignore[no-any-return]
            "cumulative",
            lambda: torch.tensor([0, *torch.tensor(self.lengths).cumsum(0).tolist()], dtype=torch.int32).to(
                self.device
            ),
        )


_current: list[Layout] = []


@contextmanager
def packed(layout: Layout) -> Iterator[None]:
    """Make `layout` the one that attention calls inside the block obey."""
    _current.append(layout)
    try:
        yield
    finally:
        _current.pop()


@lru_cache(maxsize=1)
def flash_available() -> bool:
    """True where the optional flash-attn package can be imported."""
    return find_spec("flash_attn") is not None


def _packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """query, key, value: (1, heads, tokens, width); result (1, tokens, heads, width).

    sliding_window counts the token itself: |i - j| < sliding_window is visible.
    """
    layout = _current[-1]
    if key.shape[1] != query.shape[1]:
        times = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    if query.is_cuda:
        if flash_available() and query.dtype in (torch.bfloat16, torch.float16):
            return _flash(layout, query, key, value, dropout, scaling, sliding_window), None
        return _gathered(layout, query, key, value, dropout, scaling, sliding_window), None
    groups = layout.remember(f"groups {query.shape[1]}", lambda: make_groups(layout.lengths, query.shape[1]))

    def masks() -> list[Tensor | None]:
        blocks = [dropout == 0.0 and in_blocks(g.length, sliding_window) for g in groups.groups]
        return [None if block else visible(g, sliding_window) for g, block in zip(groups.groups, blocks, strict=True)]

    known = layout.remember(f"masks {sliding_window} {dropout > 0.0}", masks)
    out = grouped_attention(groups, query, key, value, known, dropout=dropout, scaling=scaling, window=sliding_window)
    return out, None


def _flash(
    layout: Layout, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None, window: int | None
) -> Tensor:
    from flash_attn import flash_attn_varlen_func

    longest = max(layout.lengths)
    offsets = layout.cumulative()
    reach = (-1, -1) if window is None else (window - 1, window - 1)
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    out: Tensor = flash_attn_varlen_func(
        q, k, v, offsets, offsets, longest, longest, dropout_p=dropout, softmax_scale=scaling, window_size=reach
    )
    return out[None]


def _gathered(
    layout: Layout, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None, window: int | None
) -> Tensor:
    """Attention on a padded gather of the packed row; only attention itself sees the padding."""
    longest, documents = max(layout.lengths), len(layout.lengths)

    def indices() -> tuple[Tensor, Tensor, Tensor]:
        lengths = torch.tensor(layout.lengths, device=query.device)
        begin = lengths.cumsum(0) - lengths
        within = torch.arange(longest, device=query.device)
        real = within[None, :] < lengths[:, None]
        gather = torch.where(real, begin[:, None] + within[None, :], 0).view(-1)
        return gather, real, real.view(-1).nonzero()[:, 0]

    gather, real, scatter = layout.remember("gather", indices)
    mask = visible(Group(0, documents, longest, real), window, query.device)

    def spread(x: Tensor) -> Tensor:
        return x[0].transpose(0, 1)[gather].view(documents, longest, x.shape[1], x.shape[3]).transpose(1, 2)

    out = scaled_dot_product_attention(
        spread(query), spread(key), spread(value), attn_mask=mask, dropout_p=dropout, scale=scaling
    )
    return out.transpose(1, 2).reshape(documents * longest, query.shape[1], query.shape[3])[scatter][None]


def _no_mask(*_: Any, **__: Any) -> None:
    """The packed function knows what is visible; the library builds no mask for it."""


AttentionInterface.register(PACKED, _packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
