"""How a task is learned: window, recipe, adapter, head and probe; parts of a spec."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from biobench.schema.source import fail, later
from biobench.schema.strict import Fraction, Positive, Strict
from biobench.schema.yaml12 import plain

BelowOne = Annotated[float, Field(ge=0, lt=1)]
"""A share of what is left out, or of what is remembered."""


class Protocol(Strict):
    """How documents meet the encoder's window."""

    max_length: int = Field(512, gt=7)
    """Tokens, special tokens included; the effective window is the smaller of this and the model's
    own.
    """
    long_documents: Literal["truncate", "stride"] = "truncate"
    """stride: a longer document is read through overlapping windows, and what they say is merged.
    """
    stride: PositiveInt = later(128)
    """Tokens that neighbouring windows share."""
    merge: Literal["max", "mean"] = later("max")
    """How the label scores of a document's windows become one."""
    pairs: Literal["shorten_longer", "shorten_text"] = later("shorten_longer")
    """What is cut where a pair is longer than the window: the longer of the two texts, or the
    second alone.
    """


class Adapter(Strict):
    """Small trained weights beside frozen ones, through `peft` (extra `adapters`); merged when the
    run ends.
    """

    method: Literal["lora", "dora", "ia3"] = "lora"
    """LoRA (Hu et al. 2022, arXiv:2106.09685), DoRA (Liu et al. 2024, arXiv:2402.09353), IA3 (Liu
    et al. 2022, arXiv:2205.05638).
    """
    rank: PositiveInt = 8
    """lora, dora: rank of the update."""
    alpha: PositiveFloat = 16.0
    """lora, dora: the update is scaled by alpha / rank."""
    dropout: BelowOne = 0.0
    """lora, dora: on the adapter's input."""
    targets: Literal["attention", "linear"] | Annotated[tuple[str, ...], Field(min_length=1)] = (
        "attention"
    )
    """attention: every linear layer of an attention block; linear: every linear layer of the
    encoder; or the last parts of the modules' names.
    """


Rates = TypeVar("Rates", list[float], tuple[float, ...])
Rate = Annotated[float, Field(gt=0, le=1e10)]
"""Learning rates beyond it are slips of the pen, and no number that a record holds."""


def _distinct(rates: Rates) -> Rates:
    if not rates or len(set(rates)) < len(rates):
        raise fail(f"rates {list(rates)} are not distinct", "for example [1e-4, 1e-3]")
    return rates


class Training(Strict):
    """The fine-tuning recipe."""

    epochs: PositiveInt | None = None
    max_steps: PositiveInt | None = None
    learning_rate: Rate
    head_learning_rate: Rate | None = later(None)
    """Peak rate of the head's own weights; null: that of the encoder."""
    batch_size: PositiveInt = 16
    """Documents (sentences) per optimiser step, whatever the micro-batches."""
    weight_decay: NonNegativeFloat = 0.01
    warmup_ratio: Fraction = 0.0
    """Share of all steps over which the rate rises linearly; then it falls linearly to 0."""
    max_grad_norm: PositiveFloat = 1.0
    adam_beta1: BelowOne = 0.9
    adam_beta2: BelowOne = 0.999
    adam_epsilon: PositiveFloat = 1e-8
    evaluate_every: Literal["epoch"] | Positive = "epoch"
    """Validation after each epoch, or every k optimiser steps."""
    patience: PositiveInt | None = None
    """Stop after this many validations without a better score."""
    encoder: Literal["trained", "frozen"] = "trained"
    """frozen: its states are computed once and a `probe` is trained on them; the recipe here is
    then not used.
    """
    batching: Literal["random", "bucketed"] = "random"
    """random: a batch is a uniform draw; its cost follows real tokens all the same. bucketed:
    batches of similar length, drawn from windows of 50 batches.
    """
    positive_weights: Literal["none", "ratio"] = "none"
    """ratio (multi-label): per label, training documents without it / max(with it, 1)."""
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    grid: Annotated[tuple[Rate, ...], AfterValidator(_distinct)] = later((0.4, 1.0, 2.0))
    """--track tuned: what the rates are multiplied by, one whole run each; the best on validation
    is kept.
    """
    train_fraction: float = later(1.0, gt=0, le=1)
    """Share of the training documents, by one fixed shuffle: a smaller share is part of every
    larger one.
    """
    head_seed: NonNegativeInt | None = later(None)
    """Draws the head's initial weights; null: the run's seed."""
    order_seed: NonNegativeInt | None = later(None)
    """Draws the order of the training documents; null: the run's seed."""
    train_documents: PositiveInt | None = later(None)
    """Training documents at most, the first of the same shuffle; null: all."""
    validation_documents: PositiveInt | None = later(None)
    """Validation documents at most, the first of the same shuffle; null: all. The test split is
    never cut.
    """

    adapter: Adapter | None = later(None)
    """Train small weights beside the encoder's frozen ones."""
    top_layers: NonNegativeInt | None = later(None)
    """Train this many layers at the encoder's end, and what follows them; those below and the
    embeddings stay.
    """

    @model_validator(mode="after")
    def _length(self) -> Training:
        if [self.epochs, self.max_steps].count(None) != 1:
            message = "give either epochs or max_steps, not both and not neither"
            raise fail(message, "for example `epochs: 20`")
        if self.adapter is not None and self.top_layers is not None:
            raise fail("training.adapter freezes the encoder", "leave top_layers out")
        return self


class SpanOptions(Strict):
    """What stands between the encoder's states and spans that may nest (head.span)."""

    variant: Literal["crf_biaffine", "biaffine"] = "crf_biaffine"
    """crf_biaffine: gated BiLSTM, a tagger per type trained by its likelihood, a biaffine scorer
    over all spans.
    biaffine: the scorer alone, on the encoder's states.
    """
    layers: int = Field(3, ge=1, le=8)
    """BiLSTM layers (not in `biaffine`)."""
    width: int = Field(400, ge=2, multiple_of=2)
    """Width of the BiLSTM's states, both directions together."""
    biaffine_width: int = Field(64, ge=1)
    """Width of a begin or end vector of one type."""
    max_span: int = Field(40, ge=1, le=512)
    """Longest span that the biaffine scorer sees, in words (in sub-tokens with `pooling: none`)."""
    same_type_overlaps: Literal["keep", "filter"] | None = None
    """filter: of overlapping spans of one type the most confident stays. null: keep."""


class Head(Strict):
    """What turns the encoder's states into scores."""

    kind: Literal["token", "sequence", "span"]
    pooling: Literal["cls", "mean", "first", "none"] = "cls"
    """sequence: first token, or mean over tokens.
    span: a word's first sub-token (the default there), the mean of its sub-tokens, or none
    (sub-tokens).
    """
    dropout: BelowOne = 0.1
    """Default 0.4 for span heads."""
    threshold: float | Literal["tuned"] = 0.5
    """multi-label: sigmoid threshold, or tuned on validation."""
    fallback: Literal["none", "top1"] = "none"
    """multi-label: what to predict when no label passes the threshold."""
    choice: Literal["sets", "options"] = later("sets")
    """multiple_choice: one output for each set of right options, of which the highest is taken; or
    one for each option, right above one half, the highest where none is.
    """
    span: SpanOptions | None = later(None)
    """Options of a span head; none elsewhere."""

    @model_validator(mode="before")
    @classmethod
    def _span_defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict) or plain(data.get("kind")) != "span":
            return data
        data = {"pooling": "first", "dropout": 0.4, **data}
        if plain(data.get("span")) is None:
            data["span"] = {}
        return data

    @model_validator(mode="after")
    def _options_fit(self) -> Head:
        allowed = {"token": ["cls"], "sequence": ["cls", "mean"], "span": ["first", "mean", "none"]}
        fitting = allowed[self.kind]
        if self.pooling not in fitting:
            choices = ", ".join(fitting)
            hint = f"leave it out, or use one of {choices}"
            raise fail(f"head.pooling '{self.pooling}' does not fit a {self.kind} head", hint)
        if self.kind != "span" and self.span is not None:
            raise fail(f"head.span does not fit a {self.kind} head", "leave it out")
        return self


class Probe(Strict):
    """How a frozen encoder's states become an answer. Used with `training.encoder: frozen`."""

    kind: Literal["mlp", "linear", "similarity"] = "mlp"
    """mlp: dropout, linear, GELU, dropout, linear. linear: dropout, linear. similarity: the cosine
    of a pair's pooled states stands for its number, and no document is learned from; of `synonyms`
    it ranks the names of training.
    """
    pooling: Literal["cls", "mean", "attention"] = "attention"
    """cls: the first token's state. mean: of all tokens. attention: learned weights over the first
    token and the means of at most `segments` equal pieces of the sequence, which is what is kept in
    memory. Token tasks have nothing to pool: each word's answer comes from the state of its first
    sub-token.
    """
    segments: int = Field(32, ge=1, le=512)
    hidden: PositiveInt | None = None
    """Width of the hidden layer; null: the encoder's."""
    dropout: BelowOne = 0.1
    standardise: bool = True
    """Each dimension of the states to mean 0 and variance 1 over the training documents."""
    learning_rates: Annotated[list[Rate], AfterValidator(_distinct)] = [1e-3]
    """The one with the best validation score is used."""
    epochs: PositiveInt = 10
    batch_size: PositiveInt = 32
    weight_decay: NonNegativeFloat = 0.01

    @model_validator(mode="after")
    def _pooled(self) -> Probe:
        if (self.kind, self.pooling) == ("similarity", "attention"):
            message = "pooling 'attention' is learned, and similarity learns nothing"
            raise fail(message, "use `pooling: mean`")
        return self

    @property
    def trained(self) -> bool:
        """Whether weights are learned, so that seeds differ."""
        return self.kind in ("mlp", "linear")
