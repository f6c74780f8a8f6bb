"""Holm's procedure by hand and against statsmodels, and the ranks that it leaves."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from biobench.stats import StatsInputError, holm, possible_ranks


def test_holm_by_hand():
    """Sorted .005 .01 .03 .04 times 4 3 2 1, made monotone; the procedure stops at the third, which
    is tested at .05 / 2.
    """
    steps = holm([0.01, 0.04, 0.03, 0.005])
    assert [step.adjusted for step in steps] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert [step.alpha for step in steps] == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])
    assert [step.passed for step in steps] == [True, False, False, True]


def test_holm_equals_statsmodels():
    p = np.random.default_rng(4).random(30) ** 4
    rejected, adjusted, *_ = multipletests(p, method="holm")
    steps = holm(p.tolist())
    assert [step.adjusted for step in steps] == pytest.approx(adjusted)
    assert [step.passed for step in steps] == rejected.tolist()
    assert 0 < sum(rejected) < 30


def test_what_is_not_tested_counts_for_nothing():
    first, untested, second = holm([0.02, None, 0.03])
    assert untested is None
    assert (first.adjusted, second.adjusted) == (pytest.approx(0.04), pytest.approx(0.04))
    assert holm([None, None]) == (None, None)
    with pytest.raises(StatsInputError, match="not between 0 and 1"):
        holm([0.1, 1.5])


def test_the_order_of_the_claims_changes_nothing():
    p = [0.001, 0.02, 0.011, 0.4, 0.03]
    steps = dict(zip(p, holm(p), strict=True))
    for shuffled in (p[::-1], [p[i] for i in (2, 4, 0, 1, 3)]):
        assert dict(zip(shuffled, holm(shuffled), strict=True)) == steps


def test_equal_p_values_are_tested_at_one_level():
    """The second and the third at .05 / 2, whichever of them is asked first."""
    steps = holm([0.02, 0.001, 0.02])
    assert [step.alpha for step in steps] == pytest.approx([0.025, 0.05 / 3, 0.025])
    assert all(step.passed for step in steps)


def test_possible_ranks_count_the_models_that_differ():
    assert possible_ranks(3, []) == ((1, 3),) * 3
    assert possible_ranks(3, [(0, 1), (0, 2), (1, 2)]) == ((1, 1), (2, 2), (3, 3))
    assert possible_ranks(3, [(0, 2)]) == ((1, 2), (1, 3), (2, 3))
