"""Grouped and local attention and cheap dropout against plain computations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from biobench.models import attention
from biobench.models.attention import Layout, packed
from biobench.models.dropout import Dropout, draws, signs, threshold, use_cheap_dropout
from biobench.models.grouped import (
    dropped_attention,
    grouped_attention,
    in_blocks,
    local_attention,
    make_groups,
)
from tests.helpers.kernels import alone

HEADS, WIDTH = 3, 8


def _states(tokens: int, seed: int, kind: torch.dtype = torch.float64) -> list[Tensor]:
    """Query, key, value as the families hand them over: (1, heads, tokens, width), strides of
    (tokens, heads).
    """
    torch.manual_seed(seed)
    return [
        torch.randn(1, tokens, HEADS, WIDTH, dtype=kind).transpose(1, 2).requires_grad_()
        for _ in range(3)
    ]


def _grouped(
    states: list[Tensor],
    lengths: list[int],
    window: int | None,
    dropout: float,
    scaling: Any = None,
) -> Tensor:
    groups = make_groups(lengths, HEADS)
    masks = groups.masks(window, added=dropout > 0.0)
    if dropout > 0.0:
        return dropped_attention(groups, *states, masks, dropout, scaling)
    return grouped_attention(groups, *states, masks, scaling)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    window=st.sampled_from([None, 1, 4]),
    dropout=st.sampled_from([0.0, 1e-9]),
    scaling=st.sampled_from([None, 1.0]),
    seed=st.integers(0, 1000),
)
def test_states_and_gradients_are_those_of_each_document_alone(
    lengths: list[int], window: int | None, dropout: float, scaling: float | None, seed: int
) -> None:
    """A rate of 1e-9 drops nothing and takes the path with dropout; its softmax is fp32."""
    states = _states(sum(lengths), seed)
    ours = _grouped(states, lengths, window, dropout, scaling)
    plain = alone(states, lengths, window, scaling)
    tolerance = 1e-12 if dropout == 0.0 else 1e-5
    assert (ours - plain).abs().max() < tolerance
    seen = torch.randn_like(plain)
    got, wanted = (torch.autograd.grad(x, states, seen) for x in (ours, plain))
    torch.testing.assert_close(got, wanted, atol=tolerance, rtol=0)


def test_groups_waste_little() -> None:
    """Lengths of a group differ by a third at most, and every token stands in exactly one block."""
    lengths = torch.randint(1, 400, (200,), generator=torch.Generator().manual_seed(0)).tolist()
    groups = make_groups(lengths, HEADS)
    assert sum(g.count for g in groups.groups) == len(lengths)
    assert len(set(groups.gather.tolist())) == sum(lengths) * HEADS
    assert torch.equal(groups.spread[groups.gather], torch.arange(sum(lengths) * HEADS))
    assert len(groups.spread) <= 4 / 3 * sum(lengths) * HEADS


def test_dropped_gradients_are_those_of_the_mask_that_was_drawn() -> None:
    """With the same draws, the node's gradients equal finite differences of its own output (fp64
    in, fp32 softmax).
    """
    lengths = [5, 4, 9]
    states = _states(sum(lengths), 3)

    def value(*given: Tensor) -> Tensor:
        torch.manual_seed(11)
        return (_grouped(list(given), lengths, None, 0.3) * weights).sum()

    weights = torch.randn(1, sum(lengths), HEADS, WIDTH, dtype=torch.float64)
    gradients = torch.autograd.grad(value(*states), states)
    generator = torch.Generator().manual_seed(5)
    for at in range(3):
        direction = torch.randn(states[at].shape, dtype=torch.float64, generator=generator)
        moved = []
        for step in (1e-2, -1e-2):
            changed = [*states]
            changed[at] = states[at] + step * direction
            moved.append(value(*changed))
        slope = float((moved[0] - moved[1]).detach() / 2e-2)
        assert slope == pytest.approx(float((gradients[at] * direction).sum()), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_rate_and_scale(rate: float) -> None:
    """400,000 draws: the share dropped within five standard errors of the rate; what is kept keeps
    the mean.
    """
    torch.manual_seed(4)
    layer = Dropout(rate)
    ones = torch.ones(400_000, requires_grad=True)
    out = layer(ones)
    zeros = float((out == 0).double().mean())
    assert abs(zeros - rate) < 5 * (rate * (1 - rate) / 400_000) ** 0.5 + 1 / 65_536
    kept = out[out > 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - rate)), rtol=1e-3)
    out.sum().backward()
    assert torch.equal(ones.grad, out.detach())
    assert threshold(0.25) == (-16384, pytest.approx(4 / 3))


@pytest.mark.parametrize("rate", [1e-6, 0.1, 0.25, 0.4999, 0.5, 0.5001, 0.9, 0.99999])
def test_signs_are_those_of_the_comparison_for_every_draw(rate: float) -> None:
    every = torch.arange(-32768, 32768).to(torch.int16)
    wanted = torch.where(every >= threshold(rate)[0], 1.0, -1.0)
    assert torch.equal(signs(every.clone(), rate).float(), wanted)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_dropped_states_are_bit_for_bit_those_of_a_mask_of_truth_values(kind: torch.dtype) -> None:
    """The sign bits that stand for the mask change no number, so stored results stay comparable."""
    (query, key, value), rate, length = (x.detach() for x in _states(250, 6, kind)), 0.3, 250
    torch.manual_seed(7)
    ours = _grouped([query, key, value], [length], None, rate)
    torch.manual_seed(7)
    least, scale = threshold(rate)
    keep = draws(HEADS * length**2).view(HEADS, length, length) >= least
    scores = torch.bmm(query[0], key[0].transpose(1, 2)).mul_(WIDTH**-0.5)
    chances = torch.softmax(scores, -1, dtype=torch.float32).to(kind)
    assert torch.equal(ours[0].transpose(0, 1), torch.bmm((chances * keep).mul_(scale), value[0]))


def test_only_plain_dropout_is_replaced() -> None:
    class Other(nn.Dropout):
        pass

    model = nn.Sequential(nn.Dropout(0.1), nn.Sequential(Other(0.2), nn.Dropout(0.3)))
    use_cheap_dropout(model)
    kinds = [(type(m), m.p) for m in model.modules() if isinstance(m, nn.Dropout)]
    assert kinds == [(Dropout, 0.1), (Other, 0.2), (Dropout, 0.3)]


@pytest.mark.parametrize(
    ("length", "window"), [(1100, 65), (1030, 1), (700, 33), (1400, 300), (256, 65)]
)
def test_blocks_give_the_states_and_gradients_of_the_whole_band(length: int, window: int) -> None:
    torch.manual_seed(0)
    states = [
        torch.randn(2, 2, length, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)
    ]
    ours = local_attention(*states, window, None, None)
    at = torch.arange(length)
    plain = scaled_dot_product_attention(
        *states, attn_mask=(at[:, None] - at[None, :]).abs() < window
    )
    assert (ours - plain).abs().max() < 1e-12
    seen = torch.randn_like(plain)
    got, wanted = (torch.autograd.grad(x, states, seen) for x in (ours, plain))
    torch.testing.assert_close(got, wanted, atol=1e-11, rtol=0)


def test_packed_long_documents_are_each_alone() -> None:
    lengths, window = [1500, 40, 1300, 1100, 300], 65
    assert [in_blocks(n, window) for n in lengths] == [True, False, True, True, False]
    assert not in_blocks(8192, None)
    states = _states(sum(lengths), 0)
    with packed(Layout(lengths, torch.device("cpu"))), torch.no_grad():
        ours, _ = attention._packed_attention(None, *states, None, sliding_window=window)  # type: ignore[arg-type]
        assert (ours - alone(states, lengths, window)).abs().max() < 1e-12
