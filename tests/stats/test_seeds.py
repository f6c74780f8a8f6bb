"""Spread over seeds and splits, against scipy and by hand; runs that failed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from biobench.stats import (
    Estimand,
    StatsInputError,
    Variances,
    failed_runs,
    mean_test,
    pooled_df,
    seed_interval,
    seed_part,
    splits_part,
    t_from_se,
    these_tasks,
)
from biobench.stats.seeds import SeedSummary


def test_two_parts_make_welchs_t():
    rng = np.random.default_rng(7)
    a, b = rng.normal(70, 2, 9), rng.normal(69, 3, 5)
    parts = seed_part(a), seed_part(b)
    found = these_tasks(float(a.mean() - b.mean()), Variances(parts, None))
    expected = stats.ttest_ind(a, b, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.noises[0].df == pytest.approx(expected.df)
    assert (found.interval().low, found.interval().high) == pytest.approx(
        (interval.low, interval.high)
    )
    assert found.estimand is Estimand.THESE_TEST_SETS


def test_one_mean_equals_scipy():
    a = np.random.default_rng(7).normal(70, 2, 9)
    one = mean_test(a - 70, estimand=Estimand.NEW_SEEDS)
    assert one.p == pytest.approx(stats.ttest_1samp(a, 70).pvalue)
    summary = seed_interval(a)
    ends = stats.t.interval(0.95, 8, loc=a.mean(), scale=stats.sem(a))
    assert (summary.interval.low, summary.interval.high) == pytest.approx(ends)


def test_the_spread_is_never_below_the_rounding_of_a_score():
    variance, df = seed_part([0.5, 0.5, 0.5], resolution=0.06)
    assert (variance, df) == (pytest.approx(0.06**2 / 12 / 3), 2)
    variance, df = splits_part([0.1, 0.1, 0.1], 1 / 3, resolution=0.06)
    assert (variance, df) == (pytest.approx(0.06**2 / 6 * (1 / 3 + 1 / 3)), 2)


def test_splits_are_widened_as_by_nadeau_and_bengio():
    gaps, ratio = np.array([0.01, 0.04, 0.0, 0.04]), 1 / 3
    variance, df = splits_part(gaps, ratio)
    assert (variance, df) == (pytest.approx((1 / 4 + ratio) * gaps.var(ddof=1)), 3)
    summary = seed_interval(gaps, ratio=ratio)
    half = stats.t.ppf(0.975, 3) * math.sqrt(variance)
    assert summary.interval.half_width == pytest.approx(half)
    assert summary.interval.estimand is Estimand.THIS_TASK


def test_pooled_degrees_of_freedom_are_those_of_satterthwaite():
    assert pooled_df([(1.0, 8.0), (1.0, 99.0)]) == pytest.approx(4 / (1 / 8 + 1 / 99))
    assert pooled_df([(0.0, 8.0)]) == math.inf


@pytest.mark.parametrize(("value", "p"), [(0.5, 0.0), (-0.5, 0.0), (0.0, 1.0)])
def test_equal_values_leave_no_doubt_whichever_their_sign(value, p):
    for found in (
        mean_test([value] * 4, estimand=Estimand.NEW_SEEDS),
        t_from_se(value, 0.0, 3.0, n=4, sd=0.0, estimand=Estimand.NEW_SEEDS),
    ):
        assert (found.n, found.estimate, found.sd, found.se, found.df) == (4, value, 0.0, 0.0, None)
        assert found.p == p
        assert (found.interval.low, found.interval.high) == (value, value)
        assert found.note


def test_one_seed_gives_no_interval():
    assert seed_interval([0.7]) == SeedSummary(0.7, None, None)
    alone = mean_test([0.1], estimand=Estimand.NEW_SEEDS)
    assert (alone.p, alone.interval) == (None, None)
    assert "one value" in alone.note


@pytest.mark.parametrize("resolution", [0.0, 0.01])
def test_equal_seeds_give_no_interval(resolution):
    """An interval of no width, or of the width of rounding, would be read as certainty."""
    summary = seed_interval([0.7, 0.7, 0.7], resolution=resolution)
    assert summary == SeedSummary(pytest.approx(0.7), 0.0, None)


@pytest.mark.parametrize(
    ("scores", "failed"),
    [
        ([0.70, 0.71, 0.69, 0.2], [3]),
        ([0.70, 0.71, 0.69, 0.2, 0.25], [3, 4]),
        ([0.70, 0.71, 0.69, 0.60], []),  # a bad run is no failed one
        ([0.9, 0.1], []),  # which of the two is the odd one?
        ([0.7, 0.7, 0.7, 0.95], []),
        ([0.552, 0.552, 0.554], []),  # one document above guessing
    ],
)
def test_failed_runs_are_far_below_their_siblings(scores, failed):
    assert [seed for seed, lost in enumerate(failed_runs(scores)) if lost] == failed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: seed_interval([0.5, float("nan")]), "value 1 is nan"),
        (lambda: seed_interval([]), "shape .0,."),
        (lambda: seed_interval([[0.5]]), "shape .1, 1."),
        (lambda: seed_part([0.5]), "shape .1,."),
        (lambda: mean_test([np.inf], estimand=Estimand.NEW_SEEDS), "inf"),
    ],
)
def test_bad_input_is_refused_with_a_hint(call, words):
    with pytest.raises(StatsInputError, match=words) as caught:
        call()
    assert caught.value.hint
