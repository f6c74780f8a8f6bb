"""Attention over packed documents: no padding anywhere, no document sees another.

One function is registered with the model library for every family that dispatches its attention.
Documents stand end to end in one row; the layout says where each begins. On CUDA a variable-length
kernel computes them (`biobench.core.attention`); where none can, a padded batch that only attention
sees goes through scaled dot-product attention, and the layout says why. On a CPU groups of similar
length do (`grouped`). Both paths of CUDA can be
compiled: how many documents there are and how long the longest is are sizes of tensors, which
compiled code need not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface

from biobench.core.attention import Kernel, Kernels, choose_kernel, repeated
from biobench.core.machine import to_device
from biobench.models.grouped import (
    Gather,
    Groups,
    Spread,
    band,
    dropped_attention,
    grouped_attention,
    in_blocks,
    keys_of,
    local_attention,
    make_groups,
)

PACKED = "biobench_packed"
GATHERED = "padded batch"
"""What computes packed attention on an accelerator where no kernel does."""
KERNEL_DEVICES = ("cuda",)
"""Kinds of device that have kernels."""


class Layout:
    """Where each document stands in a packed row.

    lengths: of the documents. kernels: those that may compute it. paths: on an accelerator what
    computed the layers, and why it is no kernel (empty where it is one). compiled: compiled layers
    read it, by its tensors alone.
    """

    def __init__(
        self,
        lengths: list[int],
        device: torch.device,
        kernels: Kernels = (),
        *,
        compiled: bool = False,
    ) -> None:
        self.lengths = lengths
        self.device = device
        self.kernels = kernels
        self.compiled = compiled
        self.paths: dict[str, str] = {}
        self.drops = False
        """Whether a plain layer asked for dropout on attention."""
        self._groups: dict[int, Groups] = {}
        self._masks: dict[tuple[int | None, bool], list[Tensor | None]] = {}

    @cached_property
    def offsets(self) -> Tensor:
        """(documents + 1,) int32: where documents begin, and the end."""
        offsets = torch.tensor([0, *self.lengths]).cumsum(0).to(torch.int32)
        return self._free(to_device(offsets, self.device), 0)

    @cached_property
    def ruler(self) -> Tensor:
        """(0, longest): its size is the length of the longest document."""
        return self._free(torch.empty(0, max(self.lengths), device=self.device), 1)

    @cached_property
    def spread(self) -> Tensor:
        """(documents, longest): the token behind each place of one padded batch."""
        begins = self._sizes.cumsum(0) - self._sizes
        columns = torch.arange(max(self.lengths))
        tokens = begins[:, None] + torch.where(self._places, columns, 0)
        return self._free(to_device(tokens, self.device), 0, 1)

    @cached_property
    def gather(self) -> Tensor:
        """(tokens,): the place of each token in the padded batch."""
        return to_device(self._places.view(-1).nonzero()[:, 0], self.device)

    @cached_property
    def real(self) -> Tensor | None:
        """(documents, longest) bool: the places of tokens; None where all are and nothing is
        compiled.
        """
        if not self.compiled and len(set(self.lengths)) == 1:
            return None
        return self._free(to_device(self._places, self.device), 0, 1)

    @cached_property
    def _sizes(self) -> Tensor:
        return torch.tensor(self.lengths)

    @cached_property
    def _places(self) -> Tensor:
        return torch.arange(max(self.lengths)) < self._sizes[:, None]

    def _free(self, tensor: Tensor, *dimensions: int) -> Tensor:
        """`tensor`, whose sizes in these dimensions compiled code need not know."""
        if self.compiled:
            torch._dynamo.mark_dynamic(tensor, dimensions)
        return tensor

    def ready(self, *, gathered: bool) -> None:
        """Make the tensors that compiled code then only reads: those of kernels, and, where some
        layer has none (gathered), those of the padded batch.
        """
        made = [self.offsets, self.ruler]
        if gathered:
            made += [self.spread, self.gather]
            assert self.real is not None, "compiled layers read it"

    def note(self, path: str, reason: str = "") -> None:
        """Say what computes a layer, and why it is no kernel; compiled code cannot."""
        if not self.compiled:
            self.paths[path] = reason

    def groups(self, heads: int) -> Groups:
        """How a CPU computes documents of similar length together."""
        if heads not in self._groups:
            self._groups[heads] = make_groups(self.lengths, heads)
        return self._groups[heads]

    def masks(self, heads: int, window: int | None, *, added: bool) -> list[Tensor | None]:
        """Those of the groups (see `Groups.masks`), which all layers share."""
        key = (window, added)
        if key not in self._masks:
            self._masks[key] = self.groups(heads).masks(window, added=added)
        return self._masks[key]


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
    layout = _current[-1]
    heads = query.shape[1]
    if not layout.compiled:
        layout.drops |= dropout > 0.0
    if query.device.type in KERNEL_DEVICES:
        return _accelerated(layout, query, key, value, dropout, scaling, sliding_window), None
    key = repeated(key, heads, 1)
    value = repeated(value, heads, 1)
    groups = layout.groups(heads)
    if dropout > 0.0:
        masks = layout.masks(heads, sliding_window, added=True)
        return dropped_attention(groups, query, key, value, masks, dropout, scaling), None
    masks = layout.masks(heads, sliding_window, added=False)
    out = grouped_attention(groups, query, key, value, masks, scaling, sliding_window)
    return out, None


def _accelerated(
    layout: Layout,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    """By a kernel, or on one padded batch, which an accelerator computes in less time than many
    groups.
    """
    if query.dtype != value.dtype:
        # Rotary positions leave fp32 behind under autocast, which no kernel takes.
        query = query.to(value.dtype)
        key = key.to(value.dtype)
    kernel = choose_kernel(layout.kernels, query, dropout)
    if not isinstance(kernel, Kernel):
        layout.note(GATHERED, kernel)
        return _gathered(layout, query, key, value, dropout, scaling, window)
    layout.note(kernel.name)
    reach = -1
    if window is not None:
        reach = window - 1
    states = kernel.attend(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        layout.offsets,
        longest=layout.ruler.shape[1],
        window=(reach, reach),
        scaling=scaling,
        dropout=dropout,
    )
    return states[None]


def _gathered(
    layout: Layout,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float,
    scaling: float | None,
    window: int | None,
) -> Tensor:
    """On one padded batch (documents, heads, longest, width)."""
    heads, tokens, width = query.shape[1:]
    count, longest = layout.spread.shape
    token_of_place = layout.spread.view(-1)

    def padded(states: Tensor) -> Tensor:
        rows = repeated(states, heads, 1).transpose(1, 2).reshape(tokens, heads * width)
        places = Spread.apply(rows, token_of_place, layout.gather)  # type: ignore[no-untyped-call]
        batch: Tensor = places.view(count, longest, heads, width)
        return batch.transpose(1, 2)

    q = padded(query)
    k = padded(key)
    v = padded(value)
    if window is not None and not layout.compiled and in_blocks(longest, window):
        out = local_attention(q, k, v, window, layout.real, scaling, dropout)
    else:
        mask = _visible(layout, window)
        out = scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=scaling, dropout_p=dropout
        )
    attended = out.transpose(1, 2).reshape(count * longest, heads * width)
    rows_of_all: Tensor = Gather.apply(attended, layout.gather)  # type: ignore[no-untyped-call]
    return rows_of_all.view(1, tokens, heads, width)


def _visible(layout: Layout, window: int | None) -> Tensor | None:
    """(documents, 1, longest or 1, longest) bool: which keys a query sees, at least itself; None
    where it sees all.
    """
    if window is None:
        return keys_of(layout.real)
    positions = torch.arange(layout.spread.shape[1], device=layout.spread.device)
    return band(positions, positions, window, layout.real)


def _no_mask(*_: Any, **__: Any) -> None:
    """The packed function knows what is visible; the library builds no mask for it."""


AttentionInterface.register(PACKED, _packed_attention)
AttentionMaskInterface.register(PACKED, _no_mask)
