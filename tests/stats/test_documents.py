"""Noise over documents: the jackknife against recomputation, and tasks that share documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from biobench.stats import (
    Counts,
    Noise,
    StatsInputError,
    document_interval,
    document_noise,
    f1_scores,
    left_out,
)
from biobench.stats.documents import UNMOVED
from biobench.stats.jackknife import interaction_variance, jackknife_se, leave_one_out
from tests.helpers.stats_simulation import Population, left_out_of

AVERAGES = ("macro", "macro_all", "micro", "weighted")


def simulated(groups: int = 40, seed: int = 5, seeds: int = 3) -> list[Counts]:
    """Two models."""
    rng = np.random.default_rng(seed)
    both = Population(np.array([0.5, 0.3]), np.array([[0.8, 0.7], [0.6, 0.6]]), seed_sd=0.05)
    return both.sample(groups, both.run_recalls(seeds, rng), rng)


def fewer(counts: Counts, kept: np.ndarray) -> Counts:
    """These documents alone."""
    tables = counts.tp[:, kept], counts.fp[:, kept], counts.fn[:, kept]
    return Counts.of(*tables, counts.evaluated)


@pytest.mark.parametrize("average", AVERAGES)
def test_leave_one_out_equals_naive_recomputation(average):
    counts = simulated(groups=12, seeds=2)[0]
    without = leave_one_out(counts, average)
    for group in range(12):
        expected = f1_scores(fewer(counts, np.arange(12) != group), average)
        np.testing.assert_allclose(without[group], expected)


@pytest.mark.parametrize("average", AVERAGES)
def test_a_label_that_the_rest_does_not_hold_keeps_its_value(average):
    """Label B stands in document 2 alone, document 3 is empty."""
    tp = np.array([[[2, 0], [1, 0], [0, 3], [0, 0]]])
    fp = np.array([[[1, 0], [0, 0], [0, 1], [0, 0]]])
    fn = np.array([[[0, 0], [0, 0], [0, 1], [0, 0]]])
    counts = Counts.of(tp, fp, fn)
    a, b = 2 * 3 / (3 + 4), 2 * 3 / (4 + 4)
    without = leave_one_out(counts, average)
    expected = {"micro": a, "weighted": a}.get(average, (a + b) / 2)
    assert without[2, 0] == pytest.approx(expected)
    assert without[3] == pytest.approx(f1_scores(counts, average))


def test_jackknife_of_a_mean_is_its_standard_error():
    x = np.random.default_rng(0).normal(size=30)
    assert jackknife_se((x.sum() - x) / 29) == pytest.approx(x.std(ddof=1) / np.sqrt(30))


@pytest.mark.parametrize(("seeds", "documents"), [(2, 9), (3, 2), (2, 2), (5, 30)])
def test_the_interaction_of_a_mean_is_its_residual_mean_square(seeds, documents):
    x = np.random.default_rng(seeds).normal(size=(seeds, documents))
    without = ((x.sum(axis=1, keepdims=True) - x) / (documents - 1)).T
    rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
    expected = (rest**2).sum() / ((seeds - 1) * (documents - 1)) / x.size
    assert interaction_variance(without) == pytest.approx(expected)
    assert interaction_variance(without[:1]) == interaction_variance(without[:, :1]) == 0


def macro_without(counts: Counts, kept: np.ndarray) -> float:
    """Macro F1 of these documents, mean over seeds, by scikit-learn."""
    gold = counts.gold[kept]
    predicted = (counts.tp + counts.fp)[:, kept]
    return float(np.mean([f1_score(gold, one, average="macro") for one in predicted]))


def test_tasks_that_share_a_part_of_their_documents():
    """Two tasks on 40 and 30 documents, 20 of them shared: each document is left out of both at
    once.
    """
    names = [[f"d{i}" for i in range(40)], [f"d{i}" for i in range(20, 50)]]
    models = [simulated(40, 43), simulated(30, 44)]
    gaps_without = []
    for document in sorted(set(names[0]) | set(names[1])):
        gaps = []
        for pair, ids in zip(models, names, strict=True):
            kept = np.array([name != document for name in ids])
            gaps.append(macro_without(pair[0], kept) - macro_without(pair[1], kept))
        gaps_without.append(np.mean(gaps))
    spread = np.array(gaps_without) - np.mean(gaps_without)
    sides = [
        [left_out(pair[m], "macro", groups=ids) for pair, ids in zip(models, names, strict=True)]
        for m in (0, 1)
    ]
    noise = document_noise(*sides)
    assert noise.part[0] == pytest.approx(49 / 50 * (spread**2).sum())
    assert noise.part[1] == 49


def test_two_tasks_on_one_set_of_documents_are_no_more_evidence_than_one():
    first, second = (left_out_of(counts) for counts in simulated(100))
    once = document_noise([first], [second])
    twice = document_noise([first, first], [second, second])
    assert twice.part[0] == pytest.approx(once.part[0])
    others = [left_out_of(counts, corpus="other ") for counts in simulated(100)]
    apart = document_noise([first, others[0]], [second, others[1]])
    assert apart.part[0] == pytest.approx(once.part[0] / 2, rel=0.02)


def test_the_noise_of_one_model_is_that_against_a_constant():
    first, _ = (left_out_of(counts) for counts in simulated(60))
    alone = document_noise([first])
    assert alone.part[0] == pytest.approx(jackknife_se(first.without.mean(axis=1)) ** 2)


def test_groups_that_change_nothing_are_no_certainty():
    """Two standard errors are what a sign test leaves open: all right against all wrong on 5
    documents may be chance (p = 0.0625), on 6 it is not (0.031).
    """
    for groups, is_shown in ((3, False), (5, False), (6, True)):
        right = np.ones((1, groups, 1), dtype=int)
        none = np.zeros_like(right)
        best = left_out_of(Counts.of(right, none, none))
        worst = left_out_of(Counts.of(none, right, right))
        noise = document_noise([best], [worst])
        assert math.sqrt(noise.part[0]) == pytest.approx(UNMOVED / groups)
        p = Noise("documents", math.sqrt(noise.part[0]), noise.part[1]).p_beyond(1.0)
        assert (2 * p < 0.05) == is_shown == (2 * 0.5**groups < 0.05)


def test_order_and_names_of_documents_change_nothing():
    first, second = simulated(60)
    order = np.random.default_rng(1).permutation(60)
    ids = [f"d{i}" for i in range(60)]
    renamed = [f"x{i}" for i in order]
    before = document_noise(*([left_out(c, "macro", groups=ids)] for c in (first, second)))
    shuffled = [[left_out(fewer(c, order), "macro", groups=renamed)] for c in (first, second)]
    after = document_noise(*shuffled)
    assert after.part[0] == pytest.approx(before.part[0], rel=1e-12)
    assert after.in_seeds == pytest.approx(before.in_seeds, rel=1e-12)


def test_other_documents_and_ids_that_do_not_fit_are_refused():
    first, second = simulated(60)
    with pytest.raises(StatsInputError, match="scored on other documents"):
        document_noise([left_out_of(first)], [left_out_of(second, corpus="x")])
    for ids, words in (
        ([*range(59)], "59 group ids .59 distinct. for 60"),
        ([0, *range(59)], "60 group ids .59 distinct."),
    ):
        with pytest.raises(StatsInputError, match=words):
            left_out(first, "macro", groups=[str(i) for i in ids])


def test_the_document_interval_is_a_t_on_the_logit():
    right = np.random.default_rng(8).random(40) < 0.85
    tp = right.astype(int)[None, :, None]
    p, n = right.mean(), right.size
    interval = document_interval(Counts.of(tp, 1 - tp, 1 - tp), "micro")
    se = right.std(ddof=1) / np.sqrt(n)
    half = stats.t.ppf(0.975, n - 1) * se / (p * (1 - p))
    ends = [1 / (1 + np.exp(-(np.log(p / (1 - p)) + end))) for end in (-half, half)]
    assert [interval.low, interval.high] == pytest.approx(ends)


@pytest.mark.parametrize(
    ("tp", "average"),
    [(np.ones((12, 1), int), "micro"), (np.zeros((12, 1), int), "micro"), (np.eye(20), "macro")],
    ids=["all right", "all wrong", "every label in one document"],
)
def test_a_score_that_no_document_changes_has_an_interval_of_no_width(tp, average):
    missed = 1 - tp if average == "micro" else 0 * tp
    interval = document_interval(Counts.of([tp], [missed], [missed]), average)
    assert interval.low == interval.high == tp[0, 0]


def test_one_group_of_documents_has_no_document_interval():
    counts = fewer(simulated(60)[0], np.arange(1))
    assert document_interval(counts, "micro") is None
    assert document_noise([left_out(counts, "micro", groups=["one"])]) is None
