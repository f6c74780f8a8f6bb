"""The short form of ``tests.benchmarks.verdict_table``: no claim is false more often than it says, within chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarks.verdict_table import (
    WORLDS,
    certain_rows,
    language_rows,
    margin_rows,
    pair_rows,
    part_rows,
    plan_rows,
    sample,
    seed_rows,
)

REPEATS = 40


def few_pairs(rng, repeats):
    return pair_rows(rng, repeats, ((4, 4), (5, 6)))


@pytest.mark.parametrize(
    "part",
    [
        part_rows,
        language_rows,
        certain_rows,
        seed_rows,
        margin_rows,
        plan_rows,
        pytest.param(few_pairs, marks=pytest.mark.slow),
    ],
)
def test_no_row_is_outside_its_target_by_more_than_chance(part):
    for row in part(np.random.default_rng(7), REPEATS):
        low, high = row.target
        chance = 4 * math.sqrt(max(row.target[1] * (1 - row.target[1]), 0.05) / (REPEATS // 2))
        assert low - chance <= row.measured <= high + chance, row


@pytest.mark.parametrize("world", WORLDS)
def test_the_suite_verdict_is_rarely_false_and_never_surer_than_that_on_these_tasks(world):
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(120):
        suite, within = sample(rng, world, 6).tested()
        false += suite.test.p <= 0.05
        assert suite.test.interval.half_width >= within.interval.half_width - 1e-9
        assert suite.test.p >= within.p
    assert false / 120 <= 0.07 + 3 * math.sqrt(0.05 * 0.95 / 120)
