"""Every 95% interval covers its own estimand in 93 to 97% of simulated samples."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import Estimand, document_interval, seed_interval
from biobench.stats.resample import group_weights, score_draws
from tests.helpers.stats_simulation import (
    Population,
    assert_nominal,
    compare_counts,
    expected_macro,
    one_task,
)

COMMON = Population(np.array([0.4, 0.3, 0.2, 0.15]), np.array([[0.65, 0.75, 0.6, 0.7], [0.75, 0.78, 0.7, 0.7]]))


@pytest.mark.parametrize("seeds", [3, 5, 9])
def test_t_over_seeds(seeds):
    rng = np.random.default_rng(seeds)
    samples = rng.normal(70, 2, size=(4000, seeds))
    covered = sum(70 in seed_interval(x).interval for x in samples)
    assert_nominal(covered, 4000, Estimand.NEW_SEEDS)
    # why not a percentile bootstrap: it misses far more often than it says
    means = samples[:1000, rng.integers(0, seeds, size=(500, seeds))].mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=1)
    assert ((low <= 70) & (high >= 70)).mean() < 0.92


STRONG = Population(np.full(4, 0.3), np.full((1, 4), 0.95), false_rate=0.05)


@pytest.mark.parametrize(("population", "groups"), [(COMMON, 150), (STRONG, 200)], ids=["F1 .71", "F1 .96"])
def test_documents_with_frequent_labels(population, groups):
    rng = np.random.default_rng(1)
    recalls = population.run_recalls(1, rng)
    truth = expected_macro(population, groups, recalls, 3000)[0]
    covered = by_bootstrap = 0
    for _ in range(1200):
        counts = population.sample(groups, recalls[:1], rng)[0]
        summary = document_interval(counts, "macro", draws=400)
        covered += truth in summary.interval
        by_bootstrap += summary.method == "bootstrap"
    assert by_bootstrap > 1190
    assert_nominal(covered, 1200, Estimand.NEW_DOCUMENTS)


def test_documents_with_rare_labels_need_the_jackknife():
    """34 labels on 130 documents, most of them in one to nine of these: why ``auto`` changes method."""
    rng = np.random.default_rng(2)
    labels = 34
    population = Population(np.geomspace(0.4, 0.01, labels), rng.uniform(0.5, 0.85, size=(1, labels)))
    recalls = population.run_recalls(1, rng)
    truth = expected_macro(population, 130, recalls, 3000)[0]
    auto = bootstrap = percentile = 0
    for repeat in range(600):
        counts = population.sample(130, recalls, rng)[0]
        summary = document_interval(counts, "macro")
        assert summary.method == "jackknife"
        assert summary.rare_labels > 10
        auto += truth in summary.interval
        if repeat < 300:
            weights = next(group_weights(130, 400, rng))
            draws = score_draws(counts, weights, "macro").mean(axis=1)
            low, high = np.quantile(draws, [0.025, 0.975])
            percentile += low <= truth <= high
            bootstrap += abs(summary.score - truth) <= 1.978 * draws.std()
    assert_nominal(auto, 600, Estimand.NEW_DOCUMENTS)
    assert percentile / 300 < 0.9
    assert bootstrap / 300 < 0.93


def test_two_tasks_on_one_set_of_documents_are_no_more_evidence_than_one():
    rng = np.random.default_rng(13)
    names = [f"d{i}" for i in range(100)]
    pair = COMMON.sample(100, COMMON.run_recalls(4, rng), rng)
    twice = [one_task("x", pair, names), one_task("y", pair, names)]
    once = compare_counts(twice[:1]).documents[0].variance
    assert compare_counts(twice, "xx").documents[0].variance == pytest.approx(once)
    apart = [one_task("x", pair, names), one_task("y", pair, [n + "'" for n in names])]
    assert compare_counts(apart, "xx").documents[0].variance == pytest.approx(once / 2, rel=0.15)
