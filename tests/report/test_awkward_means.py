"""Means and intervals of awkward stores against formulas written out here, one task after the other."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, variance

import pytest
from scipy.stats import t as student

from biobench.report.frame import build
from biobench.report.results import load
from biobench.report.tasks import shipped
from tests.helpers.awkward_make import SPLITS, TASKS, TEST, TRAIN, awkward_scores, save_awkward

RATIO = TEST / TRAIN
CLOSE = 1e-12


@pytest.fixture(scope="module", params=[1, 2])
def awkward(request, tmp_path_factory):
    scores, folder = awkward_scores(random.Random(request.param)), tmp_path_factory.mktemp("awkward")
    save_awkward(folder, scores)
    return scores, load(folder)


def shares(tasks: Sequence[str]) -> list[float]:
    corpora = [shipped()[task].corpus for task in tasks]
    return [1 / len(set(corpora)) / corpora.count(corpus) for corpus in corpora]


def half_width(parts: Sequence[tuple[float, float]]) -> float:
    """Of the 95% interval of a sum with these (variance, df), by Welch and Satterthwaite."""
    total = sum(v for v, _ in parts)
    if math.sqrt(total) <= CLOSE:
        return 0.0
    return math.sqrt(total) * student.ppf(0.975, total**2 / sum(v**2 / df for v, df in parts if v))


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
        weights = shares(TASKS)
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
