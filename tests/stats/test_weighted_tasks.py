"""A mean over tasks with weights of the reader's own: its interval is that of the sum of independent tasks."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.stats import StatsInputError
from biobench.stats.within import within_tasks_seeds

FIRST = [[0.80, 0.82, 0.81, 0.83], [0.50, 0.56, 0.53, 0.51]]
SECOND = [[0.78, 0.79, 0.80, 0.79], [0.52, 0.50, 0.49, 0.53]]


def test_the_weighted_difference_and_its_standard_error() -> None:
    test = within_tasks_seeds(FIRST, SECOND, weights=[3, 1]).test
    assert test is not None
    gaps = [np.subtract(a, b) for a, b in zip(FIRST, SECOND, strict=True)]
    assert test.estimate == pytest.approx(0.75 * gaps[0].mean() + 0.25 * gaps[1].mean())
    errors = [0.75**2 * gaps[0].var(ddof=1) / 4, 0.25**2 * gaps[1].var(ddof=1) / 4]
    assert test.se == pytest.approx(np.sqrt(sum(errors)))
    satterthwaite = sum(errors) ** 2 / sum(e**2 / 3 for e in errors)
    assert test.df == pytest.approx(satterthwaite)


def test_equal_weights_are_the_plain_mean() -> None:
    plain = within_tasks_seeds(FIRST, SECOND).test
    weighted = within_tasks_seeds(FIRST, SECOND, weights=[2, 2]).test
    assert plain is not None
    assert weighted is not None
    assert (weighted.estimate, weighted.se, weighted.p) == pytest.approx((plain.estimate, plain.se, plain.p))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("nan")]])
def test_weights_that_are_none_are_refused(weights: list[float]) -> None:
    with pytest.raises(StatsInputError, match="weights"):
        within_tasks_seeds(FIRST, SECOND, weights=weights)
