"""Whether two models are the same within a margin: two one-sided tests."""

from __future__ import annotations

import math

from scipy import special

from biobench.stats.means import MeanTest
from biobench.stats.types import StatsInputError


def tost(test: MeanTest, rope: float) -> float | None:
    """p of "the true difference lies outside ± ``rope``" (Schuirmann 1987): the larger of two one-sided t tests.

    rope: above zero, in the unit of the estimate. None without a standard error. At p <= alpha the interval of
    level 1 - 2 alpha lies within the margin.
    """
    if not (math.isfinite(rope) and rope > 0):
        raise StatsInputError(f"margin {rope}", hint="above zero, in the unit of the scores")
    if test.se is None:
        return None
    room = rope - abs(test.estimate)
    if test.se == 0:
        return 0.0 if room > 0 else 1.0
    df = math.inf if test.df is None else test.df
    return float(special.ndtr(-room / test.se) if math.isinf(df) else special.stdtr(df, -room / test.se))
