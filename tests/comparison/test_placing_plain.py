"""Means, intervals and ranks of awkward stores against formulas written out here, one pair and task after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev, variance

import pytest
from scipy.stats import t as student

from biobench.comparison.contest import contest
from biobench.comparison.measure import seeds_alone
from biobench.comparison.placing import place
from biobench.report.entrants import find_entrants
from biobench.report.frame import build
from biobench.report.results import load
from biobench.report.tasks import shipped
from tests.helpers.awkward_make import ANSWERS, SPLITS, TASKS, TEST, TRAIN, awkward_scores, save_awkward

RATIO = TEST / TRAIN
WEIGHTS = {TASKS[0]: 5.0, TASKS[3]: 2.0}
CLOSE = 1e-12


@pytest.fixture(scope="module", params=[1, 2])
def awkward(request, tmp_path_factory):
    scores, folder = awkward_scores(random.Random(request.param)), tmp_path_factory.mktemp("awkward")
    save_awkward(folder, scores)
    return scores, load(folder)


def shares(tasks: Sequence[str], weights) -> list[float]:
    if weights is not None:
        chosen = [weights.get(task, 1.0) for task in tasks]
        return [weight / sum(chosen) for weight in chosen]
    corpora = [shipped()[task].corpus for task in tasks]
    return [1 / len(set(corpora)) / corpora.count(corpus) for corpus in corpora]


def half_width(parts: Sequence[tuple[float, float]]) -> float:
    """Of the 95% interval of a sum with these (variance, df), by Welch and Satterthwaite."""
    total = sum(v for v, _ in parts)
    if math.sqrt(total) <= CLOSE:
        return 0.0
    return math.sqrt(total) * student.ppf(0.975, total**2 / sum(v**2 / df for v, df in parts if v))


def plain_pair(first, second, weights):
    """Difference and half width on the tasks that both have; None without one, half None where seeds are unknown."""
    tasks = [task for task in TASKS if task in first and task in second]
    if not tasks:
        return None
    sides, pairing = [], []
    for task in tasks:
        a, b = first[task], second[task]
        common = sorted(set(a) & set(b))
        pairing.append(len(common) >= 3 or set(a) == set(b))
        if pairing[-1]:
            a, b = ({seed: runs[seed] for seed in common} for runs in (a, b))
        sides.append((list(a.values()), list(b.values())))
    weighed = list(zip(tasks, sides, shares(tasks, weights), strict=True))
    difference = sum(share * (fmean(a) - fmean(b)) for _, (a, b), share in weighed)
    if any(min(len(a), len(b)) == 1 for a, b in sides):
        return difference, None
    parts = []
    for task, (a, b), share in weighed:
        step = 1 / ANSWERS[task]
        if all(pairing) or task == SPLITS:
            spread = max(stdev(x - y for x, y in zip(a, b, strict=True)), step / math.sqrt(6))
            count = 1 / len(a) + (RATIO if task == SPLITS else 0.0)
            parts.append((share**2 * spread**2 * count, len(a) - 1))
        else:
            each = [(max(variance(x), step**2 / 12) / len(x), len(x) - 1) for x in (a, b)]
            both = sum(v for v, _ in each)
            parts.append((share**2 * both, both**2 / sum(v**2 / df for v, df in each)))
    return difference, half_width(parts)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_each_pair_and_the_ranks(awkward, weights):
    scores, results = awkward
    names = [*scores, "limited"]
    entrants = dict(zip(names, find_entrants(names, results), strict=True))
    told_apart = dict.fromkeys(((a, b) for a in names for b in names), False)
    for a, b in combinations(scores, 2):
        plain = plain_pair(scores[a], scores[b], weights)
        if plain is None:
            continue
        difference, half = plain
        shared = contest([entrants[a], entrants[b]], results, "macro", suite="fr")
        within = seeds_alone(shared, shared.match(0, 1), weights=weights)
        assert within.difference == pytest.approx(difference, abs=CLOSE), (a, b)
        assert (within.test is None) == (half is None), (a, b)
        if half is not None:
            interval = within.test.interval
            ends = (difference - half, difference + half)
            assert (interval.low, interval.high) == pytest.approx(ends, abs=CLOSE), (a, b)
            told_apart[a, b], told_apart[b, a] = difference > half, -difference > half
    placed = place(results, names, "macro", suite="fr", weights=weights)
    for name, own in placed.items():
        ahead = {other for other in names if told_apart[other, name]}
        behind = {other for other in names if told_apart[name, other]}
        assert (own.best, own.worst) == (1 + len(ahead), len(names) - len(behind)), name
        assert set(own.alike) == set(names) - ahead - behind - {name}, name
    assert (placed["limited"].best, placed["limited"].worst) == (1, len(names))
    assert "tied" in placed["steady"].alike
    assert {(p.best, p.worst) for p in placed.values()} > {(1, len(names))}, "somebody is told apart"


def test_each_mean_and_its_interval(awkward):
    scores, results = awkward
    report = build(results, "macro", suites=["fr"], sources=["run"])
    rows = {(row.model, row.task): row for row in report.rows if not row.partial}
    assert set(rows) == {(model, task) for model, tasks in scores.items() for task in tasks}
    for (model, task), row in rows.items():
        values = list(scores[model][task].values())
        assert row.mean == pytest.approx(fmean(values), abs=CLOSE)
        assert row.failed == (model == "failed" and task == TASKS[0])
        rest = [value for value in values if value > 0.1]
        if len(rest) == 1 or model == "equal":
            assert (row.low, row.high) == (None, None)
            continue
        count = 1 / len(rest) + (RATIO if task == SPLITS else 0.0)
        half = half_width([(variance(rest) * count, len(rest) - 1)])
        ends = (max(fmean(rest) - half, 0.0), min(fmean(rest) + half, 1.0))
        assert (row.low, row.high) == pytest.approx(ends, abs=CLOSE), (model, task)
    means = {row.model: row for row in report.averages}
    assert set(means) == set(scores) - {"lacking", "elsewhere"}
    for model, row in means.items():
        each = [list(scores[model][task].values()) for task in TASKS]
        rest = [[value for value in values if value > 0.1] for values in each]
        weights = shares(TASKS, None)
        assert row.mean == pytest.approx(sum(w * fmean(v) for w, v in zip(weights, each, strict=True)), abs=CLOSE)
        if model in ("single", "equal"):
            assert (row.low, row.high) == (None, None)
            continue
        parts = [
            (w**2 * variance(v) * (1 / len(v) + (RATIO if task == SPLITS else 0.0)), len(v) - 1)
            for w, v, task in zip(weights, rest, TASKS, strict=True)
        ]
        middle, half = sum(w * fmean(v) for w, v in zip(weights, rest, strict=True)), half_width(parts)
        assert (row.low, row.high) == pytest.approx((max(middle - half, 0), min(middle + half, 1)), abs=CLOSE), model


def test_a_folder_of_printed_scores_alone_has_means_and_no_ranks(tmp_path):
    results = load(tmp_path)
    report = build(results, "paper", suites=["fr"])
    printed = {(v.model, v.task, v.value) for v in results.published}
    assert report.rows
    for row in report.rows:
        assert (row.model, results.infos[row.task].published_as, row.mean) in printed
        assert (row.low, row.high) == (None, None)
    names = sorted({row.model for row in report.rows})
    placed = place(results, names, "paper", suite="fr")
    assert {(p.best, p.worst) for p in placed.values()} == {(1, len(names))}
