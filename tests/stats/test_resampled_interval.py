"""Intervals over several splits of one corpus: their training documents overlap, and the t must know it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from biobench.stats import compare_seeds, seed_interval, these_tasks
from biobench.stats.types import Estimand, StatsInputError


def test_the_formula_is_that_of_nadeau_and_bengio():
    a, b = np.array([0.71, 0.74, 0.69, 0.75]), np.array([0.70, 0.70, 0.69, 0.71])
    d, ratio = a - b, 1 / 3
    test = compare_seeds(a, b, ratio=ratio)
    se = math.sqrt((1 / 4 + ratio) * d.var(ddof=1))
    assert test.se == pytest.approx(se)
    assert test.p == pytest.approx(2 * stats.t.sf(d.mean() / se, 3))
    assert test.estimand is Estimand.THIS_TASK
    summary = seed_interval(a, ratio=ratio)
    assert summary.interval.half_width == pytest.approx(
        stats.t.ppf(0.975, 3) * math.sqrt((1 / 4 + ratio) * a.var(ddof=1))
    )


def test_a_suite_of_splits_is_widened_too_and_speaks_of_test_sets():
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.7, 0.02, (2, 10)), rng.normal(0.69, 0.02, (2, 10))
    plain = these_tasks(list(first), list(second))
    folds = these_tasks(list(first), list(second), ratios=[1 / 9, 1 / 9])
    assert folds.test.se == pytest.approx(plain.test.se * math.sqrt((1 / 10 + 1 / 9) * 10))
    assert (folds.test.estimand, plain.test.estimand) == (Estimand.THESE_TASKS, Estimand.THESE_TEST_SETS)
    mixed = these_tasks(list(first), list(second), ratios=[1 / 9, 0.0])
    assert plain.test.se < mixed.test.se < folds.test.se
    assert mixed.test.estimand is Estimand.THESE_TEST_SETS


def test_splits_that_do_not_pair_are_refused():
    with pytest.raises(StatsInputError, match="cannot be paired"):
        compare_seeds([0.1, 0.2], [0.1, 0.3, 0.2], paired=False, ratio=0.1)
