"""An estimate with its noises: widest interval, largest p, equivalence, what can be found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

from biobench.stats import Answer, Estimand, Noise

positive = st.floats(0.01, 10)
noises = st.builds(Noise, st.just("noise"), positive, st.floats(1, 200))


def answer(estimate: float, *parts: tuple[float, float]) -> Answer:
    """parts: (se, df) of each noise."""
    found = tuple(Noise(f"noise {i}", se, df) for i, (se, df) in enumerate(parts))
    return Answer(estimate, found, Estimand.THESE_TASKS)


def test_the_interval_is_the_widest_and_the_p_value_the_largest():
    """se 1 on 2 degrees is wider (4.303) than se 1.5 on 100 (2.976) at 95%, and less wide at 80%
    (1.886 against 1.935).
    """
    found = answer(3.0, (1.0, 2.0), (1.5, 100.0))
    assert found.interval().half_width == pytest.approx(4.3027, abs=1e-4)
    assert found.interval(0.8).half_width == pytest.approx(1.9351, abs=1e-4)
    assert found.interval().method.endswith("noise 0")
    assert found.p == pytest.approx(2 * stats.t.sf(3.0, 2))
    assert found.p_not_above == pytest.approx(stats.t.sf(3.0, 2))
    assert answer(-3.0, (1.0, 2.0)).p_not_above == pytest.approx(1 - stats.t.sf(3.0, 2))


@given(st.floats(-5, 5), st.lists(noises, min_size=1, max_size=4), noises)
def test_one_more_noise_never_makes_an_answer_surer(estimate, known, more):
    few = Answer(estimate, tuple(known), Estimand.THESE_TASKS)
    many = Answer(estimate, (*known, more), Estimand.THESE_TASKS)
    assert many.p >= few.p
    assert many.interval(0.99).half_width >= few.interval(0.99).half_width


@given(st.floats(-5, 5), st.lists(noises, min_size=1, max_size=4), st.floats(0.001, 0.2))
def test_the_interval_leaves_out_zero_exactly_where_p_is_below_its_level(estimate, known, alpha):
    found = Answer(estimate, tuple(known), Estimand.THESE_TASKS)
    if abs(found.p - alpha) > 1e-9:
        assert (0.0 in found.interval(1 - alpha)) == (found.p > alpha)


@pytest.mark.parametrize(("estimate", "p"), [(0.5, 0.0), (-0.5, 0.0), (0.0, 1.0)])
def test_without_variation_there_is_no_doubt_whichever_the_sign(estimate, p):
    found = answer(estimate, (0.0, math.inf))
    assert found.p == p
    assert (found.interval().low, found.interval().high) == (estimate, estimate)
    assert found.detectable() is None


def test_equivalence_is_that_of_two_one_sided_tests():
    rng = np.random.default_rng(3)
    a, b = rng.normal(70, 1, 9), rng.normal(70.2, 1, 9)
    gaps = a - b
    found = answer(float(gaps.mean()), (float(stats.sem(gaps)), 8.0))
    assert found.p_outside(1.0) == pytest.approx(ttost_paired(a, b, -1.0, 1.0)[0])
    assert answer(0.1, (0.0, 3.0)).p_outside(1.0) == 0
    assert answer(2.0, (0.0, 3.0)).p_outside(1.0) == 1


@given(st.floats(-2, 2), st.lists(noises, min_size=1, max_size=3), st.floats(0.1, 4))
def test_sameness_is_shown_exactly_where_the_narrower_interval_lies_within(estimate, known, margin):
    found = Answer(estimate, tuple(known), Estimand.THESE_TASKS)
    p, interval = found.p_outside(margin), found.interval(0.90)
    if abs(p - 0.05) > 1e-9:
        assert (p < 0.05) == (-margin < interval.low and interval.high < margin)


@pytest.mark.parametrize("n", [3, 6, 9, 19, 200])
def test_the_detectable_difference_has_the_power_that_statsmodels_gives_it(n):
    found = answer(0.0, (1.7 / math.sqrt(n), n - 1.0), (0.01, 50.0)).detectable()
    assert TTestPower().power(found / 1.7, n, 0.05) == pytest.approx(0.8, abs=1e-6)
