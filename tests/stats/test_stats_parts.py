"""How the variances of seeds, documents and tasks add up: against sums written out, and documents
left out by one.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score
from statsmodels.stats.weightstats import ttost_paired

from biobench.stats import (
    Counts,
    Estimand,
    StatsInputError,
    TaskRuns,
    compare_seeds,
    document_noise,
    equivalent,
    failed_runs,
    mean_test,
    possible_ranks,
    redraw,
    seed_interval,
    t_from_se,
    tasks_like_these,
    these_tasks,
)
from biobench.stats.resample import interaction_variance
from biobench.stats.suite import crossed
from tests.helpers.stats_simulation import Population, compare_counts, one_task


def answers(right: np.ndarray) -> Counts:
    """Counts of one-label accuracy from (seeds, documents) of right answers: a miss is one fp and
    one fn.
    """
    tp = right.astype(int)[..., None]
    return Counts.of(tp, 1 - tp, 1 - tp)


def two_models(
    seeds: tuple[int, int] = (4, 4), documents: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, documents) of right answers of two models: hard documents and better seeds are
    shared.
    """
    rng = np.random.default_rng(41)
    hard = rng.normal(0, 1.2, documents)
    drift = rng.normal(0, 0.4, max(seeds))
    found = []
    for gain, count in zip((1.0, 0.4), seeds, strict=True):
        score = (
            gain
            + hard
            + drift[:count, None]
            + rng.normal(0, 0.6, documents)
            + rng.normal(0, 0.4, (count, 1))
        )
        found.append(rng.random((count, documents)) < 1 / (1 + np.exp(-score)))
    return found[0], found[1]


def residual(x: np.ndarray) -> float:
    """Mean square of the interaction in a two-way layout (seeds, documents), over its number of
    cells.
    """
    rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
    return float((rest**2).sum() / ((x.shape[0] - 1) * (x.shape[1] - 1)) / x.size)


def test_seeds_that_do_not_pair_interact_with_the_documents_apart():
    a, b = two_models((5, 3))
    found = compare_counts([TaskRuns.of("t", [answers(a), answers(b)], "micro")], paired=False)
    welch = stats.ttest_ind(a.mean(axis=1), b.mean(axis=1), equal_var=False)
    assert (found.seeds.p, found.seeds.n) == (pytest.approx(welch.pvalue), 8)
    assert found.documents[0].twice == pytest.approx(
        residual(a.astype(float)) + residual(b.astype(float))
    )


@pytest.mark.parametrize(("seeds", "documents"), [(2, 9), (3, 2), (2, 2), (5, 30)])
def test_the_interaction_of_a_mean_is_its_residual_mean_square(seeds, documents):
    x = np.random.default_rng(seeds).normal(size=(seeds, documents))
    left_out = ((x.sum(axis=1, keepdims=True) - x) / (documents - 1)).T
    assert interaction_variance(left_out) == pytest.approx(residual(x))
    assert interaction_variance(left_out[:1]) == interaction_variance(left_out[:, :1]) == 0


def test_equal_seeds_leave_the_documents_alone():
    pair = [answers(np.repeat(x[:1], 3, axis=0)) for x in two_models()]
    found = compare_counts([TaskRuns.of("t", pair, "micro")])
    assert (found.seeds.se, found.seeds.df) == (0.0, None)
    assert found.total.se == pytest.approx(math.sqrt(found.documents[0].variance))
    assert found.total.df == pytest.approx(59)


def test_a_third_model_does_not_change_the_noise_of_a_pair():
    a, b = (answers(x) for x in two_models())
    other = answers(two_models()[0][:2, ::-1].copy())
    alone = redraw([TaskRuns.of("t", [a, b], "micro")])[0]
    among = redraw([TaskRuns.of("t", [other, a, b], "micro")])[0]
    noise = document_noise(alone[:1], alone[1:], paired=[True])
    assert noise == document_noise(among[1:2], among[2:], paired=[True]) is not None
    # and with fewer seeds it is that of these seeds
    few = document_noise([alone[0].of([0, 1])], [alone[1].of([0, 1])], paired=[True])
    again = redraw(
        [TaskRuns.of("t", [Counts.of(c.tp[:2], c.fp[:2], c.fn[:2]) for c in (a, b)], "micro")]
    )[0]
    assert few == document_noise(again[:1], again[1:], paired=[True])


def simulated(groups: int, seed: int) -> list[Counts]:
    rng = np.random.default_rng(seed)
    both = Population(np.array([0.5, 0.3]), np.array([[0.8, 0.7], [0.6, 0.6]]), seed_sd=0.05)
    return both.sample(groups, both.run_recalls(3, rng), rng)


def macro_without(counts: Counts, kept: np.ndarray) -> float:
    """Macro F1 of these documents, mean over seeds, by scikit-learn."""
    gold = counts.gold[kept]
    found = (counts.tp + counts.fp)[:, kept]
    return float(np.mean([f1_score(gold, one, average="macro") for one in found]))


def test_tasks_that_share_a_part_of_their_documents():
    """Two tasks on 40 and 30 documents, 20 of them shared: each document is left out of both at
    once.
    """
    names = [[f"d{i}" for i in range(40)], [f"d{i}" for i in range(20, 50)]]
    models = [simulated(40, 43), simulated(30, 44)]
    corpus = [
        one_task(f"t{i}", m, ids) for i, (m, ids) in enumerate(zip(models, names, strict=True))
    ]
    left_out = []
    for document in sorted(set(names[0]) | set(names[1])):
        gaps = []
        for pair, ids in zip(models, names, strict=True):
            kept = np.array([name != document for name in ids])
            gaps.append(macro_without(pair[0], kept) - macro_without(pair[1], kept))
        left_out.append(np.mean(gaps))
    spread = np.array(left_out) - np.mean(left_out)
    expected = 49 / 50 * (spread**2).sum()
    (noise,) = compare_counts(corpus, "cc", draws=20_000).documents
    assert noise.variance == pytest.approx(expected, rel=0.2)
    # with a label in fewer than ten groups, by leaving out
    rare = []
    for task in corpus:
        few = [
            Counts.of(
                *(
                    np.where(np.arange(c.n_groups)[:, None] < 9, x, [1, 0] * x)
                    for x in (c.tp, c.fp, c.fn)
                )
            )
            for c in task.models
        ]
        rare.append(one_task(task.task, few, list(task.groups)))
    rows = redraw(rare)
    assert all(one.drawn is None for row in rows for one in row)
    assert (
        document_noise(
            [row[0] for row in rows], [row[1] for row in rows], paired=[True] * 2
        ).variance
        > 0
    )


def test_two_tasks_on_one_set_of_documents_are_no_more_evidence_than_one():
    rng = np.random.default_rng(13)
    names = [f"d{i}" for i in range(100)]
    both = Population(np.array([0.4, 0.3, 0.2]), np.array([[0.65, 0.75, 0.6], [0.75, 0.78, 0.7]]))
    pair = both.sample(100, both.run_recalls(4, rng), rng)
    twice = [one_task("x", pair, names), one_task("y", pair, names)]
    once = compare_counts(twice[:1]).documents[0].variance
    assert compare_counts(twice, "xx").documents[0].variance == pytest.approx(once)
    apart = [one_task("x", pair, names), one_task("y", pair, [n + "'" for n in names])]
    assert compare_counts(apart, "xx").documents[0].variance == pytest.approx(once / 2, rel=0.15)


def test_these_tasks_are_sums_over_tasks_and_corpora():
    """Three tasks, two of them of one corpus: parts of a task weigh 1 / (2 x 2)^2, of the lone one
    1 / 2^2.
    """
    tables = [(*two_models(documents=n),) for n in (50, 40, 30)]
    tables = [(a, np.roll(b, 7 * i, axis=1)) for i, (a, b) in enumerate(tables)]
    runs = [
        TaskRuns.of(f"t{i}", (answers(a), answers(b)), "micro") for i, (a, b) in enumerate(tables)
    ]
    gaps = [a.astype(float) - b for a, b in tables]
    weights = (1 / 4, 1 / 4, 1 / 2)
    seeds = [w**2 * g.mean(axis=1).var(ddof=1) / 4 for w, g in zip(weights, gaps, strict=True)]
    documents = [
        w**2 * g.mean(axis=0).var() / g.shape[1] for w, g in zip(weights, gaps, strict=True)
    ]
    both = sum(w**2 * residual(g) for w, g in zip(weights, gaps, strict=True))
    found = compare_counts(runs, "xxy", draws=20_000).total
    means = [g.mean() for g in gaps]
    assert found.estimate == pytest.approx(((means[0] + means[1]) / 2 + means[2]) / 2)
    variance = max(sum(seeds) + sum(documents) - both, sum(seeds), sum(documents))
    assert found.se == pytest.approx(math.sqrt(variance), rel=0.02)
    assert found.estimand is Estimand.THESE_TASKS
    # from the scores alone: the seeds' part, with its degrees of freedom
    sides = [[list(table[m].mean(axis=1)) for table in tables] for m in (0, 1)]
    alone = these_tasks(*sides, weights=weights)
    assert (alone.se_seeds, alone.test.se) == pytest.approx((math.sqrt(sum(seeds)),) * 2)
    assert alone.test.df == pytest.approx(sum(seeds) ** 2 / sum(v**2 / 3 for v in seeds))
    assert alone.test.estimand is Estimand.THESE_TEST_SETS


def test_steps_of_each_task_are_its_own():
    """Equal seeds: what is left is a rounding sd of step / sqrt(6) a task."""
    first, second = [[0.5] * 3, [0.5] * 3], [[0.4] * 3, [0.3] * 3]
    found = these_tasks(first, second, resolutions=[0.1, 0.02])
    assert found.se_seeds == pytest.approx(math.sqrt((0.1**2 + 0.02**2) / 6 / 3) / 2)
    assert these_tasks(first, second).se_seeds == 0
    loose = these_tasks(first, second, resolutions=[0.1, 0.02], paired=[False] * 2)
    # two sides of step² / 12 each
    assert loose.se_seeds == pytest.approx(math.sqrt((0.1**2 + 0.02**2) / 6 / 3) / 2)


@pytest.mark.parametrize(
    ("sources", "twice", "expected"),
    [
        # (1 + 1)² / (1/8 + 1/99) = 29.60 times (1.8 / 2)²; nothing alone is wider
        ([[(1.0, 8.0)], [(1.0, 99.0)]], 0.2, (1.8, 4 / (1 / 8 + 1 / 99) * 0.81)),
        # never below a source's own variance, nor below the fewest degrees of freedom
        ([[(1.0, 8.0)], [(1.0, 99.0)]], 1.5, (1.0, 8.0)),
        # two parts of a source add up; the first part's 2 degrees would give 4.30, the sum has
        # (3/2)² / ...
        ([[(1.0, 2.0), (0.5, 4.0)], []], 0.0, (1.5, 1.5**2 / (1 / 2 + 0.25 / 4))),
        # two seeds: t(1) makes the seeds alone wider than both by Satterthwaite, so their one
        # degree holds
        ([[(1.0, 1.0)], [(1.0, 99.0)]], 0.0, (2.0, 1.0)),
        ([[(0.0, math.inf)], [(1.0, 9.0)]], 0.0, (1.0, 9.0)),
        ([[(0.0, math.inf)], [(0.0, 9.0)]], 0.0, (0.0, math.inf)),
    ],
)
def test_crossed_sources_by_hand(sources, twice, expected):
    assert crossed(sources, twice) == pytest.approx(expected)


def test_welch_has_a_least_error_and_needs_two_seeds_on_both_sides():
    found = compare_seeds([0.5, 0.5, 0.5], [0.4, 0.4], paired=False, resolution=0.06)
    assert found.se == pytest.approx(math.sqrt(0.06**2 / 12 * (1 / 3 + 1 / 2)))
    assert compare_seeds([0.5, 0.5, 0.5], [0.4, 0.4], paired=False).p == 0.0
    for sides in (([0.5], [0.4, 0.3]), ([0.5, 0.6], [0.4])):
        alone = compare_seeds(*sides, paired=False)
        assert (alone.n, alone.p, alone.interval) == (3, None, None)
        assert alone.estimate == pytest.approx(np.mean(sides[0]) - np.mean(sides[1]))


#: arXiv:2605.12438, base models, French, percent: CLM detour (10B) minus its MLM twin (10B).
GAPS = np.array([4.9, 3.3, 6.1, 2.0, 1.1, 4.0, 0.1, 0.5])
CORPORA = (
    "cantemist",
    "cantemist",
    "cantemist",
    "distemist",
    "meddialog",
    "diamed",
    "emea",
    "medline",
)


def test_the_t_over_corpora_by_hand():
    """The first three tasks share a corpus and become 14.3 / 3 = 4.7667. Mean of the six: 2.0778;
    squared deviations add to 18.2882, so sd = 1.9125, se = 0.7808, t = 2.6612 on 5 degrees of
    freedom; t(0.975, 5) = 2.5706.
    """
    found = tasks_like_these(GAPS, CORPORA, None, resolution=0.1)
    assert (found.estimate, found.sd) == pytest.approx((2.0778, 1.9125), abs=1e-4)
    assert (found.df, found.interval.level) == (5, 0.95)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.0707, 4.0848), abs=1e-4)
    assert 0.04 < found.p < 0.05
    assert found.estimand is Estimand.TASKS_LIKE_THESE
    # taken as eight independent tasks it would look stronger than it is
    assert tasks_like_these(GAPS, list("abcdefgh"), None).p < 0.01 < found.p


def test_the_wider_question_never_has_the_narrower_interval():
    rng = np.random.default_rng(1)
    for _ in range(300):
        gaps = rng.normal(0.3, 1, 6)
        alone = tasks_like_these(gaps, list("abcdef"), None)
        within = t_from_se(
            alone.estimate, float(rng.uniform(0.05, 1)), 20.0, n=6, estimand=Estimand.THESE_TASKS
        )
        found = tasks_like_these(gaps, list("abcdef"), within)
        assert found.interval.half_width == pytest.approx(
            max(alone.interval.half_width, within.interval.half_width)
        )
        assert found.p == max(alone.p, within.p)
        assert (0 in found.interval) == (found.p > 0.05)
        assert found.estimand is Estimand.TASKS_LIKE_THESE


def test_equivalence_is_that_of_two_one_sided_tests():
    rng = np.random.default_rng(3)
    a, b = rng.normal(70, 1, 9), rng.normal(70.2, 1, 9)
    test = mean_test(a - b, estimand=Estimand.NEW_SEEDS)
    assert equivalent(test, 1.0) == pytest.approx(ttost_paired(a, b, -1.0, 1.0)[0])
    assert equivalent(mean_test([0.1, 0.1], estimand=Estimand.NEW_SEEDS), 1.0) == 0
    assert equivalent(mean_test([0.1], estimand=Estimand.NEW_SEEDS), 1.0) is None


def test_possible_ranks_count_the_models_that_differ():
    assert possible_ranks(3, []) == ((1, 3),) * 3
    assert possible_ranks(3, [(0, 1), (0, 2), (1, 2)]) == ((1, 1), (2, 2), (3, 3))
    assert possible_ranks(3, [(0, 2)]) == ((1, 2), (1, 3), (2, 3))


def test_failed_runs_are_far_below_their_siblings_or_at_no_skill():
    assert failed_runs([0.70, 0.71, 0.69, 0.2]) == (False, False, False, True)
    assert failed_runs([0.70, 0.71, 0.69, 0.2, 0.25]) == (False, False, False, True, True)
    assert failed_runs([0.70, 0.71, 0.69, 0.60]) == (False,) * 4, "a bad run is no failed one"
    assert failed_runs([0.9, 0.1]) == (False, False), "two runs: which of them is the odd one?"
    assert failed_runs([0.9, 0.1], no_skill=0.1) == (False, True)
    assert failed_runs([0.1, 0.1, 0.05], no_skill=0.1) == (False,) * 3, (
        "a task that is not learnt is a result"
    )
    assert failed_runs([0.7, 0.7, 0.7, 0.95]) == (False,) * 4


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
    assert (folds.test.estimand, plain.test.estimand) == (
        Estimand.THESE_TASKS,
        Estimand.THESE_TEST_SETS,
    )
    mixed = these_tasks(list(first), list(second), ratios=[1 / 9, 0.0])
    assert plain.test.se < mixed.test.se < folds.test.se
    assert mixed.test.estimand is Estimand.THESE_TEST_SETS


def test_splits_that_do_not_pair_are_refused():
    with pytest.raises(StatsInputError, match="cannot be paired"):
        compare_seeds([0.1, 0.2], [0.1, 0.3, 0.2], paired=False, ratio=0.1)
