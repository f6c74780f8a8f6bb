"""The default suite test: false positives, the rejected flat bootstrap, the published French table."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import (
    Estimand,
    SuiteVariance,
    compare_suite,
    probability_of_improvement,
    seeds_needed,
    suite_variance,
    values_needed,
)
from tests.helpers.stats_simulation import gaussian_suite

#: arXiv:2605.12438, base models, French, percent: CLM detour (10B) and its MLM twin (10B).
TASKS = ("fracco_30", "fracco_100", "cantemist", "distemist", "meddialog_fr", "diamed", "quaero_emea", "quaero_medline")
CORPORA = ("cantemist", "cantemist", "cantemist", "distemist", "meddialog", "diamed", "emea", "medline")
DETOUR = (74.8, 60.1, 71.0, 25.5, 63.6, 67.4, 68.6, 61.9)
TWIN = (69.9, 56.8, 64.9, 23.5, 62.5, 63.4, 68.5, 61.4)


def published(**options):
    return compare_suite(
        [[x] for x in DETOUR], [[x] for x in TWIN], tasks=TASKS, clusters=CORPORA, resolution=0.1, **options
    )


def test_the_published_table_by_hand():
    """Detour against twin, eight printed means without seeds.

    Differences 4.9 3.3 6.1 2.0 1.1 4.0 0.1 0.5: 8 of 8 tasks. The first three share a corpus and become
    14.3 / 3 = 4.7667. Mean of the six: 12.4667 / 6 = 2.0778. Squared deviations 7.2301 0.0060 0.9560
    3.6949 3.9116 2.4894 add to 18.2882, so sd = sqrt(18.2882 / 5) = 1.9125, se = 1.9125 / sqrt(6) =
    0.7808, t = 2.6612 on 5 degrees of freedom; t(0.975, 5) = 2.5706: 2.0778 ± 2.0070. Six positive
    signed ranks: Wilcoxon p = 2 / 2^6.
    """
    result = published()
    assert result.task_differences == pytest.approx((4.9, 3.3, 6.1, 2.0, 1.1, 4.0, 0.1, 0.5))
    assert (result.wins, result.ties, result.losses) == (8, 0, 0)
    assert result.cluster_differences == pytest.approx((4.76667, 2.0, 1.1, 4.0, 0.1, 0.5), abs=1e-5)
    assert result.difference == pytest.approx(2.0778, abs=1e-4)
    assert result.task_difference == pytest.approx(2.75)
    assert result.test.sd == pytest.approx(1.9125, abs=1e-4)
    assert result.test.estimate / result.test.se == pytest.approx(2.6612, abs=1e-4)
    assert (result.test.df, result.test.interval.level) == (5, 0.95)
    assert (result.test.interval.low, result.test.interval.high) == pytest.approx((0.0707, 4.0848), abs=1e-4)
    assert 0.04 < result.test.p < 0.05  # between t(0.98) = 2.757 and t(0.975) = 2.571 of 5 df
    assert result.wilcoxon_p == result.wilcoxon_smallest_p == 2 / 2**6
    assert result.test.estimand is Estimand.TASKS_LIKE_THESE


def test_the_published_table_says_what_it_cannot_say():
    result = published()
    assert result.improvement is None
    assert result.variance is None
    assert any("no seeds" in note for note in result.notes)
    # taken as eight independent tasks it would look stronger than it is
    assert compare_suite([[x] for x in DETOUR], [[x] for x in TWIN]).test.p < 0.01 < result.test.p


def test_practical_equivalence_is_counted_with_its_bounds():
    result = published(rope=0.5)
    assert (result.wins, result.ties, result.losses) == (6, 2, 0)


def test_false_positives_of_the_default_test_and_of_the_flat_bootstrap():
    """Why the t over cluster means is the default.

    No true gain; task, test-set and seed sd 1 each. The t rejects about as often as it says. Pooling tasks
    x seeds in one percentile bootstrap treats 9 seeds of one task as 9 tasks and rejects every third time
    or more.
    """
    rng = np.random.default_rng(20)
    clusters = list("abcdefgh")
    rejected = flat = 0
    for _ in range(2000):
        a, b = gaussian_suite(rng, clusters=clusters, seeds=9)
        rejected += compare_suite(a, b, clusters=clusters).test.p <= 0.05
    for _ in range(400):
        a, b = gaussian_suite(rng, clusters=clusters, seeds=9)
        d = (a - b).ravel()
        low, high = np.quantile(d[rng.integers(0, d.size, size=(400, d.size))].mean(axis=1), [0.025, 0.975])
        flat += not low <= 0 <= high
    assert rejected / 2000 <= 0.07
    assert flat / 400 > 0.3


def test_false_positives_when_three_tasks_share_a_corpus():
    rng = np.random.default_rng(21)
    clusters = list("xxxabcde")
    by_cluster = by_task = 0
    for _ in range(1500):
        a, b = gaussian_suite(rng, clusters=clusters, seeds=9, seed_sd=0.5)
        by_cluster += compare_suite(a, b, clusters=clusters).test.p <= 0.05
        by_task += compare_suite(a, b).test.p <= 0.05
    assert by_cluster / 1500 <= 0.07
    assert by_task / 1500 > 0.1


def test_probability_of_improvement_counts_pairs_of_runs():
    assert probability_of_improvement([3.0, 1.0], [2.0, 1.0]) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    result = compare_suite([[3.0, 1.0], [5.0, 5.0]], [[2.0, 1.0], [4.0, 4.0]])
    assert result.improvement == pytest.approx((2.5 / 4 + 1) / 2)


def test_variance_components_are_recovered():
    rng = np.random.default_rng(22)
    clusters = [*"xxx", *(str(i) for i in range(300))]
    a, b = gaussian_suite(rng, clusters=clusters, seeds=9, task_sd=1.5, test_sd=0.5, seed_sd=2.0)
    found = suite_variance(a, b, clusters)
    assert found.clusters == 301
    assert found.between == pytest.approx(1.5**2 + 0.5**2, rel=0.2)
    assert found.seed == pytest.approx(4.0, rel=0.1)


def test_seeds_needed():
    variance = SuiteVariance(between=1.0, seed=4.0, clusters=8)
    plan = seeds_needed(1.5, variance)
    assert plan.seeds is not None
    assert variance.detectable(plan.seeds) <= 1.5 < variance.detectable(plan.seeds - 1)
    beyond = seeds_needed(0.5, variance)
    assert beyond.seeds is None
    assert beyond.limit > 0.5
    assert "more corpora" in beyond.note
    assert seeds_needed(1.0, SuiteVariance(1.0, 1.0, 1)).limit is None
    assert seeds_needed(1.0, SuiteVariance(0.0, 0.0, 8)).seeds == 1
    # 34 pairs for half a standard deviation at 80%, as in any table of the paired t
    assert values_needed(0.5, 1.0) == 34


def test_the_detectable_difference_is_found_four_times_in_five():
    rng = np.random.default_rng(23)
    clusters = list("abcdefgh")
    sd = SuiteVariance(2.0, 1.0, 8)
    gain = sd.detectable(9)
    found = 0
    for _ in range(1000):
        a, b = gaussian_suite(rng, clusters=clusters, seeds=9, gain=gain)
        found += compare_suite(a, b).test.p <= 0.05
    assert found / 1000 == pytest.approx(0.8, abs=0.04)
