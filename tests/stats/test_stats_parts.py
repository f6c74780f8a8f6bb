"""How the variances of seeds, documents and tasks add up: against sums written out, and documents left out by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from biobench.stats import (
    Counts,
    Estimand,
    StatsInputError,
    TaskRuns,
    compare_many,
    compare_seeds,
    compare_suite,
    compare_task,
    detectable_difference,
    detectable_from_se,
    suite_variance,
    within_tasks,
    within_tasks_seeds,
)
from biobench.stats.paired import crossed
from biobench.stats.resample import group_weights, interaction_variance
from tests.helpers.stats_simulation import Population, one_task


def answers(right: np.ndarray) -> Counts:
    """Counts of one-label accuracy from (seeds, documents) of right answers: a miss is one fp and one fn."""
    tp = right.astype(int)[..., None]
    return Counts.of(tp, 1 - tp, 1 - tp)


def two_models(seeds: tuple[int, int] = (4, 4), documents: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """(seeds, documents) of right answers of two models: hard documents and better seeds are shared."""
    rng = np.random.default_rng(41)
    hard = rng.normal(0, 1.2, documents)
    drift = rng.normal(0, 0.4, max(seeds))
    found = []
    for gain, count in zip((1.0, 0.4), seeds, strict=True):
        score = gain + hard + drift[:count, None] + rng.normal(0, 0.6, documents) + rng.normal(0, 0.4, (count, 1))
        found.append(rng.random((count, documents)) < 1 / (1 + np.exp(-score)))
    return found[0], found[1]


def residual(x: np.ndarray) -> float:
    """Mean square of the interaction in a two-way layout (seeds, documents), over its number of cells."""
    rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
    return float((rest**2).sum() / ((x.shape[0] - 1) * (x.shape[1] - 1)) / x.size)


def test_seeds_and_documents_add_up_as_in_a_two_way_layout():
    """Of accuracies all parts are sums of squares of the table of right minus right answers."""
    a, b = two_models((8, 8))
    gaps = a.astype(float) - b
    found = compare_task(answers(a), answers(b), "micro", method="jackknife")
    by_seeds = gaps.mean(axis=1).var(ddof=1) / 8
    by_documents = gaps.mean(axis=0).var(ddof=1) / 60
    assert (found.first, found.second) == pytest.approx((a.mean(), b.mean()))
    assert found.difference == pytest.approx(gaps.mean())
    assert found.seeds.test.p == pytest.approx(stats.ttest_1samp(gaps.mean(axis=1), 0).pvalue)
    alone = stats.ttest_1samp(gaps.mean(axis=0), 0)
    assert (found.documents.df, found.documents.n) == (59, 60)
    assert found.documents.p == pytest.approx(alone.pvalue)
    ends = alone.confidence_interval(0.95)
    assert (found.documents.interval.low, found.documents.interval.high) == pytest.approx((ends.low, ends.high))
    variance = by_seeds + by_documents - residual(gaps)
    assert variance > max(by_seeds, by_documents)
    assert found.total.se == pytest.approx(math.sqrt(variance))
    total = by_seeds + by_documents
    df = total**2 / (by_seeds**2 / 7 + by_documents**2 / 59) * (variance / total) ** 2
    half = stats.t.ppf(0.975, df) * math.sqrt(variance)
    assert all(half > stats.t.ppf(0.975, d) * math.sqrt(v) for v, d in ((by_seeds, 7), (by_documents, 59)))
    assert found.total.df == pytest.approx(df)
    assert found.total.interval.high == pytest.approx(gaps.mean() + half)
    assert found.detectable == pytest.approx(detectable_from_se(math.sqrt(variance), df))


def test_seeds_that_do_not_pair_interact_with_the_documents_apart():
    a, b = two_models((5, 3))
    found = compare_task(answers(a), answers(b), "micro", paired_seeds=False, method="jackknife")
    welch = stats.ttest_ind(a.mean(axis=1), b.mean(axis=1), equal_var=False)
    assert found.seeds.test.p == pytest.approx(welch.pvalue)
    assert found.seeds.test.n == 8
    by_seeds = a.mean(axis=1).var(ddof=1) / 5 + b.mean(axis=1).var(ddof=1) / 3
    by_documents = (a.mean(axis=0) - b.mean(axis=0)).var(ddof=1) / 60
    expected = by_seeds + by_documents - residual(a.astype(float)) - residual(b.astype(float))
    assert found.total.se == pytest.approx(math.sqrt(max(expected, by_seeds, by_documents)))


@pytest.mark.parametrize(("seeds", "documents"), [(2, 9), (3, 2), (2, 2), (5, 30)])
def test_the_interaction_of_a_mean_is_its_residual_mean_square(seeds, documents):
    x = np.random.default_rng(seeds).normal(size=(seeds, documents))
    left_out = ((x.sum(axis=1, keepdims=True) - x) / (documents - 1)).T
    assert interaction_variance(left_out) == pytest.approx(residual(x))
    assert interaction_variance(left_out[:1]) == interaction_variance(left_out[:, :1]) == 0


def test_equal_seeds_leave_the_documents_alone():
    a, b = (np.repeat(x[:1], 3, axis=0) for x in two_models())
    found = compare_task(answers(a), answers(b), "micro", method="jackknife")
    assert (found.seeds.test.se, found.seeds.test.df) == (0.0, None)
    assert found.total.se == pytest.approx(found.documents.se)
    assert found.total.df == pytest.approx(59)
    assert found.detectable == pytest.approx(detectable_from_se(found.documents.se, 59))


def test_the_labels_that_count_are_those_told():
    rng = np.random.default_rng(42)
    both = Population(np.array([0.5, 0.4, 0.3]), np.array([[0.9, 0.5, 0.5], [0.5, 0.5, 0.9]]))
    a, b = both.sample(80, both.run_recalls(1, rng), rng)
    found = compare_task(a, b, "macro", evaluated=[True, True, False])
    sides = [f1_score(c.gold, c.tp[0] + c.fp[0], average="macro", labels=[0, 1]) for c in (a, b)]
    assert (found.first, found.second) == pytest.approx(sides)
    assert found.difference == pytest.approx(sides[0] - sides[1])


def test_bootstrap_and_jackknife_errors_are_those_of_documents_drawn_or_left_out():
    a, b = two_models((3, 3))
    gaps = (a.astype(float) - b).mean(axis=0)
    drawn = compare_task(answers(a), answers(b), "micro", method="bootstrap", draws=20_000)
    # the bootstrap's own variance has n and not n - 1 below
    assert drawn.documents.se == pytest.approx(gaps.std() / math.sqrt(60), rel=0.02)
    assert "bootstrap" in drawn.method
    weights = next(group_weights(60, 3, np.random.default_rng(5)))
    three = compare_task(answers(a), answers(b), "micro", method="bootstrap", draws=3, seed=5)
    assert three.documents.se == pytest.approx((weights @ gaps / 60).std(ddof=1))


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
    """Two tasks on 40 and 30 documents, 20 of them shared: each document is left out of both at once."""
    names = [[f"d{i}" for i in range(40)], [f"d{i}" for i in range(20, 50)]]
    models = [simulated(40, 43), simulated(30, 44)]
    cluster = [one_task(f"t{i}", m, "corpus", ids) for i, (m, ids) in enumerate(zip(models, names, strict=True))]
    left_out = []
    for document in sorted(set(names[0]) | set(names[1])):
        gaps = []
        for pair, ids in zip(models, names, strict=True):
            kept = np.array([name != document for name in ids])
            gaps.append(macro_without(pair[0], kept) - macro_without(pair[1], kept))
        left_out.append(np.mean(gaps))
    spread = np.array(left_out) - np.mean(left_out)
    expected = math.sqrt(49 / 50 * (spread**2).sum())
    assert within_tasks(cluster, method="jackknife").se_documents == pytest.approx(expected)
    by_draws = within_tasks(cluster, method="bootstrap", draws=20_000).se_documents
    assert by_draws == pytest.approx(expected, rel=0.1)


def test_these_tasks_are_sums_over_tasks_and_clusters():
    """Three tasks, two of them of one corpus: parts of a task weigh 1 / (2 x 2)^2, of the lone one 1 / 2^2."""
    tables = [(*two_models(documents=n),) for n in (50, 40, 30)]
    tables = [(a, np.roll(b, 7 * i, axis=1)) for i, (a, b) in enumerate(tables)]
    runs = [
        TaskRuns.of(f"t{i}", (answers(a), answers(b)), "micro", cluster="xxy"[i]) for i, (a, b) in enumerate(tables)
    ]
    gaps = [a.astype(float) - b for a, b in tables]
    weights = (1 / 16, 1 / 16, 1 / 4)
    seeds = [w * g.mean(axis=1).var(ddof=1) / 4 for w, g in zip(weights, gaps, strict=True)]
    documents = [w * g.mean(axis=0).var(ddof=1) / g.shape[1] for w, g in zip(weights, gaps, strict=True)]
    both = sum(w * residual(g) for w, g in zip(weights, gaps, strict=True))
    found = within_tasks(runs, method="jackknife")
    means = [g.mean() for g in gaps]
    assert found.difference == pytest.approx(((means[0] + means[1]) / 2 + means[2]) / 2)
    assert found.se_seeds == pytest.approx(math.sqrt(sum(seeds)))
    assert found.se_documents == pytest.approx(math.sqrt(sum(documents)), rel=0.01)
    shared = found.se_documents**2
    assert found.test.se == pytest.approx(math.sqrt(max(sum(seeds) + shared - both, sum(seeds), shared)))
    assert (found.test.n, found.notes) == (2, ())
    # from the scores alone: the seeds' part, with its degrees of freedom
    sides = [[list(table[m].mean(axis=1)) for table in tables] for m in (0, 1)]
    alone = within_tasks_seeds(*sides, clusters=["x", "x", "y"])
    assert alone.difference == pytest.approx(found.difference)
    assert (alone.se_seeds, alone.test.se) == pytest.approx((found.se_seeds,) * 2)
    assert alone.test.df == pytest.approx(sum(seeds) ** 2 / sum(v**2 / 3 for v in seeds))
    assert alone.test.estimand is Estimand.THESE_TEST_SETS


def test_these_tasks_say_which_part_is_not_known():
    a, b = (answers(x) for x in two_models())
    single = [answers(x[:1]) for x in two_models()]
    whole = TaskRuns.of("whole", (a, b), "micro")
    lone = TaskRuns.of("lone", single, "micro")
    flat = TaskRuns.of("flat", [Counts.of(c.tp[:, :1], c.fp[:, :1], c.fn[:, :1]) for c in (a, b)], "micro")
    found = within_tasks([whole, lone], method="jackknife")
    assert (found.se_seeds, found.test.estimand) == (None, Estimand.THESE_RUNS)
    assert found.notes == ("some task has one seed: seed noise is left out",)
    # nothing is taken off where the seeds' part, which would hold it too, is left out
    assert found.test.se == found.se_documents
    found = within_tasks([whole, flat], method="jackknife")
    assert (found.se_documents, found.test.estimand) == (None, Estimand.THESE_TEST_SETS)
    assert found.notes == ("some task has one group of documents: test-set noise is left out",)
    assert found.test.se == found.se_seeds
    neither = within_tasks([lone, flat], method="jackknife")
    assert (neither.test, neither.se_seeds, neither.se_documents, len(neither.notes)) == (None, None, None, 2)


def test_steps_of_each_task_are_its_own():
    """Equal seeds: what is left is a rounding sd of step / sqrt(6) a task."""
    first, second = [[0.5] * 3, [0.5] * 3], [[0.4] * 3, [0.3] * 3]
    found = within_tasks_seeds(first, second, clusters=["x", "y"], resolutions=[0.1, 0.02])
    assert found.se_seeds == pytest.approx(math.sqrt((0.1**2 + 0.02**2) / 6 / 3) / 2)
    assert within_tasks_seeds(first, second, clusters=["x", "y"]).se_seeds == 0
    loose = within_tasks_seeds(first, second, clusters=["x", "x"], resolutions=[0.1, 0.02], paired_seeds=False)
    # two sides of step² / 12 each
    assert loose.se_seeds == pytest.approx(math.sqrt((0.1**2 + 0.02**2) / 6 / 3) / 2)


@pytest.mark.parametrize(
    ("sources", "twice", "expected"),
    [
        # (1 + 1)² / (1/8 + 1/99) = 29.60 times (1.8 / 2)²; nothing alone is wider
        ([[(1.0, 8.0)], [(1.0, 99.0)]], 0.2, (1.8, 4 / (1 / 8 + 1 / 99) * 0.81)),
        # never below a source's own variance, nor below the fewest degrees of freedom
        ([[(1.0, 8.0)], [(1.0, 99.0)]], 1.5, (1.0, 8.0)),
        # two parts of a source add up; the first part's 2 degrees would give 4.30, the sum has (3/2)² / ...
        ([[(1.0, 2.0), (0.5, 4.0)], []], 0.0, (1.5, 1.5**2 / (1 / 2 + 0.25 / 4))),
        # two seeds: t(1) makes the seeds alone wider than both by Satterthwaite, so their one degree holds
        ([[(1.0, 1.0)], [(1.0, 99.0)]], 0.0, (2.0, 1.0)),
        ([[(0.0, math.inf)], [(1.0, 9.0)]], 0.0, (1.0, 9.0)),
        ([[(0.0, math.inf)], [(0.0, 9.0)]], 0.0, (0.0, math.inf)),
    ],
)
def test_crossed_sources_by_hand(sources, twice, expected):
    assert crossed(sources, twice) == pytest.approx(expected)


def test_welch_has_a_floor_and_needs_two_seeds_on_both_sides():
    found = compare_seeds([0.5, 0.5, 0.5], [0.4, 0.4], paired=False, resolution=0.06).test
    assert found.se == pytest.approx(math.sqrt(0.06**2 / 12 * (1 / 3 + 1 / 2)))
    assert compare_seeds([0.5, 0.5, 0.5], [0.4, 0.4], paired=False).test.p == 0.0
    for sides in (([0.5], [0.4, 0.3]), ([0.5, 0.6], [0.4])):
        alone = compare_seeds(*sides, paired=False).test
        assert (alone.n, alone.p, alone.interval) == (3, None, None)
        assert alone.estimate == pytest.approx(np.mean(sides[0]) - np.mean(sides[1]))


def test_variance_of_a_suite_by_hand():
    """Seeds of a task of a corpus of k tasks weigh 1 / k²; what they add is taken from the spread of the corpora."""
    rng = np.random.default_rng(45)
    clusters = ["x", "x", "y", "z"]
    level = rng.normal(0, 3, (4, 1))
    first, second = level + rng.normal(1, 1, (4, 5)), rng.normal(0, 1, (4, 5))
    gaps = first - second
    corpora = [gaps[:2].mean(), gaps[2].mean(), gaps[3].mean()]
    weights = [1 / 4, 1 / 4, 1, 1]
    one_seed = sum(w * g.var(ddof=1) for w, g in zip(weights, gaps, strict=True)) / 3
    found = suite_variance(first, second, clusters)
    assert found.seed == pytest.approx(one_seed)
    assert found.between == pytest.approx(np.var(corpora, ddof=1) - one_seed / 5)
    apart = [first[i, : 5 - i % 2].tolist() for i in range(4)]
    means = [np.mean(a) - b.mean() for a, b in zip(apart, second, strict=True)]
    corpora = [np.mean(means[:2]), means[2], means[3]]
    sides = [(np.var(a, ddof=1), len(a), b.var(ddof=1), 5) for a, b in zip(apart, second, strict=True)]
    loose = suite_variance(apart, second, clusters, paired_seeds=False)
    assert loose.seed == pytest.approx(sum(w * (v + u) for w, (v, _, u, _) in zip(weights, sides, strict=True)) / 3)
    present = sum(w * (v / n + u / m) for w, (v, n, u, m) in zip(weights, sides, strict=True)) / 3
    assert loose.between == pytest.approx(np.var(corpora, ddof=1) - present)
    # two corpora have a spread, one has none
    two = suite_variance(first[2:], second[2:], clusters[2:])
    assert two.between == pytest.approx(np.var([gaps[2].mean(), gaps[3].mean()], ddof=1) - two.seed / 5)
    assert suite_variance(first[:2], second[:2], clusters[:2]).between == 0
    # rounding of the scores is the least that seeds and corpora are taken to spread
    flat = suite_variance([[0.5, 0.5]] * 3, [[0.4, 0.4]] * 3, list("abc"), resolution=0.6)
    assert (flat.seed, flat.between) == pytest.approx((0.06, 0.03))
    loose = suite_variance([[0.5, 0.5]] * 3, [[0.4] * 3] * 3, list("abc"), paired_seeds=False, resolution=0.6)
    assert (loose.seed, loose.between) == pytest.approx((0.06, 0.06))


def test_a_suite_hands_its_options_on():
    rng = np.random.default_rng(46)
    first, second = rng.normal(0.6, 0.1, (4, 3)), rng.normal(0.5, 0.1, (4, 3))
    clusters = ["x", "x", "y", "z"]
    paired, apart = (compare_suite(first, second, clusters=clusters, paired_seeds=p) for p in (True, False))
    assert paired.variance == suite_variance(first, second, clusters)
    assert apart.variance == suite_variance(first, second, clusters, paired_seeds=False) != paired.variance
    gaps = (first - second).mean(axis=1)
    corpora = [gaps[:2].mean(), gaps[2], gaps[3]]
    ends = stats.ttest_1samp(corpora, 0).confidence_interval(0.8)
    wide = compare_suite(first, second, clusters=clusters, level=0.8).test.interval
    assert (wide.low, wide.high) == pytest.approx((ends.low, ends.high))
    for level in (0.95, 0.99):
        found = compare_suite(first, second, clusters=clusters, level=level)
        assert found.detectable == pytest.approx(detectable_difference(np.std(corpora, ddof=1), 3, alpha=1 - level))
    a, b = (answers(x) for x in two_models())
    strict = compare_task(a, b, "micro", method="jackknife", level=0.99)
    assert strict.detectable == pytest.approx(detectable_from_se(strict.total.se, strict.total.df, alpha=0.01))
    assert strict.detectable > compare_task(a, b, "micro", method="jackknife").detectable
    even, below = [[0.5]] * 4, [[0.4]] * 4
    many = compare_many([even, below], ["a", "b"], resolution=0.3)
    assert many.pairs[0].comparison.test == compare_suite(even, below, resolution=0.3).test
    assert many.pairs[0].p_holm > 0.05 >= compare_many([even, below], ["a", "b"]).pairs[0].p_holm
    with pytest.raises(StatsInputError, match=r"models have \[3, 4\] tasks"):
        compare_many([even, below[:3]], ["a", "b"])


def test_pairs_differ_at_five_percent_unless_told_otherwise():
    # t = 2.4 on 5 degrees of freedom: p = 0.0616
    values = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    values = values / values.std(ddof=1) * np.sqrt(6) + 2.4
    scores = [[[v] for v in values], [[0.0]] * 6]
    (pair,) = compare_many(scores, ["a", "b"]).pairs
    assert pair.p_holm == pytest.approx(2 * stats.t.sf(2.4, 5))
    assert not pair.different
    (pair,) = compare_many(scores, ["a", "b"], alpha=0.1).pairs
    assert pair.different
    assert pair.comparison.test.interval.level == pytest.approx(0.9)
