"""Linear CKA over all tokens of all texts, streamed: nothing that grows with the number of tokens is kept.

With a linear kernel every sum over pairs of tokens is a product of sums over tokens: the inner products of two
Gram matrices are the squared entries of one (width, width) matrix, and the debiased estimate needs only a few
vectors and numbers besides. So each layer keeps its `Moments`, float64, and the result is that of the Gram
matrices of all tokens, exactly. Tokens of a text are not independent, so the jackknife leaves out whole texts; it
takes a second pass, which subtracts each text's own moments from the totals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from biobench.core.machine import resolve_device
from biobench.errors import ModelError
from trainer.analysis.similarity import FEWEST, Counted, Similarity, Sums, of_counted
from trainer.analysis.states import blocks_of, hooked, load_encoder


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
