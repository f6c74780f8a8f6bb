"""When a difference is called certain: 30 groups, two seeds, a t, and a standard error that has a floor."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from biobench.comparison.certain import CERTAIN, CERTAIN_GROUPS, CERTAIN_SEEDS, SEED_SD, is_certain
from biobench.stats import Counts, Estimand, MeanTest, TaskRuns, WithinTasks, within_tasks


def far(groups, df=math.inf):
    """Standard errors from zero at which the two-sided p is that of certainty."""
    return stats.t.isf(CERTAIN / 2, min(groups - 1, df))


def result(counts, corpora, *, difference=0.5, p=0.01, se_documents=0.05, groups=60, se_seeds=0.001):
    """As much of a `PairResult` as the rule reads. counts: seeds of the two models on each task."""
    test = MeanTest(2, difference, None, 0.1, 1e6, None, p, Estimand.THESE_TASKS)
    lines = [
        SimpleNamespace(n_first=a, n_second=b, corpus=c, groups=groups)
        for (a, b), c in zip(counts, corpora, strict=True)
    ]
    return SimpleNamespace(within=WithinTasks(difference, test, se_seeds, se_documents, ()), tasks=lines)


@pytest.mark.parametrize(
    ("counts", "corpora", "variances"),
    [
        ([(3, 3)], "x", 2 / 3),
        ([(3, 3)] * 2, "xy", (2 / 3 + 2 / 3) / 4),
        # the mean over corpora: a task of three of one corpus weighs 1/6, the lone one 1/2
        ([(3, 3)] * 4, "xxxy", 3 * (2 / 3) / 36 + (2 / 3) / 4),
        ([(2, 4), (3, 9)], "xy", (1 / 2 + 1 / 4 + 1 / 3 + 1 / 9) / 4),
        # a policy of the gate has no seeds and so no spread
        ([(3, 0), (4, 0)], "xy", (1 / 3 + 1 / 4) / 4),
    ],
)
def test_few_seeds_are_taken_to_spread_by_five_points(counts, corpora, variances):
    noise = math.sqrt(0.05**2 + SEED_SD**2 * variances)
    for sign in (1, -1):
        assert is_certain(result(counts, corpora, difference=sign * 1.001 * far(60) * noise))
        assert not is_certain(result(counts, corpora, difference=sign * 0.999 * far(60) * noise))
    assert not is_certain(result(counts, corpora, difference=0.9, p=0.0501))


def test_many_seeds_speak_for_themselves():
    many = [(CERTAIN_SEEDS, CERTAIN_SEEDS)] * 2
    edge = far(60) * math.sqrt(0.05**2 + 0.001**2)
    assert is_certain(result(many, "xy", difference=1.001 * edge))
    assert not is_certain(result(many, "xy", difference=0.999 * edge))
    # one side of one task with fewer seeds is enough for the stricter rule
    assert not is_certain(result([many[0], (CERTAIN_SEEDS, CERTAIN_SEEDS - 1)], "xy", difference=1.001 * edge))
    assert not is_certain(result([(0, 0)], "x", difference=0.9)), "two policies"


def test_one_seed_or_few_documents_are_never_certain():
    sure = {"difference": 1.0, "p": 0.0, "se_documents": 0.0}
    assert is_certain(result([(9, 9)], "x", **sure))
    for counts in ([(1, 1)], [(1, 9)], [(9, 1)]):
        assert not is_certain(result(counts, "x", **sure))
    assert is_certain(result([(9, 9)], "x", groups=CERTAIN_GROUPS, **sure))
    assert not is_certain(result([(9, 9)], "x", groups=CERTAIN_GROUPS - 1, **sure))


def test_no_spread_at_all_is_not_proof():
    """All documents answered alike: one of them might yet be answered otherwise."""
    edge = far(60) / 60
    assert is_certain(result([(5, 5)], "x", difference=1.02 * edge, se_documents=0.0))
    assert not is_certain(result([(5, 5)], "x", difference=0.99 * edge, se_documents=0.0))


def test_nothing_is_certain_without_a_test_or_without_test_set_noise():
    sure = result([(9, 9)], "x", difference=1.0)
    assert is_certain(sure)
    for within in (
        replace(sure.within, test=None),
        replace(sure.within, test=replace(sure.within.test, p=None)),
        replace(sure.within, se_documents=None),
    ):
        assert not is_certain(SimpleNamespace(within=within, tasks=sure.tasks))


@pytest.mark.parametrize("groups", [2, 4, 8, 30])
def test_equal_models_are_never_certain_on_small_test_sets(groups):
    """Two models, each right on half of the documents: with 2 documents they are 1 apart in one of 8 samples."""
    rng = np.random.default_rng(groups)
    said = 0
    for _ in range(500):
        right = rng.random((2, 2, groups, 1)) < 0.5
        right[:, 1] = right[:, 0]  # both seeds agree
        gold = np.ones((groups, 1), dtype=int)
        runs = [Counts.of(r.astype(int), np.zeros_like(r, dtype=int), gold[None] - r) for r in right]
        within = within_tasks([TaskRuns.of("t", runs, "micro")])
        line = SimpleNamespace(n_first=2, n_second=2, corpus="x", groups=groups)
        said += is_certain(SimpleNamespace(within=within, tasks=[line]))
    assert said == 0
