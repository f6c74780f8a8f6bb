"""When a difference is called certain: the rule for many seeds, and the one for few with a spread taken for granted."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from types import SimpleNamespace

import pytest

from biobench.comparison.verdict import CERTAIN, CERTAIN_SEEDS, SEED_SD, is_certain
from biobench.stats import Estimand, MeanTest, WithinTasks

FAR = NormalDist().inv_cdf(1 - CERTAIN / 2)
"""Standard errors from zero at which the two-sided p is that of certainty."""


def result(counts, corpora, *, difference=0.5, p=0.01, se_documents=0.01):
    """As much of a `PairResult` as the rule reads. counts: seeds of the two models on each task."""
    test = MeanTest(2, difference, None, 0.1, 3.0, None, p, Estimand.THESE_TASKS)
    lines = [SimpleNamespace(n_first=a, n_second=b, corpus=c) for (a, b), c in zip(counts, corpora, strict=True)]
    return SimpleNamespace(within=WithinTasks(difference, test, 0.1, se_documents, ()), tasks=lines)


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
        ([(1, 1)], "x", 2.0),
    ],
)
def test_few_seeds_are_taken_to_spread_by_five_points(counts, corpora, variances):
    noise = math.sqrt(0.01**2 + SEED_SD**2 * variances)
    for sign in (1, -1):
        assert is_certain(result(counts, corpora, difference=sign * 1.001 * FAR * noise))
        assert not is_certain(result(counts, corpora, difference=sign * 0.999 * FAR * noise))
    assert is_certain(result(counts, corpora, difference=0.9, p=0.05)) == (FAR * noise < 0.9)
    assert not is_certain(result(counts, corpora, difference=0.9, p=0.0501))


def test_many_seeds_speak_for_themselves():
    many = [(CERTAIN_SEEDS, CERTAIN_SEEDS)] * 2
    assert is_certain(result(many, "xy", difference=1e-3, p=0.99 * CERTAIN))
    assert not is_certain(result(many, "xy", difference=0.9, p=CERTAIN))
    # one side of one task with fewer seeds is enough for the stricter rule
    assert not is_certain(result([many[0], (CERTAIN_SEEDS, CERTAIN_SEEDS - 1)], "xy", difference=1e-3, p=0.0))
    assert not is_certain(result([(0, 0)], "x", difference=1e-3, p=0.0)), "two policies, a thousandth apart"


def test_nothing_is_certain_without_a_test_or_without_test_set_noise():
    sure = result([(9, 9)], "x", p=0.0)
    assert is_certain(sure)
    for within in (
        replace(sure.within, test=None),
        replace(sure.within, test=replace(sure.within.test, p=None)),
        replace(sure.within, se_documents=None),
    ):
        assert not is_certain(SimpleNamespace(within=within, tasks=sure.tasks))
