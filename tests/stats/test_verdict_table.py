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


@pytest.mark.parametrize("name", [name for name in PARTS if name != "limit_rows"])
def test_no_row_misses_its_target_by_more_than_chance(name, monkeypatch):
    monkeypatch.setattr(verdict_table, "TASKS", (1, 2, 8))
    monkeypatch.setattr(verdict_table, "SEED_COUNTS", (3,))
    monkeypatch.setattr(verdict_table, "DOCUMENTS", (0.8,))
    rng = np.random.default_rng(7)
    for claim in PARTS[name]():
        spread = max(claim.most * (1 - claim.most), claim.least * (1 - claim.least), 1 / DRAWS)
        chance = 4 * math.sqrt(spread / DRAWS) if claim.most else 0.0
        row = claim.measured(rng, DRAWS)
        assert claim.least - chance <= row.rate <= claim.most + chance, row


def test_what_the_runs_do_not_hold_is_beyond_any_test_of_them():
    rng = np.random.default_rng(8)
    assert all(claim.measured(rng, 100).rate > 0.1 for claim in limit_rows())


def test_the_benchmark_of_what_a_verdict_costs_ranks_three_models_as_drawn():
    assert verdict(suite(3, 3, np.random.default_rng(0))) == ((3, 3), (2, 2), (1, 1))
