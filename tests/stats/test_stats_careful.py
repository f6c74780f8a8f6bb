"""What a careful verdict rests on, against scipy, statsmodels and values by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from statsmodels.stats.weightstats import ttost_paired

from biobench.stats import (
    Estimand,
    StatsInputError,
    SuiteVariance,
    coherent,
    compare_many,
    compare_suite,
    failed_runs,
    interaction_of,
    look,
    mean_test,
    moderated_p,
    next_task,
    seeds_needed,
    shrunken,
    t_power,
    tost,
    variance_shares,
    without_each,
)
from biobench.stats.means import t_from_se
from biobench.stats.power import sd_range
from biobench.stats.sequential import critical_t, e_value
from biobench.stats.skew import skewed_ends, skewed_t


def test_the_wider_question_never_has_the_narrower_interval():
    rng = np.random.default_rng(1)
    for _ in range(300):
        gaps = rng.normal(0.3, 1, 6)
        suite = mean_test(gaps, estimand=Estimand.TASKS_LIKE_THESE)
        within = t_from_se(suite.estimate, float(rng.uniform(0.05, 1)), 20.0, n=6, estimand=Estimand.THESE_TASKS)
        found = coherent(suite, within)
        assert found.interval.half_width == pytest.approx(max(suite.interval.half_width, within.interval.half_width))
        assert found.p == max(suite.p, within.p)
        assert (0 in found.interval) == (found.p > 0.05)
        assert found.estimand is Estimand.TASKS_LIKE_THESE


def test_skewness_moves_the_near_end_alone_and_with_it_the_p():
    """Five corpora slightly worse and one much better pull apart; the bulk and its tail are on different sides."""
    gaps = [-1.0, -1.1, -0.9, -1.05, -0.95, -0.2]
    plain = compare_suite([[70 + g] for g in gaps], [[70.0]] * 6)
    hard = plain.hardened()
    assert hard.test.p > plain.test.p
    assert hard.test.interval.high > plain.test.interval.high
    assert hard.test.interval.low == plain.test.interval.low
    # with mean and tail on one side the t is the careful one already
    same = compare_suite([[70 - g] for g in (-3.0, -1.1, -0.9, -1.05, -0.95, -1.0)], [[70.0]] * 6)
    assert same.hardened().test == same.test


def test_the_skewed_interval_is_the_inverted_test():
    for skewness in (-0.8, 0.0, 0.5):
        low, high = skewed_ends(1.0, 0.4, 8, skewness, 0.95)
        for end, side in ((low, 1), (high, -1)):
            t = skewed_t(1.0 - end, 0.4, 8, skewness)
            assert side * t == pytest.approx(stats.t.ppf(0.975, 7))


def test_moderated_variances_by_hand_and_where_they_do_not_apply():
    rng = np.random.default_rng(2)
    scores = rng.normal(70, 1, (5, 6)) + np.arange(5)[:, None]
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    gaps = [(scores[a] - scores[b]).tolist() for a, b in pairs]
    found = moderated_p(gaps, 5)
    assert len(found) == 10
    # no smaller variance than the pair's own, and never more than 3 x 5 / 2 further degrees of freedom
    for p, gap in zip(found, gaps, strict=True):
        t = abs(np.mean(gap)) / (np.std(gap, ddof=1) / math.sqrt(6))
        assert p >= 2 * stats.t.sf(t, 5 + 7.5) - 1e-12
    assert moderated_p([g[:3] for g in gaps], 5) is None, "three corpora"
    assert moderated_p(gaps[:1], 2) is None, "two models"
    assert moderated_p([[1.0] * 6, [2.0] * 6, [1.0] * 6], 3) is None, "no spread"
    many = compare_many([[[x] for x in row] for row in scores], list("abcde"))
    assert all(p.p_moderated is not None for p in many.pairs)
    assert sum(p.different for p in many.pairs) >= sum(p.p_holm <= 0.05 for p in many.pairs)


def test_equivalence_is_that_of_two_one_sided_tests():
    rng = np.random.default_rng(3)
    a, b = rng.normal(70, 1, 9), rng.normal(70.2, 1, 9)
    test = mean_test(a - b, estimand=Estimand.NEW_SEEDS)
    assert tost(test, 1.0) == pytest.approx(ttost_paired(a, b, -1.0, 1.0)[0])
    assert tost(mean_test([0.1, 0.1], estimand=Estimand.NEW_SEEDS), 1.0) == 0
    assert tost(mean_test([0.1], estimand=Estimand.NEW_SEEDS), 1.0) is None
    with pytest.raises(StatsInputError):
        tost(test, 0.0)


def test_failed_runs_are_far_below_their_siblings_or_at_no_skill():
    assert failed_runs([0.70, 0.71, 0.69, 0.2]) == (False, False, False, True)
    assert failed_runs([0.70, 0.71, 0.69, 0.2, 0.25]) == (False, False, False, True, True)
    assert failed_runs([0.70, 0.71, 0.69, 0.60]) == (False,) * 4, "a bad run is no failed one"
    assert failed_runs([0.9, 0.1]) == (False, False), "two runs: which of them is the odd one?"
    assert failed_runs([0.9, 0.1], no_skill=0.1) == (False, True)
    assert failed_runs([0.1, 0.1, 0.05], no_skill=0.1) == (False,) * 3, "a task that is not learnt is a result"
    assert failed_runs([0.7, 0.7, 0.7, 0.95]) == (False,) * 4


def test_parts_and_single_corpora():
    gaps, parts = [2.0, 2.5, 1.8, -1.0, -0.5], ["a", "a", "a", "b", "b"]
    found = interaction_of(gaps, parts)
    assert found.p == pytest.approx(stats.f_oneway(gaps[:3], gaps[3:]).pvalue)
    assert found.parts == {"a": pytest.approx(2.1), "b": pytest.approx(-0.75)}
    assert interaction_of([1.0, 2.0, 3.0], ["a", "a", "b"]).p is None
    assert interaction_of([1.0, 2.0], ["a", "a"]).p is None
    left = without_each([1.0, 2.0, 3.0])
    assert left[0] == pytest.approx(stats.ttest_1samp([2.0, 3.0], 0).pvalue)
    assert without_each([1.0, 2.0]) == (None, None)


def test_shares_add_up_and_a_task_on_which_all_agree_decides_nothing():
    values = np.array([[0.1, 0.5, 0.2], [0.3, 0.5, 0.1], [0.8, 0.5, 0.4]])
    shares = variance_shares(values, np.array([0.5, 0.25, 0.25]))
    assert shares.sum() == pytest.approx(1)
    assert shares[1] == pytest.approx(0)
    assert shares[0] > 0.8
    assert not variance_shares(np.ones((3, 2)), np.array([0.5, 0.5])).any()


def test_the_luckiest_score_falls_most():
    rng = np.random.default_rng(4)
    plain = drawn = 0.0
    for _ in range(400):
        true = rng.normal(70, 1, 8)
        seen = true + rng.normal(0, 1, 8)
        plain += (seen.max() - true[seen.argmax()]) / 400
        drawn += (shrunken(seen, np.ones(8)).max() - true[seen.argmax()]) / 400
    assert plain > 0.7, "the winner's curse"
    assert abs(drawn) < 0.35
    assert list(shrunken(np.array([1.0, 2.0]), np.ones(2))) == [1.0, 2.0]


def test_seeds_are_not_counted_where_few_corpora_cannot_tell():
    low, high = (x**2 for x in sd_range(math.sqrt(5), 6))
    unsure = SuiteVariance(1.0, 20.0, 6, max(0, low - 4), high - 4)
    plan = seeds_needed(2.0, unsure)
    assert (plan.seeds, plan.certain) == (None, False)
    assert "cannot be told from 6 corpora" in plan.note
    known = seeds_needed(2.0, SuiteVariance(1.0, 20.0, 6))
    assert t_power(2.0, math.sqrt(1 + 20 / known.seeds), 6) >= 0.8
    hopeless = seeds_needed(0.1, SuiteVariance(5.0, 1.0, 6, 2.0, 20.0))
    assert (hopeless.seeds, hopeless.certain) == (None, True)


def test_the_e_value_reaches_its_bound_where_the_confidence_sequence_leaves_zero():
    for df, rounds in ((4.0, 5.0), (30.0, 6.0)):
        t = critical_t(df, rounds, 0.05)
        assert e_value(t, df, rounds) == pytest.approx(20)
        assert e_value(0.99 * t, df, rounds) < 20 < e_value(1.01 * t, df, rounds)
    assert math.isinf(critical_t(1.0, 2.0, 0.05))


def test_the_e_value_has_mean_one_without_a_difference():
    """The expectation of a Bayes factor under the null, by integration over the t distribution."""
    for n in (3, 6, 12):
        mean, _ = integrate.quad(
            lambda t, n=n: e_value(t, n - 1, n) * stats.t.pdf(t, n - 1), -np.inf, np.inf, limit=400
        )
        assert mean == pytest.approx(1, abs=1e-3)


def test_looks_decide_and_seeds_go_where_they_tell_most():
    rng = np.random.default_rng(5)
    apart = [(2.0 + rng.normal(0, 0.3, 6)).tolist() for _ in range(3)]
    assert look(apart, [1 / 3] * 3).decision == "different"
    alike = [rng.normal(0, 0.1, 6).tolist() for _ in range(3)]
    assert look(alike, [1 / 3] * 3).decision is None
    assert look(alike, [1 / 3] * 3, rope=1.0).decision == "same"
    assert look([d[:2] for d in apart], [1 / 3] * 3).decision is None, "two seeds are too few to look"
    noisy, calm = [0.0, 5.0, -5.0], [0.0, 0.5, -0.5]
    assert next_task([noisy, calm], [0.5, 0.5], [1.0, 1.0]) == 0
    assert next_task([noisy, calm], [0.5, 0.5], [1000.0, 1.0]) == 1
    assert next_task([[*noisy, 1.0, 2.0], calm], [0.5, 0.5], [1.0, 1.0]) == 1, "two seeds ahead: the others first"
