"""Fieller's interval of a ratio of paired means."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import Estimand, StatsInputError, mean_test
from biobench.stats.ratio import NOTHING, ONE, UNKNOWN, Ratio, paired_ratio

SEEDS = Estimand.THESE_TEST_SETS


def test_the_ends_are_the_ratios_that_a_paired_t_just_refuses() -> None:
    rng = np.random.default_rng(0)
    y = 5 + rng.normal(size=9)
    x = 0.4 * y + rng.normal(size=9)
    found = paired_ratio(x, y, estimand=SEEDS)
    assert found.value == pytest.approx(x.mean() / y.mean())
    assert found.interval is not None
    for end in (found.interval.low, found.interval.high):
        assert mean_test(x - end * y, estimand=SEEDS).p == pytest.approx(0.05, abs=1e-9)
    small = paired_ratio(x / 100, y / 100, estimand=SEEDS).interval
    assert small is not None
    assert (small.low, small.high) == pytest.approx((found.interval.low, found.interval.high))
    inside = mean_test(x - found.value * y, estimand=SEEDS).p
    assert inside == pytest.approx(1.0)


def test_a_denominator_that_may_be_zero_leaves_no_interval() -> None:
    found = paired_ratio([1.0, 2.0, 3.0], [-1.0, 0.5, 1.5], estimand=SEEDS)
    assert (found.value, found.interval, found.note) == (6.0, None, UNKNOWN)


def test_degenerate_inputs() -> None:
    assert paired_ratio([1.0], [2.0], estimand=SEEDS).note == ONE
    assert paired_ratio([1.0, 2.0], [-1.0, 1.0], estimand=SEEDS) == Ratio(2, None, None, NOTHING)
    same = paired_ratio([1.0, 2.0], [1.0, 2.0], estimand=SEEDS)
    assert same.value == 1.0
    with pytest.raises(StatsInputError, match="2 and 1 values"):
        paired_ratio([1.0, 2.0], [1.0], estimand=SEEDS)
