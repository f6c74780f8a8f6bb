"""Several pairs of models (Holm, possible ranks), sameness within a margin, and what a test can
find.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import special

from biobench.stats.seeds import MeanTest
from biobench.stats.types import FloatArray, StatsInputError


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's step-down adjusted p values (1979), in the order given: the family-wise error rate.

    A p of None (no test) stays None and counts for nothing.
    """
    known = [p for p in p_values if p is not None]
    if not all(0 <= p <= 1 for p in known):
        raise StatsInputError(
            f"p values {known} are not between 0 and 1", hint="pass p values, or None for no test"
        )
    # as statsmodels' multipletests, whose import takes longer than a comparison
    order = np.argsort(known, kind="stable")
    adjusted = np.empty(len(known))
    adjusted[order] = np.maximum.accumulate(
        np.array(known)[order] * np.arange(len(known), 0, -1)
    ).clip(max=1.0)
    rest = iter(adjusted.tolist())
    return tuple(None if p is None else next(rest) for p in p_values)


def possible_ranks(models: int, ahead: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Best and worst rank of each of ``models``, 1 being the highest.

    ahead: (better, worse), the pairs that differ after Holm's correction over all pairs. All
    intervals hold the true ranks together with the level of the correction.
    """
    pairs = list(ahead)
    return tuple(
        (
            1 + sum(worse == i for _, worse in pairs),
            models - sum(better == i for better, _ in pairs),
        )
        for i in range(models)
    )


def task_ranks(means: FloatArray) -> FloatArray:
    """Ranks of the models within each task, (models, tasks): 1 is best, ties share their mean
    rank."""
    # equal scores must tie whatever the order in which their seeds were added
    rounded = np.round(means, 9)
    above = (rounded[None] > rounded[:, None]).sum(axis=1)
    level = (rounded[None] == rounded[:, None]).sum(axis=1)
    ranks: FloatArray = above + (level + 1) / 2
    return ranks


def equivalent(test: MeanTest, margin: float) -> float | None:
    """p of "the true difference lies outside ± ``margin``" (Schuirmann 1987): the larger of two
    one-sided t tests.

    margin: above zero, in the unit of the estimate. None without a standard error. At p <= alpha
    the interval of level 1 - 2 alpha lies within the margin.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise StatsInputError(f"margin {margin}", hint="above zero, in the unit of the scores")
    if test.se is None:
        return None
    room = margin - abs(test.estimate)
    if test.se == 0:
        return 0.0 if room > 0 else 1.0
    return float(special.stdtr(min(test.df or math.inf, 1e9), -room / test.se))


def detectable_difference(
    se: float, df: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """The true difference that a two-sided t test with this standard error and df finds with this
    power.

    In the unit of ``se``; by the noncentral t.
    """
    if not (math.isfinite(se) and se >= 0 and df > 0 and 0 < alpha < power < 1):
        raise StatsInputError(
            f"se {se}, df {df}, alpha {alpha}, power {power}", hint="se 0 or more, df above 0"
        )
    df = min(df, 1e4)
    return se * float(special.nctdtrinc(df, 1 - power, special.stdtrit(df, 1 - alpha / 2)))
