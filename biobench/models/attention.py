"""Attention over packed documents: no padding anywhere, no document sees another.

One function is registered with the model library for every family that dispatches its attention. Documents
stand end to end in one row; the layout says where each begins. On CUDA a variable-length kernel computes them
(`biobench.core.attention`); where none can, a padded batch that only attention sees goes through scaled dot-product
attention, and the layout says why. On a CPU groups of similar length do (`grouped`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from biobench.core.attention import Kernel, choose_kernel, repeated
from biobench.core.machine import to_device
from biobench.models.grouped import GROWTH, dropped_attention, grouped_attention, make_groups

PACKED = "biobench_packed"
GATHERED = "padded batch"
"""What computes packed attention on an accelerator where no kernel does."""
KERNEL_DEVICES = ("cuda",)
"""Kinds of device that have kernels."""


@dataclass(slots=True)
class Layout:
    """Where each document stands in a packed row."""

    lengths: list[int]
    device: torch.device
    kernels: tuple[Kernel, ...] = ()
    """Those that may compute it."""
    paths: dict[str, str] = field(default_factory=dict)
    """Accelerators: what computed the layers, and why it is no kernel (empty where it is one)."""
    _cache: dict[str, Any] = field(default_factory=dict)

    def remember(self, name: str, make: Any) -> Any:
        """A value computed once per layout (all layers share it)."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def cumulative(self) -> Tensor:
        """(documents + 1,) int32 offsets."""

        def offsets() -> Tensor:
            sizes = torch.tensor([0, *self.lengths])
            return to_device(sizes.cumsum(0).to(torch.int32), self.device)

        return self.remember("cumulative", offsets)  # type: ignore[no-any-return]


_current: list[Layout] = []


@contextmanager
def packed(layout: Layout) -> Iterator[None]:
    """Make `layout` the one that attention calls inside the block obey."""
    _current.append(layout)
    try:
        yield
    finally:
        _current.pop()


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
    layout, heads = _current[-1], query.shape[1]
    accelerated = query.device.type in KERNEL_DEVICES
    if accelerated:
        if query.dtype != value.dtype:  # rotary positions leave fp32 behind under autocast, which no kernel takes
            query, key = query.to(value.dtype), key.to(value.dtype)
        kernel = choose_kernel(layout.kernels, query, dropout)
        if not isinstance(kernel, str):
            layout.paths[kernel.name] = ""
            reach = (-1, -1) if sliding_window is None else (sliding_window - 1, sliding_window - 1)
            q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
            longest = max(layout.lengths)
            out = kernel.attend(q, k, v, layout.cumulative(), longest, window=reach, scaling=scaling, dropout=dropout)
            return out[None], None
        layout.paths[GATHERED] = kernel
    key, value = (repeated(x, heads, 1) for x in (key, value))
    growth = float("inf") if accelerated else GROWTH  # an accelerator computes one large block in less time than many
    groups = layout.remember(f"groups {heads}", lambda: make_groups(layout.lengths, heads, growth, query.device))
    signed = dropout > 0.0 and not accelerated
    masks = layout.remember(f"masks {sliding_window} {signed}", lambda: groups.masks(sliding_window, added=signed))
    states = (groups, query, key, value, masks)
    if signed:
        return dropped_attention(*states, dropout, scaling), None
    return grouped_attention(*states, dropout=dropout, scaling=scaling, window=sliding_window), None


def _no_mask(*_: Any, **__: Any) -> None:
    """The packed function knows what is visible; the library builds no mask for it."""


AttentionInterface.register(PACKED, _packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
