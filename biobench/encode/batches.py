"""Batches whose cost follows real tokens.

An optimiser step takes `batch_size` documents. Each step's documents are cut into micro-batches
that fit a token budget; gradients add up to those of the whole batch, so the cut changes cost and
never the maths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

_BUCKET = 50
"""Batches per window of `bucketed` order."""

_CALL_COST = 96
"""Fixed cost of one forward and backward call, in tokens; only the padded cut weighs it."""


def epoch_order(
    lengths: Sequence[int],
    batch_size: int,
    seed: int,
    epoch: int,
    order: Literal["random", "bucketed"],
) -> Iterator[list[int]]:
    """Batches of document indices for one epoch, a pure function of its arguments.

    random: a uniform permutation, cut. bucketed: the permutation is sorted by length inside windows
    of 50 batches, and the batches are shuffled again.
    """
    rng = np.random.default_rng([seed, epoch])
    permutation = rng.permutation(len(lengths)).tolist()
    if order == "random":
        yield from _runs(permutation, batch_size)
        return
    batches: list[list[int]] = []
    for bucket in _runs(permutation, batch_size * _BUCKET):
        by_length = sorted(bucket, key=lengths.__getitem__)
        batches += _runs(by_length, batch_size)
    for number in rng.permutation(len(batches)):
        yield batches[number]


def _runs(indices: list[int], size: int) -> Iterator[list[int]]:
    """The indices in their order, `size` at a time."""
    for begin in range(0, len(indices), size):
        yield indices[begin : begin + size]


def steps_per_epoch(documents: int, batch_size: int) -> int:
    """Optimiser steps that see each document once."""
    return -(-documents // batch_size)


def cut_packed(indices: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Micro-batches of at most `budget` tokens, in the given order; a longer document stands
    alone."""
    batches: list[list[int]] = []
    used = budget + 1
    for index in indices:
        length = lengths[index]
        if used + length > budget:
            batches.append([])
            used = 0
        batches[-1].append(index)
        used += length
    return batches


def cut_padded(indices: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Micro-batches of similar length that minimise padded tokens plus a fixed cost per call.

    Exact by dynamic programming over the documents sorted by length; a part's padded size (longest
    x count) stays within `budget` unless it is a single document.
    """
    ordered = sorted(map(int, indices), key=lengths.__getitem__)
    # of the first documents, as many as the place says: the least cost, and where their last
    # batch begins
    costs = [0.0]
    begins = [0]
    for end, last in enumerate(ordered, 1):
        longest = lengths[last]
        best_cost = math.inf
        best_begin = 0
        for begin in range(end - 1, -1, -1):
            size = longest * (end - begin)
            if size > budget and end - begin > 1:
                break
            cost = costs[begin] + size + _CALL_COST
            if cost < best_cost:
                best_cost = cost
                best_begin = begin
        costs.append(best_cost)
        begins.append(best_begin)
    batches: list[list[int]] = []
    end = len(ordered)
    while end > 0:
        begin = begins[end]
        batches.append(ordered[begin:end])
        end = begin
    return batches[::-1]


def inference_order(lengths: Sequence[int], budget: int, *, padded: bool) -> list[list[int]]:
    """All documents, longest first, in parts within `budget` tokens (padded tokens where
    `padded`)."""
    ordered = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    if not padded:
        return cut_packed(ordered, lengths, budget)
    batches: list[list[int]] = []
    room = 0
    for index in ordered:
        if room == 0:
            # the longest of its batch; where it alone is beyond the budget, it stands alone
            room = max(1, budget // max(1, lengths[index]))
            batches.append([])
        batches[-1].append(index)
        room -= 1
    return batches
