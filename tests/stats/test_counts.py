"""F1 from counts: worked numbers of the metric contract; tests/score holds them to scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import Counts, StatsInputError, f1_scores

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
    ],
)
def test_bad_counts_are_refused_with_a_hint(call, words):
    with pytest.raises(StatsInputError, match=words) as caught:
        call()
    assert caught.value.hint
