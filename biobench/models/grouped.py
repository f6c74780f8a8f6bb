"""Attention of packed documents without a kernel: documents of similar length are computed
together.

A document alone is too small a call for a CPU, and a whole batch padded to its longest document
does mostly nothing. Documents are put into groups whose lengths differ by at most a third; a group
is one padded block that only attention sees. With dropout the whole layer is one autograd node that
keeps the probabilities, with what was dropped as their signs, and nothing else of size tokens x
tokens. Local attention of long documents runs in blocks of queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from biobench.models.dropout import draws, signs, threshold

GROWTH = 4 / 3
"""Longest over shortest document of a group, at most."""

_SHORT = 192
"""Tokens of a document up to which fp32 products are the faster ones."""

BLOCK = 256
"""Queries of local attention that are computed together, at least."""
_LONG = 4
"""Blocks in a document from which it pays to compute them one by one."""


@dataclass(frozen=True, slots=True)
class Group:
    """count documents padded to length; begin: its first row in units of heads x padded tokens."""

    begin: int
    count: int
    length: int
    real: Tensor | None
    """(count, length) bool, or None where no document is padded."""


@dataclass(frozen=True, slots=True)
class Groups:
    """How `tokens` packed rows of `heads` heads become blocks (count, heads, length, width), and
    back.

    spread: (padded rows,) row of `tokens x heads` behind each padded row. gather: (tokens x heads,)
    the way back.
    """

    groups: tuple[Group, ...]
    spread: Tensor
    gather: Tensor
    heads: int

    def masks(self, window: int | None, *, added: bool) -> list[Tensor | None]:
        """Of each group (see `visible`). added: what to add to scores, 0 or minus infinity; else
        documents that are computed in blocks have none.
        """
        masks: list[Tensor | None] = []
        for group in self.groups:
            mask = None
            # never made of blocks: it would be a matrix of the whole document
            if added or not in_blocks(group.length, window):
                mask = visible(group, window)
            if mask is not None and added:
                mask = torch.zeros(mask.shape).masked_fill_(~mask, float("-inf"))
            masks.append(mask)
        return masks

    def blocks(self, rows: Tensor) -> Tensor:
        """rows: (tokens x heads, width). All blocks end to end, (padded rows, width)."""
        return rows.index_select(0, self.spread)

    def block(self, padded: Tensor, group: Group) -> Tensor:
        """The view (count x heads, length, width) of one group."""
        rows = group.count * self.heads * group.length
        of_group = padded[group.begin : group.begin + rows]
        return of_group.view(-1, group.length, padded.shape[-1])


def make_groups(lengths: list[int], heads: int) -> Groups:
    """Documents sorted by length and cut where the length has grown by `GROWTH`."""
    sizes = torch.tensor(lengths)
    starts = sizes.cumsum(0) - sizes
    groups: list[Group] = []
    spread: list[Tensor] = []
    gather = torch.empty(sum(lengths) * heads, dtype=torch.long)
    begin = 0
    for indices in _of_similar_length(lengths):
        longest = lengths[indices[0]]
        position = torch.arange(longest)
        real = position < sizes[indices][:, None]
        token = starts[indices][:, None] + torch.where(real, position, 0)
        # (documents, heads, positions) rows of tokens x heads
        rows = token[:, None] * heads + torch.arange(heads)[:, None]
        is_real = real[:, None].expand_as(rows).flatten()
        rows = rows.flatten()
        end = begin + len(rows)
        padded_rows = torch.arange(begin, end)
        gather[rows[is_real]] = padded_rows[is_real]
        spread.append(rows)
        group = Group(
            begin=begin,
            count=len(indices),
            length=longest,
            real=None if is_real.all() else real,
        )
        groups.append(group)
        begin = end
    return Groups(tuple(groups), torch.cat(spread), gather, heads)


def _of_similar_length(lengths: list[int]) -> list[list[int]]:
    """Groups of documents, longest first, as places in `lengths`."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not groups or lengths[groups[-1][0]] > GROWTH * lengths[index]:
            groups.append([])
        groups[-1].append(index)
    return groups


def visible(group: Group, window: int | None) -> Tensor | None:
    """(count or 1, 1, length or 1, length) bool: which keys a query sees; None where it sees
    all."""
    if window is not None and group.length > window:
        positions = torch.arange(group.length)
        return band(positions, positions, window, group.real)
    return keys_of(group.real)


def keys_of(real: Tensor | None) -> Tensor | None:
    """The mask (documents, 1, 1, keys) of keys (documents, keys) that are no padding."""
    if real is None:
        return None
    return real[:, None, None]


def band(queries: Tensor, keys: Tensor, window: int, real: Tensor | None) -> Tensor:
    """(documents or 1, 1, queries, keys) bool: which keys the queries at these positions see.

    window counts the token itself: |i - j| < window is visible. real: (documents, keys) bool, None
    where no document is padded; a padded query sees at least itself.
    """
    distance = (queries[:, None] - keys).abs()
    near = distance < window
    if real is None:
        return near[None, None]
    return (near & real[:, None, None]) | (distance == 0)


class Spread(torch.autograd.Function):
    """Rows to padded blocks (`spread`: the row behind each padded one). A padded row never receives
    a gradient, so the way back is a plain gather.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, spread: Tensor, gather: Tensor) -> Tensor:
        ctx.save_for_backward(gather)
        return rows.index_select(0, spread)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient.index_select(0, ctx.saved_tensors[0]), None, None


class Gather(torch.autograd.Function):
    """Padded blocks to rows (`gather`: the padded row of each)."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, gather: Tensor) -> Tensor:
        ctx.save_for_backward(gather)
        ctx.count = len(padded)
        return padded.index_select(0, gather)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        padded = gradient.new_zeros(ctx.count, gradient.shape[1])
        return padded.index_copy_(0, ctx.saved_tensors[0], gradient), None


class _Attention(torch.autograd.Function):
    """Attention with dropout on the probabilities. q, k, v: (tokens x heads, width), one dtype.

    What is kept for the way back are the probabilities, with a minus before those that were
    dropped.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        groups: Groups,
        masks: list[Tensor | None],
        scaling: float,
        dropout: float,
    ) -> Tensor:
        padded = [groups.blocks(x) for x in (q, k, v)]
        _, scale = threshold(dropout)
        sizes = [group.count * groups.heads * group.length**2 for group in groups.groups]
        all_signs = signs(draws(sum(sizes)), dropout)
        out = torch.empty_like(padded[2])
        signed: list[Tensor] = []
        for group, mask, kept in zip(
            groups.groups, masks, torch.split(all_signs, sizes), strict=True
        ):
            length = group.length
            dtype = _compute(padded[0], length)
            query, key, value = (groups.block(x, group).to(dtype) for x in padded)
            scores = torch.bmm(query, key.transpose(1, 2)).mul_(scaling)
            if mask is not None:
                of_heads = scores.view(group.count, groups.heads, length, length)
                of_heads.add_(mask.to(dtype))
            chances = torch.softmax(scores, -1, dtype=torch.float32).to(dtype)
            chances.mul_(kept.view(chances.shape).to(dtype))
            attended = torch.bmm(chances.relu().mul_(scale), value)
            groups.block(out, group).copy_(attended)
            signed.append(chances)
        ctx.save_for_backward(*padded, *signed)
        ctx.groups = groups
        ctx.scaling = scaling
        ctx.scale = scale
        return out.index_select(0, groups.gather)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        groups: Groups = ctx.groups
        # Read once: where layers are computed anew it can be unpacked only once.
        saved = ctx.saved_tensors
        padded = saved[:3]
        signed = saved[3:]
        gradients = groups.blocks(gradient)
        changes = [torch.empty_like(x) for x in padded]
        for group, chances in zip(groups.groups, signed, strict=True):
            block, q, k, v = (
                groups.block(x, group).to(chances.dtype) for x in (gradients, *padded)
            )
            if group.real is not None:
                # What a padded query row shows is another token's gradient.
                real = group.real.to(block.dtype)
                real = real[:, None].expand(-1, groups.heads, -1)
                block = block * real.reshape(-1, group.length, 1)
            scores = _score_gradient(torch.bmm(block, v.transpose(1, 2)), chances, ctx.scale)
            scores.mul_(ctx.scaling)
            weights = chances.relu().mul_(ctx.scale)
            of_query = torch.bmm(scores, k)
            of_key = torch.bmm(scores.transpose(1, 2), q)
            of_value = torch.bmm(weights.transpose(1, 2), block)
            for whole, of_group in zip(changes, (of_query, of_key, of_value), strict=True):
                groups.block(whole, group).copy_(of_group)
        dq, dk, dv = (x.index_select(0, groups.gather) for x in changes)
        return dq, dk, dv, None, None, None, None


def _score_gradient(of_weights: Tensor, signed: Tensor, scale: float) -> Tensor:
    """From the gradient of the weights after dropout to that of the scores before the softmax.

    signed: the probabilities, with a minus before those that were dropped.
    """
    # A probability of 0 is no reason to stop its gradient here: the softmax multiplies by that 0.
    of_chances = torch.ops.aten.threshold_backward(of_weights, signed, 0).mul_(scale)
    return torch._softmax_backward_data(of_chances, signed.abs(), -1, of_chances.dtype)


def _compute(states: Tensor, length: int) -> torch.dtype:
    """fp32 for short documents: their products cost less than bf16's set-up, which is paid for
    every new shape.
    """
    if states.dtype == torch.bfloat16 and length <= _SHORT:
        return torch.float32
    return states.dtype


def _rows(*states: Tensor) -> list[Tensor]:
    """(tokens x heads, width) of each of (1, heads, tokens, width), in the precision of
    autocast."""
    kind = states[0].dtype
    if torch.is_autocast_enabled("cpu"):
        kind = torch.get_autocast_dtype("cpu")
    rows: list[Tensor] = []
    for of_heads in states:
        of_tokens = of_heads.to(kind).transpose(1, 2)
        rows.append(of_tokens.reshape(-1, of_tokens.shape[-1]))
    return rows


def dropped_attention(
    groups: Groups,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: list[Tensor | None],
    dropout: float,
    scaling: float | None,
) -> Tensor:
    """As `grouped_attention`, on a CPU with dropout. masks: what to add to the scores of each
    group.
    """
    heads, tokens, width = query.shape[1:]
    if scaling is None:
        scaling = width**-0.5
    rows = _rows(query, key, value)
    with torch.autocast("cpu", enabled=False):  # The node chooses its own precision.
        out: Tensor = _Attention.apply(  # type: ignore[no-untyped-call]
            *rows, groups, masks, scaling, dropout
        )
    return out.view(1, tokens, heads, width)


def grouped_attention(
    groups: Groups,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: list[Tensor | None],
    scaling: float | None,
    window: int | None = None,
) -> Tensor:
    """query, key, value: (1, heads, tokens, width) of packed documents; result (1, tokens, heads,
    width).

    masks: of each group (see `visible`). window: that of the masks; long documents are computed in
    blocks.
    """
    heads, tokens, width = query.shape[1:]
    padded = []
    for rows in _rows(query, key, value):
        states = Spread.apply(rows, groups.spread, groups.gather)  # type: ignore[no-untyped-call]
        padded.append(states)
    blocks = []
    for group, mask in zip(groups.groups, masks, strict=True):
        shape = (group.count, heads, group.length, width)
        q, k, v = (groups.block(rows, group).view(shape) for rows in padded)
        if window is not None and in_blocks(group.length, window):
            out = local_attention(q, k, v, window, group.real, scaling)
        else:
            out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
        blocks.append(out.reshape(-1, width))
    padded_rows = torch.cat(blocks)
    packed_rows: Tensor = Gather.apply(padded_rows, groups.gather)  # type: ignore[no-untyped-call]
    return packed_rows.view(1, tokens, heads, width)


def in_blocks(length: int, window: int | None) -> bool:
    """Whether documents of this length are computed block by block: long, and with a short
    window."""
    return window is not None and length > _LONG * _block(window)


def local_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    real: Tensor | None,
    scaling: float | None,
    dropout: float = 0.0,
) -> Tensor:
    """query, key, value: (count, heads, length, width); result alike.

    window counts the token itself: |i - j| < window is visible. real: (count, length) bool, None
    where no document is padded; a padded query sees at least itself.
    """
    length = query.shape[2]
    reach = window - 1
    size = _block(window)
    positions = torch.arange(length, device=query.device)
    blocks = []
    for begin in range(0, length, size):
        end = min(begin + size, length)
        rows = slice(begin, end)
        near = slice(max(0, begin - reach), end + reach)
        real_keys = real
        if real is not None:
            real_keys = real[:, near]
        mask = band(positions[rows], positions[near], window, real_keys)
        out = scaled_dot_product_attention(
            query[:, :, rows],
            key[:, :, near],
            value[:, :, near],
            attn_mask=mask,
            scale=scaling,
            dropout_p=dropout,
        )
        blocks.append(out)
    return torch.cat(blocks, 2)


def _block(window: int) -> int:
    return max(BLOCK, 2 * window)
