"""Linear CKA of two sets of states by two estimators, each with its jackknife over texts, in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.errors import ModelError

Floats = NDArray[np.float64]
FEWEST = 5
"""Texts that the debiased estimate needs once one is left out."""


@dataclass(frozen=True)
class Estimate:
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

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Low and high end: t with n - 1 degrees of freedom on the jackknife error."""
        from scipy import stats

        half = float(stats.t.ppf((1 + level) / 2, self.n - 1)) * self.se
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
        log = Estimate(
            math.log(self.value / other.value),
            self.deviations / self.value - other.deviations / other.value,
            min(self.n, other.n),
        )
        low, high = log.interval()
        # Where a divergence is far below its error the upper end leaves the range of floats.
        return self.value / other.value, math.exp(low), math.exp(high) if high < 700 else math.inf


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several estimates over the same texts (layers of a group, drawings of texts)."""
    return Estimate(
        float(np.mean([e.value for e in estimates])),
        np.mean([e.deviations for e in estimates], axis=0),
        min(e.n for e in estimates),
    )


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
    rows_k, rows_l = k.sum(axis=1), l.sum(axis=1)
    products = k * l
    product_rows, diagonal = products.sum(axis=1), np.diagonal(products)
    diagonal_k, diagonal_l = np.diagonal(k), np.diagonal(l)
    product, cross = products.sum(), rows_k @ rows_l
    without = (
        product - 2 * product_rows + diagonal,
        # row sums lose the left-out column, then the left-out row goes
        cross
        - k @ rows_l
        - l @ rows_k
        + product_rows
        - (rows_k - diagonal_k) * (rows_l - diagonal_l),
        rows_k.sum() - 2 * rows_k + diagonal_k,
        rows_l.sum() - 2 * rows_l + diagonal_l,
    )
    return np.array([product, cross, rows_k.sum(), rows_l.sum()]), np.array(without)


def _biased(sums: Floats, n: int) -> Floats:
    """n² times HSIC: the trace of the product of the centred matrices."""
    product, cross, k, l = sums  # noqa: E741
    return np.asarray(product - 2 * cross / n + k * l / n**2)


def _debiased(sums: Floats, n: int) -> Floats:
    """Song et al. 2012, eq. 5, from matrices without their diagonals."""
    product, cross, k, l = sums  # noqa: E741
    return np.asarray((product + k * l / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)) / (n * (n - 3)))
