"""The short form of ``tests.benchmarks.verdict_table``: no sentence is false more often than it may
be.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarks.statistics import suite, verdict
from tests.benchmarks.verdict_table import PARTS, limit_rows

REPEATS = 40


@pytest.mark.parametrize(
    "part", [part for part in PARTS if part is not limit_rows], ids=lambda part: part.__name__
)
def test_no_row_misses_its_target_by_more_than_chance(part, monkeypatch):
    monkeypatch.setattr("tests.benchmarks.verdict_table.CELLS", ((3, 3), (8, 5)))
    for row in part(np.random.default_rng(7), REPEATS):
        low, high = row.target
        chance = (
            4 * math.sqrt(max(high * (1 - high), low * (1 - low), 1 / REPEATS) / REPEATS)
            if high
            else 0.0
        )
        assert low - chance <= row.measured <= high + chance, row


def test_what_the_runs_do_not_hold_is_beyond_any_test_of_them():
    assert all(row.measured > 0.1 for row in limit_rows(np.random.default_rng(8), 100))


def test_the_benchmark_of_what_a_verdict_costs_ranks_three_models_as_drawn():
    assert verdict(suite(3, 2, np.random.default_rng(0))) == ((3, 3), (2, 2), (1, 1))
