"""The short form of ``tests.benchmarks.verdict_table``: no sentence is false more often than it may
be.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.benchmarks import verdict_table
from tests.benchmarks.statistics import suite, verdict
from tests.benchmarks.verdict_table import PARTS, limit_rows

DRAWS = 40
LONG = (limit_rows,)


@pytest.mark.parametrize(
    "part", [part for part in PARTS if part not in LONG], ids=lambda part: part.__name__
)
def test_no_row_misses_its_target_by_more_than_chance(part, monkeypatch):
    monkeypatch.setattr(verdict_table, "TASKS", (1, 2, 8))
    monkeypatch.setattr(verdict_table, "SEED_COUNTS", (3,))
    monkeypatch.setattr(verdict_table, "DOCUMENTS", (0.8,))
    for row in part(np.random.default_rng(7), DRAWS):
        spread = max(row.most * (1 - row.most), row.least * (1 - row.least), 1 / DRAWS)
        chance = 4 * math.sqrt(spread / DRAWS) if row.most else 0.0
        assert row.least - chance <= row.rate <= row.most + chance, row


def test_what_the_runs_do_not_hold_is_beyond_any_test_of_them():
    assert all(row.rate > 0.1 for row in limit_rows(np.random.default_rng(8), 100))


def test_the_benchmark_of_what_a_verdict_costs_ranks_three_models_as_drawn():
    assert verdict(suite(3, 3, np.random.default_rng(0))) == ((3, 3), (2, 2), (1, 1))
