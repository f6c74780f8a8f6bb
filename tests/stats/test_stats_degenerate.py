"""Identical models, oracles, single seeds, tasks, clusters, documents: defined answers, never NaN."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from biobench.stats import (
    Counts,
    Estimand,
    StatsInputError,
    compare_many,
    compare_seeds,
    compare_suite,
    compare_task,
    document_interval,
    document_pools,
    mcnemar,
    mean_test,
    rank_intervals,
    score_pool,
    seed_interval,
    suite_draws,
    within_tasks,
    within_tasks_seeds,
)
from biobench.stats.means import t_from_se
from tests.helpers.stats_simulation import Population, one_task


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


def oracle_and_floor(groups: int = 60) -> tuple[Counts, Counts]:
    gold = runs(1, 3, groups)[0].gold
    seeds = np.broadcast_to(gold, (3, *gold.shape))
    nothing = np.zeros_like(seeds)
    return Counts.of(seeds, nothing, nothing), Counts.of(nothing, nothing, seeds)


def test_a_model_against_itself_on_a_task():
    a, b = runs(same=True)
    result = compare_task(a, b, "macro")
    assert result.difference == 0
    for part in (result.seeds.test, result.documents, result.total):
        assert part.p == 1.0
        assert (part.interval.low, part.interval.high) == (0.0, 0.0)
    assert result.detectable == 0.0
    seen = numbers([part.estimate for part in (result.seeds.test, result.documents, result.total)])
    assert len(seen) == 3
    assert all(map(math.isfinite, numbers(result)))


def test_a_model_against_itself_on_a_suite():
    scores = [[0.7, 0.71], [0.5, 0.52], [0.6, 0.6]]
    suite = compare_suite(scores, scores, clusters=["x", "x", "y"])
    assert (suite.difference, suite.test.p, suite.wilcoxon_p) == (0.0, 1.0, 1.0)
    assert (suite.wins, suite.ties, suite.losses) == (0, 3, 0)
    assert suite.improvement == pytest.approx(0.5, abs=0.13)
    assert suite.detectable == 0.0
    many = compare_many([scores] * 3, ["a", "b", "c"])
    assert {s.ties for s in many.standings} == {"a"}
    assert {s.rank for s in many.standings} == {1}
    assert {s.mean_rank for s in many.standings} == {2.0}
    assert {p.p_holm for p in many.pairs} == {1.0}
    draws = suite_draws([score_pool(str(i), [x, x, x]) for i, x in enumerate(scores)], draws=200)
    assert all((r.rank, r.low, r.high, r.best) == (1, 1, 3, 1.0) for r in rank_intervals(draws))
    # one task only: still no difference and p 1
    assert compare_suite([[0.7]], [[0.7]]).test.p == 1.0


def test_an_oracle_against_a_floor_is_certain():
    oracle, floor = oracle_and_floor()
    task = compare_task(oracle, floor, "macro")
    assert task.difference == 1.0
    for part in (task.seeds.test, task.documents, task.total):
        assert part.p == 0.0
        assert (part.interval.low, part.interval.high) == (1.0, 1.0)
    suite = compare_suite([[1.0] * 3] * 4, [[0.0] * 3] * 4)
    assert (suite.test.p, suite.wins, suite.improvement) == (0.0, 4, 1.0)
    uneven = compare_suite([[1.0] * 3] * 6, [[0.1], [0.3], [0.2], [0.05], [0.4], [0.15]])
    assert uneven.test.p < 1e-4
    many = compare_many([[[1.0]] * 6, [[x / 10] for x in range(6)]], ["oracle", "floor"])
    assert [(s.model, s.ties) for s in many.standings] == [("oracle", "a"), ("floor", "b")]
    pools = document_pools([one_task("t", [oracle, floor], "t", [str(i) for i in range(60)])])
    first, second = rank_intervals(suite_draws(pools, draws=100))
    assert (first.low, first.high, second.low, second.high) == (1, 1, 2, 2)


@pytest.mark.parametrize(("value", "p"), [(0.5, 0.0), (-0.5, 0.0), (0.0, 1.0)])
def test_equal_values_leave_no_doubt_whichever_their_sign(value, p):
    for found in (
        mean_test([value] * 4, estimand=Estimand.NEW_SEEDS),
        t_from_se(value, 0.0, 3.0, n=4, sd=0.0, estimand=Estimand.NEW_SEEDS),
    ):
        assert (found.n, found.estimate, found.sd, found.se, found.df, found.p) == (4, value, 0.0, 0.0, None, p)
        assert (found.interval.low, found.interval.high, found.interval.level) == (value, value, 0.95)
        assert found.note


def test_an_oracle_scores_one_in_every_draw_however_rare_the_labels():
    gold = np.eye(20, dtype=int)  # every label in one document
    none = np.zeros_like(gold)
    oracle = Counts.of(gold, none, none)
    for method in ("auto", "bootstrap", "jackknife"):
        summary = document_interval(oracle, "macro", method=method, draws=100)
        assert (summary.score, summary.interval.low, summary.interval.high) == (1.0, 1.0, 1.0)
        assert "15.0% of documents" in summary.note


def test_one_seed_gives_no_interval_and_says_so():
    summary = seed_interval([0.7])
    assert (summary.n, summary.sd, summary.interval) == (1, None, None)
    assert "one value" in summary.note
    a, b = runs(seeds=1)
    task = compare_task(a, b, "macro")
    assert task.seeds.test.p is None
    assert task.total is None
    assert task.documents.interval is not None
    assert any("one seed" in note for note in task.notes)


def test_one_seed_each_with_equal_scores_is_not_taken_for_no_seed_noise():
    tp = np.array([[1, 0, 1, 0] * 10]).T
    a, b = Counts.of(tp, 1 - tp, 1 - tp), Counts.of(1 - tp, tp, tp)
    task = compare_task(a, b, "micro")
    assert task.difference == 0
    assert task.documents.se > 0
    assert task.total is None


@pytest.mark.parametrize("resolution", [0.0, 0.01])
def test_equal_seeds_give_no_interval_and_say_so(resolution):
    """An interval of no width, or of the width of rounding, would be read as certainty."""
    summary = seed_interval([0.7, 0.7, 0.7], resolution=resolution)
    assert (summary.n, summary.mean, summary.sd, summary.interval) == (3, pytest.approx(0.7), 0.0, None)
    assert "unknown" in summary.note


def test_one_cluster_has_no_suite_test():
    suite = compare_suite([[0.7], [0.8]], [[0.6], [0.6]], clusters=["x", "x"])
    assert suite.difference == pytest.approx(0.15)
    assert suite.test.interval is suite.test.p is suite.wilcoxon_p is suite.detectable is None
    many = compare_many([[[0.7]], [[0.6]]], ["a", "b"])
    assert many.pairs[0].p_holm is None
    assert not many.pairs[0].different
    assert [s.ties for s in many.standings] == [None, None]  # a tie that no test has shown
    assert "tie groups" in many.notes[0]
    draws = suite_draws([score_pool("t", [[0.7], [0.6]])], draws=10)
    assert np.isfinite(draws.draws).all()


def test_one_group_of_documents_has_no_document_interval():
    a, b = (Counts.of(c.tp[:, :1], c.fp[:, :1], c.fn[:, :1]) for c in runs())
    one = document_interval(a, "micro", evaluated=[True] * 3)
    assert (one.interval, one.n_groups) == (None, 1)
    assert "nothing to resample" in one.note
    task = compare_task(a, b, "micro", evaluated=[True] * 3)
    assert task.documents is task.total is None
    within = within_tasks([one_task("t", [a, b], "t", ["d"])])
    assert within.se_documents is None
    assert within.test.estimand is Estimand.THESE_TEST_SETS


def test_rounded_scores_that_agree_by_rounding_are_no_proof():
    first, second = [[70.1], [60.1]], [[70.0], [60.0]]
    assert compare_suite(first, second).test.p == 0.0
    assert compare_suite(first, second, resolution=0.1).test.p > 0.1
    # but a real gulf survives it
    assert compare_suite([[100.0]] * 4, [[0.0]] * 4, resolution=0.1).test.p < 1e-9


def test_published_means_have_no_within_task_part():
    within = within_tasks_seeds([[70.0], [60.0]], [[69.0], [61.0]])
    assert within.test is None
    assert any("published" in note for note in within.notes)


def test_identical_models_within_tasks():
    a, b = runs(same=True)
    names = [str(i) for i in range(60)]
    within = within_tasks([one_task("t", [a, b], "t", names)])
    assert within.test.p == 1.0
    assert within.test.interval.half_width == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: seed_interval([0.5, float("nan")]), "value 1 is nan"),
        (lambda: seed_interval([]), "0 values"),
        (lambda: seed_interval([[0.5]]), "2 dimensions"),
        (lambda: seed_interval([0.5, 0.6], level=95), "level 95"),
        (lambda: compare_seeds([1, 2], [1, 2, 3]), "cannot be paired"),
        (lambda: compare_suite([[1.0]], [[1.0], [2.0]]), "1 and 2 tasks"),
        (lambda: compare_suite([[1.0]], [[2.0]], rope=-1), "rope"),
        (lambda: compare_suite([], []), "no task"),
        (lambda: compare_suite([[1.0]], [[1.0]], clusters=["a", "b"]), "2 names"),
        (lambda: mcnemar([True], [True, False]), "shapes"),
        (lambda: Counts.of([[1]], [[-1]], [[0]]), "-1"),
        (lambda: Counts.of([[1, 2]], [[3, -1]], [[0, 0]]), "fp holds -1"),
        (lambda: Counts.of([[0.5]], [[1]], [[0]]), "no whole numbers"),
        (lambda: Counts.of([1], [1], [0]), "shape"),
        (lambda: Counts.of([[1]], [[1, 2]], [[0]]), "differ"),
        (lambda: Counts.of([[[1]], [[1]]], [[[0]], [[0]]], [[[0]], [[1]]]), "gold"),
        (lambda: document_interval(Counts.of([[0]], [[1]], [[0]]), "macro"), "no label has gold"),
        (lambda: document_interval(runs()[0], "mean"), "unknown average"),
        (lambda: document_interval(runs()[0], "macro", method="normal"), "unknown method"),
        (lambda: compare_many([[[1.0]], [[2.0]]], ["a", "a"]), "one name"),
        (lambda: compare_many([[[1.0]], [[2.0]]], ["a", "b"], pairs=[("a", "c")]), "no model 'c'"),
        (lambda: suite_draws([]), "no task"),
        (lambda: mean_test([np.inf], estimand=Estimand.NEW_SEEDS), "inf"),
    ],
)
def test_bad_input_is_refused_with_a_hint(call, words):
    with pytest.raises(StatsInputError, match=words) as caught:
        call()
    assert caught.value.hint


def test_runs_on_other_gold_or_with_other_seeds_are_refused():
    a, b = runs()
    other = runs(groups=61)[0]
    with pytest.raises(StatsInputError, match="other gold"):
        compare_task(a, other, "macro")
    fewer = Counts.of(b.tp[:2], b.fp[:2], b.fn[:2])
    with pytest.raises(StatsInputError, match="model 2 has 2 seeds, model 1 has 3"):
        compare_task(a, fewer, "macro")
    unpaired = compare_task(a, fewer, "macro", paired_seeds=False)
    assert unpaired.total.interval is not None
