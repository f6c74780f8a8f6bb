"""Intervals over several splits of one corpus: their training documents overlap, and the t must know it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from biobench.data.splits import ratio_indices
from biobench.schema.source import SplitRatios
from biobench.stats import compare_seeds, seed_interval, these_tasks
from biobench.stats.types import Estimand, StatsInputError

SIZE, FEATURES, REPEATS = 150, 12, 400


def accuracies(rng, splits):
    """Of two nearest-centroid classifiers (all features, the first four) on each split of a corpus drawn anew."""
    labels = rng.integers(0, 2, SIZE)
    points = rng.normal(size=(SIZE, FEATURES)) + 0.35 * labels[:, None]
    scores = []
    for train, test in splits:
        row = []
        for used in (FEATURES, 4):
            low, high = (points[train][labels[train] == c, :used].mean(axis=0) for c in (0, 1))
            answers = (points[test][:, :used] - (low + high) / 2) @ (high - low) > 0
            row.append((answers == labels[test]).mean())
        scores.append(row)
    return np.array(scores).T


def ten_folds():
    order = np.random.default_rng(42).permutation(SIZE)
    return [(np.setdiff1d(order, order[i::10]), order[i::10]) for i in range(10)]


def repeated():
    splits = [SplitRatios(ratios=(0.75, 0.05, 0.2), seed=i, method="datasets") for i in range(20)]
    return [(train, test) for train, _, test in (ratio_indices(SIZE, s) for s in splits)]


@pytest.mark.parametrize("make", [ten_folds, repeated])
def test_the_corrected_interval_covers_where_the_plain_one_does_not(make):
    splits = make()
    ratio = np.mean([len(test) / len(train) for train, test in splits])
    rng = np.random.default_rng(7)
    drawn = [accuracies(rng, splits) for _ in range(REPEATS)]
    truth = np.mean([scores.mean(axis=1) for scores in drawn], axis=0)
    difference = truth[0] - truth[1]
    one = [truth[0] in seed_interval(a, ratio=ratio).interval for a, _ in drawn]
    two = [difference in compare_seeds(a, b, ratio=ratio).interval for a, b in drawn]
    plain = [truth[0] in seed_interval(a).interval for a, _ in drawn]
    # 400 draws: a coverage of 95% gives 92.2% or more in 99 of 100 simulations
    assert np.mean(one) > 0.922
    assert np.mean(two) > 0.922
    assert np.mean(plain) < np.mean(one)
    if make is repeated:
        assert np.mean(plain) < 0.75


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
