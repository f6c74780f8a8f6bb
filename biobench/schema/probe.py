"""A probe: a small classifier on the states of a frozen encoder."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from biobench.schema.kind import Traits
from biobench.schema.source import fail
from biobench.schema.strict import Strict


class Probe(Strict):
    """How a frozen encoder's states become an answer. Used with `training.encoder: frozen`."""

    kind: Literal["mlp", "linear", "similarity"] = "mlp"
    """mlp: dropout, linear, GELU, dropout, linear. linear: dropout, linear. similarity: the cosine of a pair's pooled
    states stands for its number, and no document is learned from; of `synonyms` it ranks the names of training."""
    pooling: Literal["cls", "mean", "attention"] = "attention"
    """cls: the first token's state. mean: of all tokens. attention: learned weights over the first token and the
    means of at most `segments` equal pieces of the sequence, which is what is kept in memory. Token tasks have
    nothing to pool: each word's answer comes from the state of its first sub-token."""
    segments: int = Field(32, ge=1, le=512)
    hidden: int | None = Field(None, gt=0)
    """Width of the hidden layer; null: the encoder's."""
    dropout: float = Field(0.1, ge=0, lt=1)
    standardise: bool = True
    """Each dimension of the states to mean 0 and variance 1 over the training documents."""
    learning_rates: list[float] = [1e-3]
    """The one with the best validation score is used."""
    epochs: int = Field(10, gt=0)
    batch_size: int = Field(32, gt=0)
    weight_decay: float = Field(0.01, ge=0, allow_inf_nan=False)

    @field_validator("learning_rates")
    @classmethod
    def _rates(cls, value: list[float]) -> list[float]:
        if not value or len(set(value)) < len(value) or not all(0 < rate < float("inf") for rate in value):
            raise fail("learning_rates must be distinct positive numbers", "for example [1e-4, 1e-3]")
        return value

    @model_validator(mode="after")
    def _pooled(self) -> Probe:
        if not self.trained and self.pooling == "attention":
            raise fail(f"pooling 'attention' is learned, and {self.kind} learns nothing", "use `pooling: mean`")
        return self

    @property
    def trained(self) -> bool:
        """Whether weights are learned, so that seeds differ."""
        return self.kind in ("mlp", "linear")


def check_probe(kind: Traits, probe: Probe | Literal["none"] | None) -> None:
    """Raise FieldError where a probe does not fit the kind of task. none: the encoder is trained."""
    if not kind.trains and (probe is None or probe == "none" or probe.kind != "similarity"):
        hint = "write `training: {encoder: frozen, ...}` and `probe: {kind: similarity, pooling: mean}`"
        raise fail(f"type '{kind.name}' trains nothing", hint)
    if probe == "none":
        return
    if probe is None:
        raise fail("a frozen encoder needs a probe", "add `probe: {}`")
    if probe.kind == "similarity" and kind.trains and not (kind.numeric and kind.pairs):
        raise fail(f"probe.kind 'similarity' does not fit type '{kind.name}'", "use `kind: linear`")
    if not kind.probes:
        raise fail(f"training.encoder 'frozen' does not fit type '{kind.name}' here", "use `encoder: trained`")
