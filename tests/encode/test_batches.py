"""Batches are partitions, pure functions of their arguments, and as cheap as claimed."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.encode.batches import _CALL_COST, cut_packed, cut_padded, epoch_order, inference_order

_lengths = st.lists(st.integers(1, 200), min_size=1, max_size=40)


@given(lengths=_lengths, size=st.integers(1, 9), seed=st.integers(0, 99), order=st.sampled_from(["random", "bucketed"]))
def test_an_epoch_sees_each_document_once(lengths: list[int], size: int, seed: int, order: str) -> None:
    batches = list(epoch_order(lengths, size, seed, 0, order))  # type: ignore[arg-type]
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert all(len(b) <= size for b in batches)
    assert batches == list(epoch_order(lengths, size, seed, 0, order))  # type: ignore[arg-type]


def test_epochs_and_seeds_differ() -> None:
    lengths = [5] * 50
    orders = [tuple(itertools.chain(*epoch_order(lengths, 8, s, e, "random"))) for s in (1, 2) for e in (0, 1)]
    assert len(set(orders)) == 4


def test_bucketed_batches_hold_similar_lengths() -> None:
    lengths = [(i * 37) % 100 + 1 for i in range(400)]
    spread = {}
    for order in ("random", "bucketed"):
        batches = list(epoch_order(lengths, 8, 0, 0, order))  # type: ignore[arg-type]
        spread[order] = sum(max(lengths[i] for i in b) * len(b) for b in batches) / sum(lengths)
    assert spread["bucketed"] < 1.1 < 1.5 < spread["random"]


@given(lengths=_lengths, budget=st.integers(1, 300))
def test_packed_cut_keeps_order_and_budget(lengths: list[int], budget: int) -> None:
    parts = cut_packed(range(len(lengths)), lengths, budget)
    assert list(itertools.chain(*parts)) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in p) <= budget or len(p) == 1 for p in parts)


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(1, 200), min_size=1, max_size=7), budget=st.integers(50, 1500))
def test_padded_cut_is_the_cheapest(lengths: list[int], budget: int) -> None:
    def cost(parts: list[list[int]]) -> int:
        return sum(max(lengths[i] for i in p) * len(p) + _CALL_COST for p in parts)

    parts = cut_padded(range(len(lengths)), lengths, budget)
    assert sorted(itertools.chain(*parts)) == list(range(len(lengths)))
    ordered = sorted(range(len(lengths)), key=lambda i: lengths[i])
    best = None
    for cuts in itertools.product([False, True], repeat=len(ordered) - 1):
        candidate, part = [], [ordered[0]]
        for cut, index in zip(cuts, ordered[1:], strict=True):
            if cut:
                candidate.append(part)
                part = []
            part.append(index)
        candidate.append(part)
        if all(max(lengths[i] for i in p) * len(p) <= budget or len(p) == 1 for p in candidate):
            best = cost(candidate) if best is None else min(best, cost(candidate))
    assert cost(parts) == best


@given(lengths=_lengths, budget=st.integers(1, 500), padded=st.booleans())
def test_inference_covers_all_longest_first(lengths: list[int], budget: int, padded: bool) -> None:
    parts = inference_order(lengths, budget, padded=padded)
    flat = list(itertools.chain(*parts))
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[i] for i in flat] == sorted(lengths, reverse=True)
