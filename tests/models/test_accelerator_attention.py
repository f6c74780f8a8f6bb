"""The attention of accelerators on a CPU: the padded gather, and what the variable-length kernel is asked for."""

from __future__ import annotations

import sys
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from biobench.models.attention import Layout, _flash, _gathered

LENGTHS = [5, 1, 9, 4]
HEADS, WIDTH = 2, 4


def _states() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(1, HEADS, sum(LENGTHS), WIDTH, dtype=torch.float64) for _ in range(3)]


def _alone(states: list[Tensor], window: int | None, scaling: float | None) -> Tensor:
    """Each document by itself; |i - j| < window is visible."""
    parts, begin = [], 0
    for length in LENGTHS:
        own = [x[:, :, begin : begin + length] for x in states]
        at = torch.arange(length)
        mask = None if window is None else (at[:, None] - at[None, :]).abs() < window
        parts.append(scaled_dot_product_attention(*own, attn_mask=mask, scale=scaling))
        begin += length
    return torch.cat(parts, 2).transpose(1, 2)


def _kernel(
    q: Tensor, k: Tensor, v: Tensor, at_q: Tensor, at_k: Tensor, long_q: int, long_k: int, **how: Any
) -> Tensor:
    """flash_attn_varlen_func as documented: (tokens, heads, width), query i sees keys i - left to i + right."""
    assert at_q.dtype == at_k.dtype == torch.int32
    assert (long_q, long_k) == (9, 9)
    assert how["dropout_p"] == 0.25
    left, right = how["window_size"]
    parts = []
    for (begin, end), other in zip(pairwise(at_q.tolist()), pairwise(at_k.tolist()), strict=True):
        assert (begin, end) == other
        far = torch.arange(end - begin)[None, :] - torch.arange(end - begin)[:, None]
        mask = ((far >= -left) | (left < 0)) & ((far <= right) | (right < 0))
        own = (x[begin:end].transpose(0, 1) for x in (q, k, v))
        parts.append(scaled_dot_product_attention(*own, attn_mask=mask, scale=how["softmax_scale"]).transpose(0, 1))
    return torch.cat(parts)


@pytest.mark.parametrize("window", [None, 1, 3, 9, 20])
@pytest.mark.parametrize("scaling", [None, 1.0])
def test_every_document_is_computed_as_if_alone(
    monkeypatch: pytest.MonkeyPatch, window: int | None, scaling: float | None
) -> None:
    package = ModuleType("flash_attn")
    package.flash_attn_varlen_func = _kernel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flash_attn", package)
    states, layout = _states(), Layout(LENGTHS, torch.device("cpu"))
    wanted = _alone(states, window, scaling)
    torch.testing.assert_close(_gathered(layout, *states, 0.0, scaling, window), wanted)
    torch.testing.assert_close(_flash(layout, *states, 0.25, scaling, window), wanted)
