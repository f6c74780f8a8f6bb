"""Local attention in blocks against the full masked computation."""

from __future__ import annotations

from itertools import accumulate

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from biobench.models import attention
from biobench.models.attention import Layout, packed
from biobench.models.grouped import in_blocks, local_attention


def _states(*shape: int) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def _band(length: int, window: int) -> Tensor:
    at = torch.arange(length)
    return (at[:, None] - at[None, :]).abs() < window


@pytest.mark.parametrize(("length", "window"), [(1100, 65), (1030, 1), (700, 33), (1400, 300), (256, 65)])
def test_blocks_give_the_states_and_gradients_of_the_whole_band(length: int, window: int) -> None:
    states = _states(2, 2, length, 4)
    ours = local_attention(*states, window, None, None)
    plain = scaled_dot_product_attention(*states, attn_mask=_band(length, window))
    assert (ours - plain).abs().max() < 1e-12
    seen = torch.randn_like(plain)
    for a, b in zip(torch.autograd.grad(ours, states, seen), torch.autograd.grad(plain, states, seen), strict=True):
        assert (a - b).abs().max() < 1e-11


def test_packed_long_documents_are_each_alone() -> None:
    lengths, window = [1500, 40, 1300, 1100, 300], 65
    assert [in_blocks(n, window) for n in lengths] == [True, False, True, True, False]
    assert not in_blocks(8192, None)
    query, key, value = _states(1, 2, sum(lengths), 4)
    layout = Layout(lengths, torch.device("cpu"))
    with packed(layout), torch.no_grad():
        ours, _ = attention._packed_attention(None, query, key, value, None, sliding_window=window)  # type: ignore[arg-type]
    ends = list(accumulate(lengths))
    parts = [
        scaled_dot_product_attention(*(x[:, :, a:b] for x in (query, key, value)), attn_mask=_band(b - a, window))
        for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]
    assert (ours - torch.cat(parts, 2).transpose(1, 2)).abs().max() < 1e-12
