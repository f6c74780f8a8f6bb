"""Batches are partitions, pure functions of their arguments, and as cheap as claimed."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.encode.batches import (
    _CALL_COST,
    cut_packed,
    cut_padded,
    epoch_order,
    inference_order,
    steps_per_epoch,
)

_lengths = st.lists(st.integers(1, 200), min_size=1, max_size=40)
_few = st.tuples(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(1, 12))
"""Lengths and a budget so small that parts often fill it exactly."""
_any = st.tuples(_lengths, st.integers(1, 500)) | _few


@given(
    lengths=_lengths,
    size=st.integers(1, 9),
    seed=st.integers(0, 99),
    order=st.sampled_from(["random", "bucketed"]),
)
def test_an_epoch_sees_each_document_once(
    lengths: list[int], size: int, seed: int, order: str
) -> None:
    batches = list(epoch_order(lengths, size, seed, 0, order))  # type: ignore[arg-type]
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert sorted(map(len, batches), reverse=True) == [
        min(size, len(lengths) - at) for at in range(0, len(lengths), size)
    ]
    assert len(batches) == steps_per_epoch(len(lengths), size)
    assert batches == list(epoch_order(lengths, size, seed, 0, order))  # type: ignore[arg-type]


def test_the_order_is_the_one_that_runs_are_known_by() -> None:
    """Seed 42, second epoch: numpy's permutation of (seed, epoch), cut in turn; bucketed sorts 50
    batches first.
    """
    lengths = [(i * 37) % 100 + 1 for i in range(130)]
    rng = np.random.default_rng([42, 1])
    drawn = rng.permutation(130).tolist()
    assert drawn[:4] == [20, 122, 32, 91]
    wanted = [drawn[i : i + 2] for i in range(0, 130, 2)]
    assert list(epoch_order(lengths, 2, 42, 1, "random")) == wanted
    parts = (drawn[:100], drawn[100:])
    drawn = [i for part in parts for i in sorted(part, key=lambda i: lengths[i])]
    wanted = [drawn[2 * i : 2 * i + 2] for i in rng.permutation(65)]
    assert list(epoch_order(lengths, 2, 42, 1, "bucketed")) == wanted


@given(drawn=_any)
def test_packed_cut_keeps_order_and_budget(drawn: tuple[list[int], int]) -> None:
    lengths, budget = drawn
    parts = cut_packed(range(len(lengths)), lengths, budget)
    assert list(itertools.chain(*parts)) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in p) <= budget or len(p) == 1 for p in parts)
    # No part could take the document that the next one begins with.
    assert all(sum(lengths[i] for i in [*a, b[0]]) > budget for a, b in itertools.pairwise(parts))


@settings(max_examples=60)
@given(
    drawn=st.tuples(st.lists(st.integers(1, 200), min_size=1, max_size=7), st.integers(50, 1500))
    | st.tuples(
        st.lists(st.sampled_from([100, 200]), min_size=1, max_size=7),
        st.sampled_from([200, 400, 600]),
    )
)
def test_padded_cut_is_the_cheapest(drawn: tuple[list[int], int]) -> None:
    lengths, budget = drawn

    def cost(parts: list[list[int]]) -> int:
        return sum(max(lengths[i] for i in p) * len(p) + _CALL_COST for p in parts)

    parts = cut_padded(range(len(lengths)), lengths, budget)
    assert sorted(itertools.chain(*parts)) == list(range(len(lengths)))
    ordered, costs = sorted(range(len(lengths)), key=lambda i: lengths[i]), []
    for cuts in itertools.product([False, True], repeat=len(ordered) - 1):
        edges = [0, *(at for at, cut in enumerate(cuts, start=1) if cut), len(ordered)]
        candidate = [ordered[a:b] for a, b in itertools.pairwise(edges)]
        if all(max(lengths[i] for i in p) * len(p) <= budget or len(p) == 1 for p in candidate):
            costs.append(cost(candidate))
    assert cost(parts) == min(costs)


@given(drawn=_any, padded=st.booleans())
def test_inference_covers_all_longest_first(drawn: tuple[list[int], int], padded: bool) -> None:
    lengths, budget = drawn

    def size(part: list[int]) -> int:
        return len(part) * lengths[part[0]] if padded else sum(lengths[i] for i in part)

    parts = inference_order(lengths, budget, padded=padded)
    flat = list(itertools.chain(*parts))
    assert sorted(flat) == list(range(len(lengths)))
    assert [lengths[i] for i in flat] == sorted(lengths, reverse=True)
    assert all(size(part) <= budget or len(part) == 1 for part in parts)
    assert all(size([*a, b[0]]) > budget for a, b in itertools.pairwise(parts))
