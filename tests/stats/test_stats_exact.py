"""Worked numbers, and equality with scipy, statsmodels, scikit-learn and naive recomputation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from biobench.stats import (
    Counts,
    Estimand,
    compare_seeds,
    detectable_difference,
    document_interval,
    f1_scores,
    holm,
    mean_test,
    seed_interval,
)
from biobench.stats.counts import evaluated_labels
from biobench.stats.resample import group_weights, jackknife_se, leave_one_out, score_draws
from tests.helpers.stats_simulation import Population

AVERAGES = ("macro", "macro_all", "micro", "weighted")


def worked() -> Counts:
    """Labels A, B, C; gold A A B; predicted A B C: one document each."""
    tp = [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    fp = [[0, 0, 0], [0, 1, 0], [0, 0, 1]]
    fn = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    return Counts.of(tp, fp, fn)


@pytest.mark.parametrize(
    ("average", "value"),
    [("macro", 1 / 3), ("macro_all", 2 / 9), ("micro", 1 / 3), ("weighted", 4 / 9)],
)
def test_the_worked_numbers_of_the_metric_contract(average, value):
    assert f1_scores(worked(), average)[0] == pytest.approx(value, abs=1e-15)


def test_one_gold_mention_or_none():
    one = Counts.of([[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 0], [0, 0]])
    assert [f1_scores(one, average)[0] for average in AVERAGES] == pytest.approx(
        [1, 1 / 2, 2 / 3, 1]
    )
    none = Counts.of([[0, 0]], [[0, 1]], [[0, 0]])
    assert [f1_scores(none, average, [True, True])[0] for average in AVERAGES] == [0, 0, 0, 0]
    silent = Counts.of([[0, 0]], [[0, 0]], [[0, 0]])
    assert [f1_scores(silent, average, [True, True])[0] for average in AVERAGES] == [0, 0, 0, 0]


def simulated(seeds: int = 3, groups: int = 40, labels: int = 4) -> Counts:
    population = Population(np.full(labels, 0.5), np.linspace(0.5, 0.9, labels)[None], seed_sd=0.05)
    rng = np.random.default_rng(5)
    return population.sample(groups, population.run_recalls(seeds, rng), rng)[0]


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_scores_equal_scikit_learn(average):
    counts = simulated(seeds=1)
    predicted = counts.tp[0] + counts.fp[0]
    assert f1_scores(counts, average)[0] == pytest.approx(
        f1_score(counts.gold, predicted, average=average)
    )


@pytest.mark.parametrize("average", AVERAGES)
def test_count_bootstrap_equals_naive_recomputation(average):
    counts = simulated(seeds=2, groups=15, labels=3)
    rng = np.random.default_rng(1)
    weights = np.concatenate(list(group_weights(15, 200, rng)))
    assert (weights.sum(axis=1) == 15).all()
    assert weights.any(axis=0).all(), "every document is drawn"
    fast = score_draws(counts, weights, average)
    for draw in range(200):
        documents = np.repeat(np.arange(15), weights[draw].astype(int))
        resampled = Counts.of(
            counts.tp[:, documents], counts.fp[:, documents], counts.fn[:, documents]
        )
        # the label set stays that of the full split; every label is seen in these draws
        naive = f1_scores(resampled, average, evaluated_labels(counts))
        assert (resampled.doubled.sum(axis=1) > 0).all()
        np.testing.assert_allclose(fast[draw], naive, rtol=1e-12)


@pytest.mark.parametrize("average", AVERAGES)
def test_leave_one_out_equals_naive_recomputation(average):
    counts = simulated(seeds=2, groups=12, labels=3)
    left_out = leave_one_out(counts, average)
    for group in range(12):
        rest = np.arange(12) != group
        fewer = Counts.of(counts.tp[:, rest], counts.fp[:, rest], counts.fn[:, rest])
        np.testing.assert_allclose(
            left_out[group], f1_scores(fewer, average, evaluated_labels(counts))
        )


def test_jackknife_of_a_mean_is_its_standard_error():
    x = np.random.default_rng(0).normal(size=30)
    left_out = (x.sum() - x) / 29
    assert jackknife_se(left_out) == pytest.approx(x.std(ddof=1) / np.sqrt(30))


def test_draws_do_not_depend_on_the_chunks():
    whole = np.concatenate(list(group_weights(37, 100, np.random.default_rng(3))))
    pieces = np.concatenate(
        list(group_weights(37, 100, np.random.default_rng(3), chunk_bytes=37 * 16 * 7))
    )
    np.testing.assert_array_equal(whole, pieces)
    counts = simulated(groups=37)
    np.testing.assert_allclose(
        score_draws(counts, whole, "macro"),
        score_draws(counts, whole, "macro", chunk_bytes=1),
        rtol=1e-12,
    )


def test_t_equals_scipy():
    rng = np.random.default_rng(7)
    a, b = rng.normal(70, 2, 9), rng.normal(69, 3, 9)
    paired = compare_seeds(a, b)
    reference = stats.ttest_rel(a, b)
    interval = reference.confidence_interval(0.95)
    assert paired.p == pytest.approx(reference.pvalue)
    assert (paired.interval.low, paired.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )
    unpaired = compare_seeds(a, b[:5], paired=False)
    reference = stats.ttest_ind(a, b[:5], equal_var=False)
    interval = reference.confidence_interval(0.95)
    assert unpaired.p == pytest.approx(reference.pvalue)
    assert unpaired.df == pytest.approx(reference.df)
    assert (unpaired.interval.low, unpaired.interval.high) == pytest.approx(
        (interval.low, interval.high)
    )
    one = mean_test(a - 70, estimand=Estimand.NEW_SEEDS)
    assert one.p == pytest.approx(stats.ttest_1samp(a, 70).pvalue)
    small = mean_test((a - 70) / 100, estimand=Estimand.NEW_SEEDS)
    assert (small.p, small.sd) == pytest.approx((one.p, one.sd / 100))
    summary = seed_interval(a, level=0.9)
    ends = stats.t.interval(0.9, 8, loc=a.mean(), scale=stats.sem(a))
    assert (summary.interval.low, summary.interval.high) == pytest.approx(ends)


def test_holm_by_hand_and_against_statsmodels():
    # sorted .005 .01 .03 .04 times 4 3 2 1, then made monotone
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    p = np.random.default_rng(4).random(30) ** 2
    assert holm(p.tolist()) == pytest.approx(multipletests(p, method="holm")[1])
    assert holm([0.02, None, 0.03]) == (pytest.approx(0.04), None, pytest.approx(0.04))


@pytest.mark.parametrize("n", [3, 6, 9, 19, 200])
def test_the_detectable_difference_has_the_power_that_statsmodels_gives_it(n):
    found = detectable_difference(1.7 / np.sqrt(n), n - 1)
    assert TTestPower().power(found / 1.7, n, 0.05) == pytest.approx(0.8, abs=1e-6)


def test_the_detectable_difference_on_two_values_is_found_four_times_in_five():
    found = detectable_difference(1 / np.sqrt(2), 1)
    x = np.random.default_rng(3).normal(found, 1.0, size=(2, 200_000))
    t = x.mean(axis=0) / (abs(x[0] - x[1]) / 2)
    assert (abs(t) > stats.t.ppf(0.975, 1)).mean() == pytest.approx(0.8, abs=0.004)


def test_the_document_interval_is_a_t_on_the_logit():
    rng = np.random.default_rng(8)
    right = rng.random(40) < 0.85
    tp = right.astype(int)[:, None]
    counts = Counts.of(tp, 1 - tp, 1 - tp)
    p, n = right.mean(), right.size
    found = document_interval(counts, "micro", level=0.9)
    half = stats.t.ppf(0.95, n - 1) * found.se / (p * (1 - p))
    ends = [1 / (1 + np.exp(-(np.log(p / (1 - p)) + end))) for end in (-half, half)]
    assert [found.interval.low, found.interval.high] == pytest.approx(ends)
    assert (found.interval.level, found.n_groups, found.rare_labels, found.note) == (
        0.9,
        40,
        0,
        None,
    )
    weights = next(group_weights(n, 3, np.random.default_rng(4)))
    drawn = document_interval(counts, "micro", draws=3, seed=4)
    assert (drawn.method, drawn.se) == (
        "bootstrap",
        pytest.approx((weights @ right / n).std(ddof=1)),
    )
    for share in (0, 1):
        sure = np.full((12, 1), share)
        found = document_interval(Counts.of(sure, 1 - sure, 1 - sure), "micro")
        assert (found.interval.low, found.interval.high) == (share, share)
        assert "25.0% of documents" in found.note


def test_labels_in_fewer_than_ten_groups_are_rare():
    gold = np.zeros((20, 4), dtype=int)
    gold[:10, 0] = gold[:9, 1] = 1
    none = np.zeros_like(gold)
    said = none.copy()
    said[0, 2] = 1  # no gold, predicted once; the fourth label is nowhere
    counts = Counts.of(gold, said, none)
    micro = 2 * 19 / (2 * 19 + 1)
    for average, rare, score in (
        ("macro", 1, 1),
        ("macro_all", 2, 1 / 2),
        ("weighted", 1, 1),
        ("micro", 0, micro),
    ):
        found = document_interval(counts, average, draws=10)
        assert found.score == pytest.approx(score)
        assert (found.rare_labels, found.method) == (rare, "jackknife" if rare else "bootstrap")
        assert ("fewer than 10 groups" in (found.note or "")) == bool(rare)


@pytest.mark.parametrize("average", AVERAGES)
def test_what_a_draw_does_not_hold_keeps_its_value(average):
    """Label B stands in document 2 alone, document 3 is empty: draws without them, by hand."""
    tp = np.array([[[2, 0], [1, 0], [0, 3], [0, 0]], [[1, 0], [0, 0], [0, 1], [0, 0]]])
    fp = np.array([[[1, 0], [0, 0], [0, 1], [0, 0]], [[0, 0], [3, 0], [0, 0], [0, 0]]])
    gold = np.array([[2, 0], [1, 0], [0, 4], [0, 0]])
    counts = Counts.of(tp, fp, gold - tp)
    full = [[2 * 3 / (3 + 4), 2 * 3 / (4 + 4)], [2 * 1 / (3 + 4), 2 * 1 / (4 + 1)]]
    whole = f1_scores(counts, average)
    # all of document 3; all but document 2; all but document 3
    draws = score_draws(
        counts, np.array([[0, 0, 0, 4], [2, 1, 0, 1], [1, 1, 2, 0]], dtype=np.float32), average
    )
    assert draws[0] == pytest.approx(whole)
    for seed, (a, b) in enumerate(full):
        twice = [(2 * 2 + 1, 2 * 1 + 0), (2 * 1 + 0, 0 + 3)][seed]
        first = 2 * twice[0] / (2 * 2 + 1 + sum(twice))
        once = {
            "macro": (first + b) / 2,
            "macro_all": (first + b) / 2,
            "micro": first,
            "weighted": first,
        }
        assert draws[1, seed] == pytest.approx(once[average])
        both = {"macro": (a + b) / 2, "macro_all": (a + b) / 2, "weighted": (3 * a + 8 * b) / 11}
        pooled = [2 * (3 + 6) / (3 + 4 + 8 + 8), 2 * (1 + 2) / (3 + 4 + 8 + 2)][seed]
        assert draws[2, seed] == pytest.approx(both.get(average, pooled))
    # leaving out document 2 leaves label A, whose value is that of documents 0 and 1 once each
    left = leave_one_out(counts, average)
    for seed, (a, b) in enumerate(full):
        assert left[2, seed] == pytest.approx({"micro": a, "weighted": a}.get(average, (a + b) / 2))
    assert left[3] == pytest.approx(whole)
    alone = Counts.of(tp[:, 1:3, :1], fp[:, 1:3, :1], (gold - tp)[:, 1:3, :1])
    assert leave_one_out(alone, average)[0] == pytest.approx(f1_scores(alone, average))


def test_sums_beyond_what_a_float32_counts_stay_exact():
    big = 2**23 - 1
    tp = np.array([[[big], [big], [big], [1]]])
    fp = np.array([[[0], [1], [0], [2]]])
    right = 3 * big + 1
    for weights, errors in (([1, 1, 1, 1], 3), ([0, 2, 1, 1], 4)):
        (draw,) = score_draws(
            Counts.of(tp, fp, 0 * tp), np.array([weights], dtype=np.float32), "micro"
        )
        assert draw.tolist() == [2 * right / (2 * right + errors)]
