"""Variance components: known truths come back, intervals cover them, and what cannot be told apart is refused."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import variance_components
from biobench.stats.types import StatsInputError

TRUE = {"task": 8.0, "head initialisation": 1.0, "data order": 0.5, "rest": 0.4, "test sampling": 0.9}
"""Standard deviations, in points."""


def drawn(rng: np.random.Generator, tasks: int, heads: int, orders: int, repeats: int = 1):
    """(tasks, heads, orders, repeats) scores, each task with one draw of its test set."""
    return (
        60
        + TRUE["task"] * rng.normal(size=(tasks, 1, 1, 1))
        + TRUE["test sampling"] * rng.normal(size=(tasks, 1, 1, 1))
        + TRUE["head initialisation"] * rng.normal(size=(tasks, heads, 1, 1))
        + TRUE["data order"] * rng.normal(size=(tasks, 1, orders, 1))
        + TRUE["rest"] * rng.normal(size=(tasks, heads, orders, repeats))
    )


def test_simulated_components_come_back_and_their_intervals_cover_them():
    """120 designs of 6 tasks x 4 heads x 4 orders: unbiased within noise, each interval near 95%."""
    rng = np.random.default_rng(0)
    variances: dict[str, list[float]] = {name: [] for name in TRUE}
    covered = dict.fromkeys(TRUE, 0)
    repeats = 120
    for _ in range(repeats):
        noise = TRUE["test sampling"] ** 2 * rng.chisquare(99, 6) / 99
        for part in variance_components(drawn(rng, 6, 4, 4), noise, [100] * 6):
            variances[part.part].append(part.sd**2)
            covered[part.part] += part.low <= TRUE[part.part] <= part.high
    for name, true in TRUE.items():
        mean, error = np.mean(variances[name]), np.std(variances[name]) / np.sqrt(repeats)
        assert abs(mean - true**2) <= 3 * error, (name, mean)
        assert covered[name] / repeats >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / repeats), (name, covered)


def test_the_mixed_model_gives_the_analysis_of_variance_where_the_design_is_balanced():
    x = drawn(np.random.default_rng(1), 5, 4, 3, 2)
    parts = {part.part: part.sd**2 for part in variance_components(x)}
    task, head, order = x.mean(axis=(1, 2, 3)), x.mean(axis=(2, 3)), x.mean(axis=(1, 3))
    squares = [6 * ((head - task[:, None]) ** 2).sum(), 8 * ((order - task[:, None]) ** 2).sum()]
    rest = (((x - task[:, None, None, None]) ** 2).sum() - sum(squares)) / (5 * 24 - 5 - 15 - 10)
    heads, orders = squares[0] / 15, squares[1] / 10
    assert parts["rest"] == pytest.approx(rest, rel=1e-3)
    assert parts["head initialisation"] == pytest.approx((heads - rest) / 6, rel=1e-3)
    assert parts["data order"] == pytest.approx((orders - rest) / 8, rel=1e-3)
    between = 24 * task.var(ddof=1)
    assert parts["task"] == pytest.approx((between - heads - orders + rest) / 24, rel=1e-2)


def test_shares_are_of_one_runs_variance_on_a_task_and_the_test_set_is_taken_off_the_tasks():
    x = drawn(np.random.default_rng(2), 6, 4, 4)
    bare = {p.part: p for p in variance_components(x)}
    known = {p.part: p for p in variance_components(x, [4.0] * 6, [50] * 6)}
    assert sum(p.share for p in known.values() if p.share is not None) == pytest.approx(1.0)
    assert known["task"].share is None
    assert known["task"].sd ** 2 == pytest.approx(bare["task"].sd ** 2 - 4.0)
    assert known["test sampling"].sd == 2.0
    (first, *_) = variance_components(x[:1])
    assert first.part == "head initialisation", "one task says nothing about tasks"


def test_a_source_without_effect_is_near_zero_and_equal_scores_have_none():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1, 1, 6, 1)) + 0.05 * rng.normal(size=(1, 6, 6, 1))
    parts = {p.part: p for p in variance_components(x)}
    assert parts["head initialisation"].sd < 0.05 < parts["data order"].sd
    assert {p.sd for p in variance_components(np.ones((2, 2, 2, 1)))} == {0.0}


@pytest.mark.parametrize("shape", [(2, 1, 4, 1), (2, 4, 1, 1), (4, 4, 1), (0, 2, 2, 1)])
def test_what_is_not_crossed_is_refused(shape):
    with pytest.raises(StatsInputError, match="no crossed design"):
        variance_components(np.zeros(shape))
