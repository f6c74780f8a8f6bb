"""F1 from counts: worked numbers of the metric contract, and equality with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from biobench.stats import Counts, StatsInputError, f1_scores
from biobench.stats.counts import check_average
from tests.helpers.stats_simulation import Population

AVERAGES = ("macro", "macro_all", "micro", "weighted")


def worked() -> Counts:
    """Labels A, B, C; gold A A B; predicted A B C: one document each."""
    tp = [[[1, 0, 0], [0, 0, 0], [0, 0, 0]]]
    fp = [[[0, 0, 0], [0, 1, 0], [0, 0, 1]]]
    fn = [[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]
    return Counts.of(tp, fp, fn)


@pytest.mark.parametrize(
    ("average", "value"),
    [("macro", 1 / 3), ("macro_all", 2 / 9), ("micro", 1 / 3), ("weighted", 4 / 9)],
)
def test_the_worked_numbers_of_the_metric_contract(average, value):
    assert f1_scores(worked(), average)[0] == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("tp", "fp", "scores"),
    [
        ([[1, 0], [0, 0]], [[0, 0], [0, 1]], [1, 1 / 2, 2 / 3, 1]),
        ([[0, 0]], [[0, 1]], [0, 0, 0, 0]),
        ([[0, 0]], [[0, 0]], [0, 0, 0, 0]),
    ],
    ids=["one gold mention", "none", "none and no answer"],
)
def test_one_gold_mention_or_none(tp, fp, scores):
    counts = Counts.of([tp], [fp], np.zeros_like([tp]), [True, scores[0] == 0])
    assert [f1_scores(counts, average)[0] for average in AVERAGES] == pytest.approx(scores)


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Counts.of([1], [1], [0]), "shapes"),
        (lambda: Counts.of([[[1]]], [[[1, 2]]], [[[0]]]), "shapes"),
        (
            lambda: Counts.of([[[1]], [[1]]], [[[0]], [[0]]], [[[0]], [[1]]]),
            "differs between seeds",
        ),
        (lambda: Counts.of([[[0]]], [[[1]]], [[[0]]]), "no label has gold"),
        (lambda: check_average("mean"), "unknown average"),
    ],
)
def test_bad_counts_are_refused_with_a_hint(call, words):
    with pytest.raises(StatsInputError, match=words) as caught:
        call()
    assert caught.value.hint
