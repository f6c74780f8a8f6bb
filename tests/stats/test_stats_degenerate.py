"""Identical models, oracles, single seeds, tasks, clusters, documents: defined answers, never
NaN."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from biobench.stats import (
    Counts,
    Estimand,
    StatsInputError,
    TaskRuns,
    compare_seeds,
    document_interval,
    equivalent,
    holm,
    mean_test,
    possible_ranks,
    seed_interval,
    t_from_se,
    tasks_like_these,
    these_tasks,
)
from tests.helpers.stats_simulation import Population, compare_counts, one_task


def numbers(value):
    """All floats in nested results."""
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, list | tuple):
        return [x for item in value for x in numbers(item)]
    return [value] if isinstance(value, float) else []


def runs(models: int = 2, seeds: int = 3, groups: int = 60, same: bool = False) -> list[Counts]:
    recalls = np.full((models, 3), 0.7) + (0 if same else 0.1 * np.arange(models)[:, None])
    population = Population(np.array([0.5, 0.4, 0.3]), recalls, seed_sd=0.03)
    rng = np.random.default_rng(11)
    counts = population.sample(groups, population.run_recalls(seeds, rng), rng)
    return [counts[0]] * models if same else counts


NAMES = [str(i) for i in range(60)]


@pytest.mark.parametrize(("value", "p"), [(0.5, 0.0), (-0.5, 0.0), (0.0, 1.0)])
def test_equal_values_leave_no_doubt_whichever_their_sign(value, p):
    for found in (
        mean_test([value] * 4, estimand=Estimand.NEW_SEEDS),
        t_from_se(value, 0.0, 3.0, n=4, sd=0.0, estimand=Estimand.NEW_SEEDS),
    ):
        assert (found.n, found.estimate, found.sd, found.se, found.df, found.p) == (
            4,
            value,
            0.0,
            0.0,
            None,
            p,
        )
        assert (found.interval.low, found.interval.high, found.interval.level) == (
            value,
            value,
            0.95,
        )
        assert found.note


def test_an_oracle_scores_one_in_every_draw_however_rare_the_labels():
    gold = np.eye(20, dtype=int)  # every label in one document
    none = np.zeros_like(gold)
    oracle = Counts.of(gold, none, none)
    summary = document_interval(oracle, "macro", draws=100)
    assert (summary.method, summary.score, summary.interval.low, summary.interval.high) == (
        "jackknife",
        1.0,
        1.0,
        1.0,
    )
    assert "15.0% of documents" in summary.note


def test_one_seed_gives_no_interval_and_says_so():
    summary = seed_interval([0.7])
    assert (summary.n, summary.sd, summary.interval) == (1, None, None)
    assert "one value" in summary.note
    found = compare_counts([one_task("t", runs(seeds=1), NAMES)])
    assert (found.seeds.p, found.seeds.interval) == (None, None)
    assert found.total.estimand is Estimand.THESE_RUNS


def test_one_seed_each_with_equal_scores_is_not_taken_for_no_seed_noise():
    tp = np.array([[1, 0, 1, 0] * 10]).T
    pair = [Counts.of(tp, 1 - tp, 1 - tp), Counts.of(1 - tp, tp, tp)]
    found = compare_counts([TaskRuns.of("t", pair, "micro")])
    assert found.seeds.estimate == 0
    assert (found.seeds.p, found.total.estimand) == (None, Estimand.THESE_RUNS)
    assert found.documents[0].variance > 0


@pytest.mark.parametrize("resolution", [0.0, 0.01])
def test_equal_seeds_give_no_interval_and_say_so(resolution):
    """An interval of no width, or of the width of rounding, would be read as certainty."""
    summary = seed_interval([0.7, 0.7, 0.7], resolution=resolution)
    assert (summary.n, summary.mean, summary.sd, summary.interval) == (
        3,
        pytest.approx(0.7),
        0.0,
        None,
    )
    assert "unknown" in summary.note


def test_one_corpus_says_nothing_of_other_tasks():
    beyond = tasks_like_these(np.array([0.1, 0.2]), ["x", "x"], None)
    assert beyond.estimate == pytest.approx(0.15)
    assert beyond.interval is beyond.p is None
    assert holm([None, None]) == (None, None)
    assert possible_ranks(2, []) == ((1, 2), (1, 2))


def test_one_group_of_documents_has_no_document_interval():
    pair = [Counts.of(c.tp[:, :1], c.fp[:, :1], c.fn[:, :1]) for c in runs()]
    one = document_interval(pair[0], "micro", evaluated=[True] * 3)
    assert (one.interval, one.n_groups) == (None, 1)
    assert "nothing to resample" in one.note
    found = compare_counts([TaskRuns.of("t", pair, "micro", evaluated=[True] * 3)])
    assert found.documents == (None,)
    assert found.total.estimand is Estimand.THESE_TEST_SETS


def test_rounded_scores_that_agree_by_rounding_are_no_proof():
    gaps = np.array([0.1, 0.1])
    assert tasks_like_these(gaps, ["a", "b"], None).p == 0.0
    assert tasks_like_these(gaps, ["a", "b"], None, resolution=0.1).p > 0.1
    # but a real gulf survives it
    assert tasks_like_these(np.full(4, 100.0), list("abcd"), None, resolution=0.1).p < 1e-9


def test_published_means_are_not_tested_on_these_tasks():
    assert these_tasks([[70.0], [60.0]], [[69.0], [61.0]]).test is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: seed_interval([0.5, float("nan")]), "value 1 is nan"),
        (lambda: seed_interval([]), "0 values"),
        (lambda: seed_interval([[0.5]]), "2 dimensions"),
        (lambda: seed_interval([0.5, 0.6], level=95), "level 95"),
        (lambda: compare_seeds([1, 2], [1, 2, 3]), "cannot be paired"),
        (lambda: these_tasks([[1.0]], [[1.0], [2.0]]), "1 and 2 tasks"),
        (lambda: these_tasks([], []), "0 and 0 tasks"),
        (lambda: holm([0.1, 1.5]), "not between 0 and 1"),
        (lambda: equivalent(mean_test([0.1, 0.2], estimand=Estimand.NEW_SEEDS), 0.0), "margin"),
        (lambda: Counts.of([[1]], [[-1]], [[0]]), "-1"),
        (lambda: Counts.of([[1, 2]], [[3, -1]], [[0, 0]]), "fp holds -1"),
        (lambda: Counts.of([[0.5]], [[1]], [[0]]), "no whole numbers"),
        (lambda: Counts.of([1], [1], [0]), "shape"),
        (lambda: Counts.of([[1]], [[1, 2]], [[0]]), "differ"),
        (lambda: Counts.of([[[1]], [[1]]], [[[0]], [[0]]], [[[0]], [[1]]]), "gold"),
        (lambda: document_interval(Counts.of([[0]], [[1]], [[0]]), "macro"), "no label has gold"),
        (lambda: document_interval(runs()[0], "mean"), "unknown average"),
        (lambda: mean_test([np.inf], estimand=Estimand.NEW_SEEDS), "inf"),
    ],
)
def test_bad_input_is_refused_with_a_hint(call, words):
    with pytest.raises(StatsInputError, match=words) as caught:
        call()
    assert caught.value.hint


def test_runs_on_other_gold_or_with_other_seeds_are_refused():
    a, b = runs()
    with pytest.raises(StatsInputError, match="other gold"):
        TaskRuns.of("t", [a, runs(groups=61)[0]], "macro")
    for ids, said in (
        ([*range(59)], "59 group ids .59 distinct. for 60"),
        ([0, *range(59)], "60 group ids .59 distinct."),
    ):
        with pytest.raises(StatsInputError, match=said):
            TaskRuns.of("t", [a], "macro", groups=[str(i) for i in ids])
    fewer = Counts.of(b.tp[:2], b.fp[:2], b.fn[:2])
    with pytest.raises(StatsInputError, match="3 and 2 seeds cannot be paired"):
        compare_counts([one_task("t", [a, fewer], NAMES)])
    assert (
        compare_counts([one_task("t", [a, fewer], NAMES)], paired=False).total.interval is not None
    )
