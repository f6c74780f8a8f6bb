"""The last layer, computed only for the tokens that a head reads.

Every token is a key of the last attention, so that is computed for all. What follows it treats
each token alone and is left out where nobody reads the state. Dropout draws for all tokens, so a
seed's random numbers stay what they are without this; the dropout of an adapter draws for its own
input alone, and a layer with one is computed whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from biobench.models.dropout import Dropout
from biobench.models.grouped import Gather

AFTER_ATTENTION = "attention.output"
"""The part of a layer of BERT's kind from which on each token stands alone."""


class LastLayer:
    """The last layer of a model, which can leave out tokens. Outside of `only` it is untouched."""

    def __init__(self, layer: nn.Module) -> None:
        """layer: of BERT's kind (see `find_last_layer`)."""
        self.layer = layer
        self.dropouts = [m for m in layer.modules() if isinstance(m, Dropout)]

    @property
    def draws_alike(self) -> bool:
        """Whether no dropout of the layer draws other numbers for a part of the tokens."""
        return not any(type(m) is nn.Dropout and m.p for m in self.layer.modules())

    @contextmanager
    def only(self, rows: Tensor) -> Iterator[None]:
        """Meanwhile the states of a packed row are those of `rows` (ascending), and 0 elsewhere."""
        tokens = 0

        def choose(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            """inputs: (1, tokens, width) each."""
            nonlocal tokens
            tokens = inputs[0].shape[1]
            for dropout in self.dropouts:
                dropout.drawn = rows, tokens
            chosen = []
            for states in inputs:
                kept = Gather.apply(states[0], rows)  # type: ignore[no-untyped-call]
                chosen.append(kept[None])
            return tuple(chosen)

        def spread(_: nn.Module, __: Any, states: Tensor) -> Tensor:
            return states.new_zeros(1, tokens, states.shape[-1]).index_copy(1, rows, states)

        after_attention = self.layer.get_submodule(AFTER_ATTENTION)
        hooks = [
            after_attention.register_forward_pre_hook(choose),
            self.layer.register_forward_hook(spread),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()
            for dropout in self.dropouts:
                dropout.drawn = None


def find_last_layer(model: nn.Module) -> LastLayer | None:
    """The last layer of a model of BERT's kind; None for others."""
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    layers = max(lists, key=len, default=nn.ModuleList())
    if len(layers) > 0 and AFTER_ATTENTION in dict(layers[-1].named_modules()):
        return LastLayer(layers[-1])
    return None
