"""What of an encoder a run trains, and how the tuned track searches; parts of the spec's `training`."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from biobench.schema.source import fail
from biobench.schema.strict import Strict, plain

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Adapter(Strict):
    """Small trained weights beside frozen ones, through `peft` (extra `adapters`); merged when the run ends."""

    method: Literal["lora", "dora", "ia3"] = "lora"
    """LoRA (Hu et al. 2022, arXiv:2106.09685), DoRA (Liu et al. 2024, arXiv:2402.09353), IA3 (Liu et al. 2022,
    arXiv:2205.05638)."""
    rank: int = Field(8, gt=0)
    """lora, dora: rank of the update."""
    alpha: float = Field(16.0, gt=0, allow_inf_nan=False)
    """lora, dora: the update is scaled by alpha / rank."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """lora, dora: on the adapter's input."""
    targets: Literal["attention", "linear"] | tuple[str, ...] = "attention"
    """attention: every linear layer of an attention block; linear: every linear layer of the encoder; or the last
    parts of the modules' names."""

    @model_validator(mode="after")
    def _named(self) -> Adapter:
        if not self.targets:
            raise fail("training.adapter.targets names no module", "use attention, linear, or names of modules")
        return self


class Range(Strict):
    """Values between two ends; log: drawn evenly on the logarithm's scale."""

    low: int | Finite
    high: int | Finite
    log: bool = False
    """Two whole numbers are the ends of a range of whole numbers."""


def _plain_values(values: Any) -> Any:
    return tuple(plain(value) for value in values) if isinstance(values, list | tuple) else values


Choices = Annotated[tuple[bool | int | float | str | None, ...], BeforeValidator(_plain_values)]
NOT_SEARCHED = (
    *("grid", "search", "train_fraction", "train_documents", "validation_documents", "encoder", "precision"),
)
"""Fields of `training` that a trial may not change: they decide on what data, in what form and how a run is made."""


class Search(Strict):
    """What the tuned track tries, in place of `training.grid`: every point of a grid, or a study.

    The names are fields of `training`, as dotted paths (`learning_rate`, `adapter.rank`), and `head.dropout`.
    """

    grid: dict[str, Choices] | None = None
    """Field to its values; every combination is one trial, the last field changing fastest."""
    study: dict[str, Choices | Range] | None = None
    """Field to its values or its range; trials are drawn one after the other by `sampler`."""
    trials: int | None = Field(None, gt=0)
    """The study's budget; a grid's is the number of its points."""
    sampler: Literal["tpe", "random"] = "tpe"
    """tpe: tree-structured Parzen estimator (Bergstra et al. 2011) of optuna (extra `search`)."""

    @property
    def budget(self) -> int:
        """How many trials it takes."""
        return self.trials if self.grid is None else math.prod(map(len, self.grid.values()))  # type: ignore[return-value]

    @model_validator(mode="after")
    def _one(self) -> Search:
        if (self.grid is None) == (self.study is None):
            raise fail("training.search is either a grid or a study", "give one of them")
        if (self.study is None) != (self.trials is None):
            raise fail("training.search.trials is the budget of a study", "give it with `study`, and not with `grid`")
        space = self.grid if self.grid is not None else self.study
        assert space is not None
        if not space:
            raise fail("training.search names no field", "for example {learning_rate: [2e-5, 5e-5]}")
        for name, values in space.items():
            if name.split(".")[0] in NOT_SEARCHED:
                raise fail(f"training.search cannot change '{name}'", "leave it out; it is a field of the task")
            if isinstance(values, Range):
                if not values.low < values.high or (values.log and values.low <= 0):
                    what = f"training.search: the range of '{name}' needs low < high, and with log a low above 0"
                    raise fail(what, "for example {low: 1e-5, high: 1e-4}")
            elif not values or len(set(map(repr, values))) < len(values):
                raise fail(f"training.search: the values of '{name}' must be distinct, at least one", "list each once")
        return self
