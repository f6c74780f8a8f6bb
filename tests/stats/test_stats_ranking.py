"""Tie groups, corrected pairs, ranks and the hierarchical draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from biobench.stats import (
    Estimand,
    StatsInputError,
    SuiteDraws,
    TaskRuns,
    compare_many,
    compare_suite,
    document_pools,
    f1_scores,
    holm,
    letter_groups,
    letters,
    rank_intervals,
    score_pool,
    suite_draws,
)
from tests.helpers.stats_simulation import Population, one_task


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 9))
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return count, set(chosen)


@given(graphs())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_items_share_a_letter_exactly_when_not_different(graph):
    count, different = graph
    groups = letter_groups(count, different)
    for i in range(count):
        assert any(i in group for group in groups)
        for j in range(i + 1, count):
            assert any(i in g and j in g for g in groups) == ((i, j) not in different)
    assert groups == sorted(groups)
    for group in groups:
        assert all(
            any(k != i and (min(i, k), max(i, k)) in different for i in group) for k in {*range(count)} - {*group}
        )
        # some pair of each group stands together nowhere else
        others = [set(other) for other in groups if other != group]
        assert any(not any({i, j} <= other for other in others) for i in group for j in group)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(0, 12))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_models_told_apart_by_their_distance_share_letters_in_runs_of_the_table(scores, least):
    ordered = sorted(scores, reverse=True)
    apart = [(i, j) for i, a in enumerate(ordered) for j, b in enumerate(ordered) if i < j and a - b > least]
    for group in letter_groups(len(ordered), apart):
        assert list(group) == list(range(group[0], group[-1] + 1))


def test_letters_of_an_overlapping_middle():
    assert letters(3, [(0, 2)]) == ("a", "ab", "b")
    assert letters(2, []) == ("a", "a")
    chain = [(i, j) for i in range(30) for j in range(i + 1, 30)]
    many = letters(30, chain)
    assert (many[0], many[25], many[26], many[29]) == ("a", "z", "aa", "ad")
    with pytest.raises(StatsInputError):
        letters(2, [(0, 2)])


def made_scores(models: int = 5, tasks: int = 8, seeds: int = 5):
    rng = np.random.default_rng(30)
    base = (
        rng.normal(0, 1, (1, tasks, 1))
        + 5.0 * np.arange(models)[:, None, None] * (np.arange(models) != 1)[:, None, None]
    )
    return base + rng.normal(0, 1, (models, tasks, seeds))


def test_pairs_are_corrected_over_those_shown():
    scores, names = made_scores(), list("abcde")
    everything = compare_many(scores, names)
    assert len(everything.pairs) == 10
    raw = [compare_suite(scores[names.index(p.first)], scores[names.index(p.second)]).test.p for p in everything.pairs]
    assert [p.p_holm for p in everything.pairs] == pytest.approx(holm(raw))
    assert [(s.model, s.ties) for s in everything.standings] == [
        ("e", "a"),
        ("d", "b"),
        ("c", "c"),
        *[(s.model, "d") for s in everything.standings[3:]],
    ]
    few = compare_many(scores, names, pairs=[("e", "d"), ("e", "c")])
    assert [p.p_holm for p in few.pairs] == pytest.approx(holm([p.comparison.test.p for p in few.pairs]))
    assert all(s.ties is None for s in few.standings)
    assert few.notes
    with pytest.raises(StatsInputError, match="repeats"):
        compare_many(scores, names, pairs=[("e", "d"), ("d", "e")])


def test_standings_weigh_corpora_not_tasks():
    scores = [[[3.0], [3.0], [1.0]], [[2.0], [2.0], [5.0]]]
    result = compare_many(scores, ["a", "b"], clusters=["x", "x", "y"])
    best, other = result.standings
    assert (best.model, best.score, best.rank, best.mean_rank) == ("b", 3.5, 1, 1.5)
    assert (other.score, other.task_mean, other.mean_rank) == (2.0, pytest.approx(7 / 3), 1.5)


def suite(models=3, seeds=4, groups=50):
    population = Population(np.array([0.5, 0.4]), np.linspace(0.5, 0.9, models)[:, None] * np.ones(2), seed_sd=0.02)
    rng = np.random.default_rng(31)
    ids = [f"d{i}" for i in range(groups)]
    for task, cluster in (("t1", "x"), ("t2", "x"), ("t3", "y")):
        counts = population.sample(groups, population.run_recalls(seeds, rng), rng)
        yield one_task(task, counts, cluster, ids)


def test_hierarchical_draws_are_centred_and_rank_the_models():
    pools = document_pools(suite(), document_draws=400)
    expected = np.mean(
        [
            np.mean([[f1_scores(m, "macro").mean() for m in t.models] for t in members], axis=0)
            for members in (list(suite())[:2], list(suite())[2:])
        ],
        axis=0,
    )
    spread = {}
    for estimand in (Estimand.THESE_TASKS, Estimand.TASKS_LIKE_THESE):
        drawn = suite_draws(pools, estimand=estimand, draws=3000)
        np.testing.assert_allclose(drawn.estimate, expected)
        np.testing.assert_allclose(drawn.draws.mean(axis=0), expected, atol=0.01)
        spread[estimand] = drawn.draws.std(axis=0)
        ranks = rank_intervals(drawn, ["low", "middle", "high"])
        assert [r.rank for r in ranks] == [3, 2, 1]
        # two clusters leave every rank open for other tasks, as a t with one degree of freedom does
        open_ranks = [(1, 3)] * 3 if estimand is Estimand.TASKS_LIKE_THESE else [(3, 3), (2, 2), (1, 1)]
        assert [(r.low, r.high) for r in ranks] == open_ranks
        assert {r.estimand for r in ranks} == {estimand}
    assert (spread[Estimand.TASKS_LIKE_THESE] > spread[Estimand.THESE_TASKS]).all()
    again = suite_draws(document_pools(suite(), document_draws=400), draws=3000)
    np.testing.assert_array_equal(again.draws, drawn.draws)


def test_tasks_on_the_same_documents_are_drawn_together():
    first, second, third = suite()
    same = TaskRuns.of("copy", first.models, "macro", cluster="x", groups=first.groups)
    a, b = document_pools([first, same], document_draws=50)
    np.testing.assert_array_equal(a.scores, b.scores)
    elsewhere = TaskRuns.of("copy", first.models, "macro", cluster="x")
    a, b = document_pools([first, elsewhere], document_draws=50)
    assert (a.scores != b.scores).any()
    with pytest.raises(StatsInputError, match="came up before") as caught:
        document_pools([first, third, second], document_draws=5)
    assert "'x'" in str(caught.value)


def test_seed_variance_of_the_draws_is_that_of_the_mean():
    """n - 1 of n seeds: the bootstrap variance of a mean of 5 is s²/5, not four fifths of it."""
    x = np.random.default_rng(32).normal(size=5)
    pool = score_pool("t", [x.tolist(), [0.0] * 5])
    drawn = suite_draws([pool], estimand=Estimand.THESE_TASKS, draws=40_000)
    assert drawn.draws[:, 0].var() == pytest.approx(x.var(ddof=1) / 5, rel=0.05)


def test_unpaired_seeds_may_differ_in_number():
    with pytest.raises(StatsInputError, match="seeds"):
        score_pool("t", [[1.0, 2.0], [1.0]])
    pool = score_pool("t", [[1.0, 2.0, 3.0], [10.0]], paired_seeds=False)
    drawn = suite_draws([pool], estimand=Estimand.THESE_TASKS, draws=500)
    assert drawn.estimate.tolist() == [2.0, 10.0]
    assert (drawn.draws[:, 1] == 10).all()
    assert drawn.draws[:, 0].mean() == pytest.approx(2.0, abs=0.1)


def drawn(gaps, clusters, estimand=Estimand.TASKS_LIKE_THESE):
    """Draws of two models whose difference is 1 on the whole and each of these in the draws."""
    draws = np.array([[gap, 0.0] for gap in gaps])
    return SuiteDraws(np.array([1.0, 0.0]), draws, estimand, clusters)


@pytest.mark.parametrize(("below", "last"), [(24, 1), (25, 1), (26, 2), (976, 2)])
def test_rank_intervals_leave_out_a_fortieth_on_each_side(below, last):
    held = drawn([-0.5] * below + [1.0] * (1000 - below), 5, Estimand.THESE_TASKS)
    first, second = rank_intervals(held, ["a", "b"])
    best = 1 if below < 975 else 2
    assert (first.rank, first.low, first.high, first.best) == (1, best, last, pytest.approx(1 - below / 1000))
    assert (second.rank, second.low, second.high, second.best) == (2, 3 - last, 3 - best, pytest.approx(below / 1000))
    assert (first.score, first.level, first.model) == (1.0, 0.95, "a")


@pytest.mark.parametrize("clusters", [2, 3, 8])
def test_draws_of_few_corpora_are_stretched_to_the_t(clusters):
    """A tenth of the draws lies so far below that, stretched, they just reach equal scores or just do not."""
    stretch = stats.t.ppf(0.975, clusters - 1) / (1 if clusters == 2 else stats.norm.ppf(0.975))
    for share, last in ((1.01, 2), (0.99, 1)):
        held = drawn([1 - share / stretch] * 100 + [1.0] * 900, clusters)
        assert rank_intervals(held)[0].high == last
    assert rank_intervals(drawn([0.01] * 100 + [1.0] * 900, 1))[0].high == 1


def test_one_corpus_is_drawn_as_it_is():
    pools = [score_pool(task, [[2.0], [1.0]], cluster="x") for task in ("t1", "t2")]
    held = suite_draws(pools, draws=50)
    assert (held.clusters, held.estimate.tolist()) == (1, [2.0, 1.0])
    assert [(r.low, r.high) for r in rank_intervals(held)] == [(1, 1), (2, 2)]
    assert [pool.cluster for pool in pools] == ["x", "x"]
    assert score_pool("t", [[2.0]]).cluster == "t"


def test_variance_between_corpora_is_that_of_the_mean():
    """n - 1 of n corpora are drawn, and of the tasks within them: the variance of the mean of the suite is s²/n."""
    levels = np.random.default_rng(33).normal(size=6)
    pools = [score_pool(str(i), [[level], [0.0]]) for i, level in enumerate(levels)]
    held = suite_draws(pools, draws=40_000)
    assert held.draws[:, 0].mean() == pytest.approx(levels.mean(), abs=0.01)
    assert held.draws[:, 0].var() == pytest.approx(levels.var(ddof=1) / 6, rel=0.05)
    assert (held.draws[:, 1] == 0).all()
    one = suite_draws([score_pool(str(i), [[level]], cluster="x") for i, level in enumerate(levels)], draws=40_000)
    assert one.draws[:, 0].var() == pytest.approx(levels.var(ddof=1) / 6, rel=0.05)
