"""Linear CKA of two sets of states by two estimators, each with its jackknife over texts, in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.errors import ModelError

Floats = NDArray[np.float64]
FEWEST = 5
"""Texts that the debiased estimate needs once one is left out."""


class Estimate(NamedTuple):
    """A number with its delete-one jackknife over texts.

    deviations: (texts,) the value without each text, less their mean; 0 for texts that the value
    does not use. n: how many it uses. Deviations of sums and means are those of the parts, so
    errors that two values share through their texts cancel in a difference or ratio.
    """

    value: float
    deviations: Floats
    n: int

    @property
    def se(self) -> float:
        """Jackknife standard error."""
        return math.sqrt((self.n - 1) / self.n * float(self.deviations @ self.deviations))

    def interval(self) -> tuple[float, float]:
        """Low and high end, 95%: t with n - 1 degrees of freedom on the jackknife error."""
        from scipy import stats

        half = float(stats.t.ppf(0.975, self.n - 1)) * self.se
        return self.value - half, self.value + half

    def complement(self) -> Estimate:
        """1 less the value: the divergence of a similarity."""
        return Estimate(1 - self.value, -self.deviations, self.n)

    def over(self, other: Estimate) -> tuple[float, float, float] | None:
        """Ratio to `other` with its 95% interval, made on the log scale; None unless both are above
        0.
        """
        if self.value <= 0 or other.value <= 0:
            return None
        ratio = self.value / other.value
        deviations = self.deviations / self.value - other.deviations / other.value
        log = Estimate(math.log(ratio), deviations, min(self.n, other.n))
        low, high = log.interval()
        upper = math.inf
        # Where a divergence is far below its error the upper end leaves the range of floats.
        if high < 700:
            upper = math.exp(high)
        return ratio, math.exp(low), upper


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several estimates over the same texts (layers of a group, drawings of texts)."""
    values, deviations, counts = zip(*estimates, strict=True)
    return Estimate(float(np.mean(values)), np.mean(deviations, axis=0), min(counts))


def gram(states: ArrayLike) -> Floats:
    """Inner products (texts, texts) of `states` (texts, width) after centring every column."""
    x = np.asarray(states, dtype=np.float64)
    x = x - x.mean(axis=0)
    products: Floats = x @ x.T
    return products


def cka(
    first: Floats, second: Floats, *, texts: NDArray[np.int64], total: int
) -> dict[str, Estimate]:
    """CKA of two Gram matrices (n, n) of the same texts by each estimator, ``biased`` and
    ``debiased``.

    texts, total: which of `total` texts the rows are, as several drawings share texts; deviations
    have `total` entries. Raises ModelError for states that are the same for all texts.
    """
    n = len(texts)
    estimates = {}
    hollow = [k - np.diag(np.diagonal(k)) for k in (first, second)]
    for name, criterion, (x, y) in (
        ("biased", _biased, (first, second)),
        ("debiased", _debiased, hollow),
    ):
        sums = [_sums(a, b) for a, b in ((x, y), (x, x), (y, y))]
        between, *norms = (float(criterion(whole, n)) for whole, _ in sums)
        if min(norms) <= 0:
            raise ModelError(
                "the states of a layer are the same for all texts", hint="give texts that differ"
            )
        cross, a, b = (criterion(without, n - 1) for _, without in sums)
        ratios = cross / np.sqrt(a * b)
        deviations = np.zeros(total)
        deviations[texts] = ratios - ratios.mean()
        value = between / math.sqrt(norms[0] * norms[1])
        estimates[name] = Estimate(value, deviations, n)
    return estimates


def _sums(k: Floats, l: Floats) -> tuple[Floats, Floats]:  # noqa: E741
    """Sum of the products of entries, product of the row sums, and the sums of all entries of two
    matrices.

    (4,) of all texts, and (4, n) without each text in turn; O(n²) for all texts together.
    """
    rows_k = k.sum(axis=1)
    rows_l = l.sum(axis=1)
    diagonal_k = np.diagonal(k)
    diagonal_l = np.diagonal(l)
    products = k * l
    rows = products.sum(axis=1)
    diagonal = np.diagonal(products)
    product = products.sum()
    cross = rows_k @ rows_l
    sum_k = rows_k.sum()
    sum_l = rows_l.sum()
    product_without = product - 2 * rows + diagonal
    # row sums lose the left-out column, then the left-out row goes
    cross_without = cross - k @ rows_l - l @ rows_k + rows
    cross_without -= (rows_k - diagonal_k) * (rows_l - diagonal_l)
    k_without = sum_k - 2 * rows_k + diagonal_k
    l_without = sum_l - 2 * rows_l + diagonal_l
    without = np.array([product_without, cross_without, k_without, l_without])
    return np.array([product, cross, sum_k, sum_l]), without


def _biased(sums: Floats, n: int) -> Floats:
    """n² times HSIC: the trace of the product of the centred matrices."""
    product, cross, k, l = sums  # noqa: E741
    return np.asarray(product - 2 * cross / n + k * l / n**2)


def _debiased(sums: Floats, n: int) -> Floats:
    """Song et al. 2012, eq. 5, from matrices without their diagonals."""
    product, cross, k, l = sums  # noqa: E741
    by_sums = k * l / ((n - 1) * (n - 2))
    by_rows = 2 * cross / (n - 2)
    return np.asarray((product + by_sums - by_rows) / (n * (n - 3)))
