"""Linear centred kernel alignment (CKA) of two sets of states, with what other texts would change in it.

Two estimators. The biased one (Kornblith et al. 2019, the paper's) is far above 0 for unrelated states when the
texts are not many more than the dimensions: about 0.61 for 500 texts of width 768. The debiased one puts the
unbiased estimate of the Hilbert-Schmidt independence criterion (Song et al. 2012, eq. 5) in its place and is 0
there on average. All sums are float64: in float32 the large common offsets of deep layers swamp the rest.
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

    deviations: (texts,) the value without each text, less their mean; 0 for texts that the value does not
    use. n: how many it uses. Deviations of sums and means are those of the parts, so errors that two values
    share through their texts cancel in a difference or ratio.
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
        """Ratio to `other` with its 95% interval, made on the log scale; None unless both are above 0."""
        if self.value <= 0 or other.value <= 0:
            return None
        log = Estimate(
            math.log(self.value / other.value),
            self.deviations / self.value - other.deviations / other.value,
            min(self.n, other.n),
        )
        low, high = log.interval()
        # Where a divergence is nearly nothing beside its error the upper end leaves the range of floats.
        return self.value / other.value, math.exp(low), math.exp(high) if high < 700 else math.inf


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several estimates over the same texts (layers of a group, drawings of texts)."""
    return Estimate(
        float(np.mean([e.value for e in estimates])),
        np.mean([e.deviations for e in estimates], axis=0),
        min(e.n for e in estimates),
    )


@dataclass(frozen=True)
class Similarity:
    """CKA of two sets of states by both estimators."""

    biased: Estimate
    debiased: Estimate


def gram(states: ArrayLike) -> Floats:
    """Inner products (texts, texts) of `states` (texts, width) after centring every column."""
    x = np.asarray(states, dtype=np.float64)
    x = x - x.mean(axis=0)
    products: Floats = x @ x.T
    return products


def linear_cka(first: ArrayLike, second: ArrayLike) -> Similarity:
    """CKA of two sets of states (texts, width) of the same texts; the widths may differ."""
    return cka(gram(first), gram(second))


def cka(
    first: Floats, second: Floats, *, texts: NDArray[np.int64] | None = None, total: int | None = None
) -> Similarity:
    """CKA from two Gram matrices (n, n) of the same texts.

    texts, total: which of `total` texts the rows are, where several drawings share texts; deviations then have
    `total` entries. Raises ModelError for fewer than 5 texts and for states that are the same for all texts.
    """
    n = first.shape[0]
    if first.shape != second.shape or n < FEWEST:
        raise ModelError(
            f"CKA of {first.shape[0]} and {second.shape[0]} texts", hint=f"give the same {FEWEST} texts or more to both"
        )
    values = {}
    for name, matrices in (("biased", (first, second)), ("debiased", (_hollow(first), _hollow(second)))):
        k, l = matrices  # noqa: E741
        criterion = _biased if name == "biased" else _debiased
        whole, without = [], []
        for a, b in ((k, l), (k, k), (l, l)):
            sums, left_out = _sums(a, b)
            whole.append(criterion(sums, n))
            without.append(criterion(left_out, n - 1))
        if min(whole[1].item(), whole[2].item()) <= 0:
            raise _same()
        values[name] = _estimate(_ratio(*whole).item(), _ratio(*without), texts, total)
    return Similarity(values["biased"], values["debiased"])


Sums = tuple[Floats, Floats, Floats, Floats]
"""Of two matrices: sum of the products of entries, product of the row sums, and the two sums of all entries."""


@dataclass(frozen=True)
class Counted:
    """Sums of Gram matrices between two sets of states, of the first and of the second, over `n` rows."""

    n: int
    biased: tuple[Sums, Sums, Sums]
    debiased: tuple[Sums, Sums, Sums]


def of_counted(whole: Counted, without: Sequence[Counted]) -> Similarity:
    """CKA from sums of all rows, and from those without each text in turn. Raises ModelError as `cka` does."""
    values_of = {}
    for name, criterion in (("biased", _biased), ("debiased", _debiased)):
        values = []
        for counted in (whole, *without):
            parts = [criterion(sums, counted.n).item() for sums in getattr(counted, name)]
            if min(parts[1:]) <= 0:
                raise _same()
            values.append(parts[0] / math.sqrt(parts[1] * parts[2]))
        values_of[name] = _estimate(values[0], np.asarray(values[1:]), None, None)
    return Similarity(values_of["biased"], values_of["debiased"])


def _same() -> ModelError:
    return ModelError("the states of a layer are the same for all texts", hint="give texts that differ")


def _sums(k: Floats, l: Floats) -> tuple[Sums, Sums]:  # noqa: E741
    """The four sums, and the same without each text in turn (n,); O(n²) for all texts together."""
    rows_k, rows_l = k.sum(axis=1), l.sum(axis=1)
    products = k * l
    product_rows, diagonal = products.sum(axis=1), np.diagonal(products)
    diagonal_k, diagonal_l = np.diagonal(k), np.diagonal(l)
    product, cross = products.sum(), rows_k @ rows_l
    whole = (product, np.asarray(cross), rows_k.sum(), rows_l.sum())
    without = (
        product - 2 * product_rows + diagonal,
        # row sums lose the left-out column, then the left-out row goes
        cross - k @ rows_l - l @ rows_k + product_rows - (rows_k - diagonal_k) * (rows_l - diagonal_l),
        rows_k.sum() - 2 * rows_k + diagonal_k,
        rows_l.sum() - 2 * rows_l + diagonal_l,
    )
    return whole, without


def _biased(sums: Sums, n: int) -> Floats:
    """n² times HSIC: the trace of the product of the centred matrices."""
    product, cross, k, l = sums  # noqa: E741
    return np.asarray(product - 2 * cross / n + k * l / n**2)


def _debiased(sums: Sums, n: int) -> Floats:
    """Song et al. 2012, eq. 5, from matrices without their diagonals."""
    product, cross, k, l = sums  # noqa: E741
    return np.asarray((product + k * l / ((n - 1) * (n - 2)) - 2 * cross / (n - 2)) / (n * (n - 3)))


def _hollow(k: Floats) -> Floats:
    return k - np.diag(np.diagonal(k))


def _ratio(between: Floats, first: Floats, second: Floats) -> Floats:
    return np.asarray(between / np.sqrt(first * second))


def _estimate(value: float, left_out: Floats, texts: NDArray[np.int64] | None, total: int | None) -> Estimate:
    deviations = left_out - left_out.mean()
    if texts is not None and total is not None:
        placed = np.zeros(total)
        placed[texts] = deviations
        deviations = placed
    return Estimate(value, deviations, len(left_out))
