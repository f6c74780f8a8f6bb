"""Variances of several pairs of models over the same corpora, each moderated by what all of them show."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from scipy import special

from biobench.stats.types import FloatArray

#: Below so many corpora the sample variances say too little of the prior: with 3, one model unlike the others brings
#: the family-wise error to 7%.
FEWEST = 4


def moderated_p(
    differences: Sequence[Sequence[float]], models: int, resolution: float = 0.0
) -> tuple[float, ...] | None:
    """Two-sided p of each pair's mean difference, its variance moderated by those of all pairs.

    differences: (pairs, corpora), all pairs of ``models`` models. Smyth 2004 (Stat. Appl. Genet. Mol. Biol. 3, 3)
    fits a scaled inverse chi-squared prior to the sample variances, by the mean and variance of their logarithms.
    Two guards against a model unlike the others, both chosen by simulation: no variance falls below the pair's own,
    and the prior is worth at most half the degrees of freedom that the pairs have beyond one (M models have M - 1
    independent pairs). resolution: as in ``mean_test``. None for fewer than 3 models or 4 corpora, or where a pair
    does not vary: there the plain t stands.
    """
    d = np.asarray(differences, dtype=np.float64)
    n = d.shape[1]
    s2: FloatArray = np.maximum(d.var(axis=1, ddof=1), resolution**2 / 6) if n > 1 else np.zeros(len(d))
    if models < 3 or n < FEWEST or (s2 <= 0).any():
        return None
    df = n - 1
    prior_df, prior = _prior(s2, df)
    prior_df = min(prior_df, (models - 2) * df / 2)
    variances = np.maximum((prior_df * prior + df * s2) / (prior_df + df), s2)
    p = 2 * special.stdtr(prior_df + df, -np.abs(d.mean(axis=1)) / np.sqrt(variances / n))
    return tuple(float(x) for x in p)


def _prior(s2: FloatArray, df: int) -> tuple[float, float]:
    """Degrees of freedom and variance of the prior; infinite where the variances differ by chance alone."""
    logs = np.log(s2) - special.digamma(df / 2) + math.log(df / 2)
    excess = float(logs.var(ddof=1)) - float(special.polygamma(1, df / 2))
    if excess <= 0:
        return math.inf, float(s2.mean())
    prior_df = 2 * _trigamma_inverse(excess)
    return prior_df, float(np.exp(logs.mean() + special.digamma(prior_df / 2) - math.log(prior_df / 2)))


def _trigamma_inverse(value: float) -> float:
    """x with polygamma(1, x) = value."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    return float(scipy.optimize.brentq(lambda x: float(special.polygamma(1, x)) - value, 1e-4, 1 / value + 1.0))
