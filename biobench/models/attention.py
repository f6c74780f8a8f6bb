"""Attention over packed documents: no padding anywhere, no document sees another.

One function is registered with the model library for every family that dispatches its attention. Documents
stand end to end in one row; the layout says where each begins. On CUDA a variable-length kernel computes them
(`biobench.core.attention`); where none can, a padded batch that only attention sees goes through scaled dot-product
attention, and the layout says why. On a CPU groups of similar length do (`grouped`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from biobench.core.attention import Kernel, choose_kernel, repeated
from biobench.core.machine import to_device
from biobench.models.grouped import Gather, Group, Groups, Spread, added, grouped_attention, make_groups, visible
from biobench.models.local import in_blocks

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


def current_layout() -> AbstractContextManager[None]:
    """The present layout as a block of its own; of nothing outside of packed documents."""
    return packed(_current[-1]) if _current else nullcontext()


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
    if query.device.type in KERNEL_DEVICES:
        return _on_accelerator(layout, query, key, value, dropout, scaling, sliding_window), None
    key, value = (repeated(x, query.shape[1], 1) for x in (key, value))
    groups = layout.remember(f"groups {query.shape[1]}", lambda: make_groups(layout.lengths, query.shape[1]))

    def masks() -> list[Tensor | None]:
        if dropout > 0.0:
            return [added(visible(g, sliding_window)) for g in groups.groups]
        blocks = [in_blocks(g.length, sliding_window) for g in groups.groups]
        return [None if block else visible(g, sliding_window) for g, block in zip(groups.groups, blocks, strict=True)]

    known = layout.remember(f"masks {sliding_window} {dropout > 0.0}", masks)
    out = grouped_attention(groups, query, key, value, known, dropout=dropout, scaling=scaling, window=sliding_window)
    return out, None


def _on_accelerator(
    layout: Layout, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None, window: int | None
) -> Tensor:
    if query.dtype != value.dtype:  # rotary positions leave fp32 behind under autocast, which no kernel takes
        query, key = query.to(value.dtype), key.to(value.dtype)
    kernel = choose_kernel(layout.kernels, query, dropout)
    if isinstance(kernel, str):
        layout.paths[GATHERED] = kernel
        key, value = (repeated(x, query.shape[1], 1) for x in (key, value))
        return _gathered(layout, query, key, value, dropout, scaling, window)
    layout.paths[kernel.name] = ""
    reach = (-1, -1) if window is None else (window - 1, window - 1)
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    longest = max(layout.lengths)
    return kernel.attend(q, k, v, layout.cumulative(), longest, window=reach, scaling=scaling, dropout=dropout)[None]


def _gathered(
    layout: Layout, query: Tensor, key: Tensor, value: Tensor, dropout: float, scaling: float | None, window: int | None
) -> Tensor:
    """Attention on a padded gather of the packed row; only attention itself sees the padding."""
    longest, documents = max(layout.lengths), len(layout.lengths)

    heads, tokens, width = query.shape[1:]

    def indices() -> tuple[Groups, Tensor]:
        # On the host: `nonzero` would wait for the device.
        lengths = torch.tensor(layout.lengths)
        begin = lengths.cumsum(0) - lengths
        within = torch.arange(longest)
        real = within[None, :] < lengths[:, None]
        spread = torch.where(real, begin[:, None] + within[None, :], 0).view(-1)
        back = real.view(-1).nonzero()[:, 0]
        spread, back, real = (to_device(x, query.device) for x in (spread, back, real))
        return Groups((), spread, back, 1), real

    groups, real = layout.remember("gather", indices)
    mask = visible(Group(0, documents, longest, real), window, query.device)

    def padded(x: Tensor) -> Tensor:
        rows: Tensor = Spread.apply(x[0].transpose(0, 1).reshape(tokens, heads * width), groups)  # type: ignore[no-untyped-call]
        return rows.view(documents, longest, heads, width).transpose(1, 2)

    out = scaled_dot_product_attention(
        padded(query), padded(key), padded(value), attn_mask=mask, dropout_p=dropout, scale=scaling
    )
    rows = out.transpose(1, 2).reshape(documents * longest, heads * width)
    packed_rows: Tensor = Gather.apply(rows, groups)  # type: ignore[no-untyped-call]
    return packed_rows.view(1, tokens, heads, width)


def _no_mask(*_: Any, **__: Any) -> None:
    """The packed function knows what is visible; the library builds no mask for it."""


AttentionInterface.register(PACKED, _packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
