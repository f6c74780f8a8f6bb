"""Linear CKA over all tokens of all texts, streamed: nothing that grows with the number of tokens is kept.

With a linear kernel every sum over pairs of tokens is a product of sums over tokens: the inner products of two
Gram matrices are the squared entries of one (width, width) matrix, and the debiased estimate needs only a few
vectors and numbers besides. So each layer keeps its `Moments`, float64, and the result is that of the Gram
matrices of all tokens, exactly. Tokens of a text are not independent, so the jackknife leaves out whole texts; it
takes a second pass, which subtracts each text's own moments from the totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from biobench.core.machine import resolve_device
from biobench.errors import ModelError
from trainer.analysis.states import FEWEST, blocks_of, hooked, load_encoder

Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class Moments:
    """Sums over tokens of two sets of states x, y (tokens, width), all float64 and additive.

    x, y: of the states. product: of their outer products, (width, width). x_norms, y_norms: of the squared
    norms. norms: of the products of the squared norms. y_by_x: of y times the squared norm of x; x_by_y alike.
    """

    tokens: int
    x: Tensor
    y: Tensor
    product: Tensor
    x_norms: Tensor
    y_norms: Tensor
    norms: Tensor
    y_by_x: Tensor
    x_by_y: Tensor

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Moments:
        """The sums of these tokens."""
        kx, ky = x.square().sum(dim=1), y.square().sum(dim=1)
        return cls(len(x), x.sum(dim=0), y.sum(dim=0), x.T @ y, kx.sum(), ky.sum(), kx @ ky, kx @ y, ky @ x)

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    def sums(self, *, hollow: bool) -> Sums:
        """The four sums of the two Gram matrices; hollow: without their diagonals."""
        product, cross = self.product.square().sum(), self.x @ self.product @ self.y
        k, l = self.x @ self.x, self.y @ self.y  # noqa: E741
        if hollow:
            product, cross = product - self.norms, cross - self.y_by_x @ self.y - self.x_by_y @ self.x + self.norms
            k, l = k - self.x_norms, l - self.y_norms  # noqa: E741
        return _number(product), _number(cross), _number(k), _number(l)


def _number(value: Tensor) -> NDArray[np.float64]:
    return np.asarray(value.item(), dtype=np.float64)


@dataclass(frozen=True)
class Triple:
    """The moments of a layer: between the two checkpoints, and of each with itself."""

    between: Moments
    first: Moments
    second: Moments

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Triple:
        """The sums of these tokens (tokens, width)."""
        return cls(Moments.of(x, y), Moments.of(x, x), Moments.of(y, y))

    def __add__(self, other: Triple) -> Triple:
        return Triple(self.between + other.between, self.first + other.first, self.second + other.second)

    def __sub__(self, other: Triple) -> Triple:
        return Triple(self.between - other.between, self.first - other.first, self.second - other.second)

    def counted(self) -> Counted:
        """How many tokens, and the sums of Gram matrices that both estimators need."""
        biased, debiased = (
            (self.between.sums(hollow=h), self.first.sums(hollow=h), self.second.sums(hollow=h)) for h in (False, True)
        )
        return Counted(self.between.tokens, biased, debiased)


def token_similarity(
    first: str | Path,
    second: str | Path,
    ids: Sequence[Sequence[int]],
    *,
    device: str = "auto",
    dtype: torch.dtype = torch.float32,
) -> list[Similarity]:
    """CKA of every layer of two checkpoints over all tokens of `ids`, with the jackknife over texts.

    Held at a time: both models, the first's states of one text, three matrices (width, width) a layer. Raises
    ModelError for fewer than 5 texts, states that are not finite and states that are the same for all tokens.
    """
    if len(ids) < FEWEST:
        raise ModelError(f"CKA of {len(ids)} texts", hint=f"give {FEWEST} texts or more")
    where = resolve_device(device)
    models = [load_encoder(checkpoint, where, dtype) for checkpoint in (first, second)]
    depth = int(models[0].config.num_hidden_layers)
    blocks = [blocks_of(model, depth) for model in models]
    first_states: dict[int, Tensor] = {}
    shifts: dict[int, tuple[Tensor, Tensor]] = {}

    def walk(use: Callable[[int, int, Triple], None]) -> None:
        """Both models over all texts; `use` is told of each text and layer."""
        at = {"text": 0}

        def pair(layer: int, states: Tensor) -> None:
            x, y = first_states.pop(layer).double(), states.double()
            # Neither estimator depends on a shift; sums of states near 0 keep more digits.
            c, d = shifts.setdefault(layer, (x.mean(dim=0), y.mean(dim=0)))
            use(at["text"], layer, Triple.of(x - c, y - d))

        with torch.inference_mode(), hooked(blocks[0], first_states.__setitem__), hooked(blocks[1], pair):
            for at["text"], text in enumerate(ids):
                tokens = torch.tensor([list(text)], device=where)
                for model in models:
                    model(input_ids=tokens)

    totals: dict[int, Triple] = {}

    def add(_text: int, layer: int, triple: Triple) -> None:
        totals[layer] = totals[layer] + triple if layer in totals else triple

    walk(add)
    for layer, total in totals.items():
        if not bool(torch.isfinite(total.between.norms + total.first.norms + total.second.norms)):
            raise ModelError(
                f"layer {layer} of '{first}' or '{second}' has a state that is not finite",
                hint="try --dtype float32; if that does not help, a checkpoint is damaged",
            )
    rest: list[list[Counted]] = [[] for _ in range(depth)]

    def leave_out(_text: int, layer: int, triple: Triple) -> None:
        rest[layer].append((totals[layer] - triple).counted())

    walk(leave_out)
    return [of_counted(totals[layer].counted(), rest[layer]) for layer in range(depth)]
