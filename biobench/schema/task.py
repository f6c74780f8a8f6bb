"""TaskSpec: what a task is, declared in YAML and nothing else.

Fields marked descriptive explain a task and do not enter its hash; every other field does.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from biobench.schema.adaptation import NOT_SEARCHED, Adapter, Search
from biobench.schema.deviation import Deviations
from biobench.schema.kind import KINDS, PLUGIN_METRICS, kind_names, leading_metrics
from biobench.schema.metric import Gate, Metric, MetricName, Obtain
from biobench.schema.probe import Probe, check_probe
from biobench.schema.seeds import parse_seeds
from biobench.schema.source import (
    CollectedLabels,
    HubSource,
    Labels,
    Original,
    ReaderSpec,
    Resampled,
    Source,
    SplitApart,
    SplitCarve,
    SplitFoldFiles,
    SplitIds,
    SplitRatios,
    Splits,
    SplitShuffled,
    TopLabels,
    UrlSource,
    descriptive,
    fail,
    later,
    sources_named,
    web_address,
)
from biobench.schema.span import SpanOptions
from biobench.schema.strict import OneOf, Strict, plain, suggest

__all__ = [
    "SPLITS",
    "CollectedLabels",
    "Head",
    "HubSource",
    "Labels",
    "Metric",
    "Original",
    "Protocol",
    "Source",
    "SplitApart",
    "SplitCarve",
    "SplitIds",
    "SplitRatios",
    "SplitShuffled",
    "Splits",
    "TaskSpec",
    "TaskType",
    "TopLabels",
    "Training",
    "UrlSource",
    "fail",
    "parse_seeds",
]

TaskType = Annotated[str, OneOf(kind_names)]
"""Name of a kind of task (`biobench/kinds/`)."""
Access = Literal["open", "registration", "agreement"]
SPLITS = ("train", "validation", "test")


class Protocol(Strict):
    """How documents meet the encoder's window."""

    max_length: int = Field(512, gt=7)
    """Tokens, special tokens included; the effective window is the smaller of this and the model's own."""
    long_documents: Literal["truncate", "stride"] = "truncate"
    """stride: a longer document is read through overlapping windows, and what they say is merged."""
    stride: int = Field(128, gt=0, json_schema_extra={"later": True})
    """Tokens that neighbouring windows share."""
    merge: Literal["max", "mean"] = later("max")
    """How the label scores of a document's windows become one."""
    pairs: Literal["shorten_longer", "shorten_text"] = later("shorten_longer")
    """What is cut where a pair is longer than the window: the longer of the two texts, or the second alone."""


class Training(Strict):
    """The fine-tuning recipe."""

    epochs: int | None = Field(None, gt=0)
    max_steps: int | None = Field(None, gt=0)
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
    head_learning_rate: float | None = Field(None, gt=0, allow_inf_nan=False, json_schema_extra={"later": True})
    """Peak rate of the head's own weights; null: that of the encoder."""
    batch_size: int = Field(16, gt=0)
    """Documents (sentences) per optimiser step, whatever the micro-batches."""
    weight_decay: float = Field(0.01, ge=0, allow_inf_nan=False)
    warmup_ratio: float = Field(0.0, ge=0, le=1)
    """Share of all steps over which the rate rises linearly; then it falls linearly to 0."""
    max_grad_norm: float = Field(1.0, gt=0)
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    adam_beta2: float = Field(0.999, ge=0, lt=1)
    adam_epsilon: float = Field(1e-8, gt=0)
    evaluate_every: Literal["epoch"] | int = "epoch"
    """Validation after each epoch, or every k optimiser steps."""
    patience: int | None = Field(None, gt=0)
    """Stop after this many validations without a better score."""
    encoder: Literal["trained", "frozen"] = "trained"
    """frozen: its states are computed once and a `probe` is trained on them; the recipe here is then not used."""
    batching: Literal["random", "bucketed"] = "random"
    """random: a batch is a uniform draw; its cost follows real tokens all the same. bucketed: batches of
    similar length, drawn from windows of 50 batches."""
    positive_weights: Literal["none", "ratio"] = "none"
    """ratio (multi-label): per label, training documents without it / max(with it, 1)."""
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    grid: tuple[float, ...] = later((0.4, 1.0, 2.0))
    """--track tuned: what the rates are multiplied by, one whole run each; the best on validation is kept."""
    train_fraction: float = Field(1.0, gt=0, le=1, json_schema_extra={"later": True})
    """Share of the training documents, by one fixed shuffle: a smaller share is part of every larger one."""
    head_seed: int | None = Field(None, ge=0, json_schema_extra={"later": True})
    """Draws the head's initial weights; null: the run's seed."""
    order_seed: int | None = Field(None, ge=0, json_schema_extra={"later": True})
    """Draws the order of the training documents; null: the run's seed."""
    train_documents: int | None = Field(None, gt=0, json_schema_extra={"later": True})
    """Training documents at most, the first of the same shuffle; null: all."""
    validation_documents: int | None = Field(None, gt=0, json_schema_extra={"later": True})
    """Validation documents at most, the first of the same shuffle; null: all. The test split is never cut."""

    adapter: Adapter | None = later(None)
    """Train small weights beside the encoder's frozen ones."""
    top_layers: int | None = Field(None, ge=0, json_schema_extra={"later": True})
    """Train this many layers at the encoder's end, and what follows them; those below and the embeddings stay."""
    layer_decay: float = Field(1.0, gt=0, le=1, json_schema_extra={"later": True})
    """Each layer's rate is that of the layer above it times this; the embeddings stand below the first layer."""
    gradient_checkpointing: bool = later(False)
    """Compute the layers' states again in the backward pass instead of storing them: less memory, more time."""
    search: Search | None = later(None)
    """--track tuned: what is tried instead of `grid`."""

    @model_validator(mode="after")
    def _length(self) -> Training:
        if (self.epochs is None) == (self.max_steps is None):
            raise fail("give either epochs or max_steps, not both and not neither", "for example `epochs: 20`")
        if not self.grid or min(self.grid) <= 0 or len(set(self.grid)) < len(self.grid):
            raise fail("training.grid must be distinct positive factors", "for example `grid: [0.4, 1.0, 2.0]`")
        if isinstance(self.evaluate_every, int) and self.evaluate_every < 1:
            raise fail("evaluate_every must be 'epoch' or at least 1 step", "for example `evaluate_every: 500`")
        for name in () if self.search is None else (self.search.grid or self.search.study or ()):
            if name.split(".")[0] not in type(self).model_fields and name != "head.dropout":
                known = [*(n for n in type(self).model_fields if n not in NOT_SEARCHED), "head.dropout"]
                raise fail(f"training.search: '{name}' is no field of the recipe", suggest(name, known))
        if self.adapter is not None and (self.top_layers is not None or self.layer_decay != 1.0):
            raise fail("training.adapter freezes the encoder", "leave top_layers and layer_decay out beside it")
        return self


class Head(Strict):
    """What turns the encoder's states into scores."""

    kind: Literal["token", "sequence", "span"]
    pooling: Literal["cls", "mean", "stock", "first", "none"] = "cls"
    """sequence: first token, mean over tokens, or the checkpoint family's own classification head.
    span: a word's first sub-token (the default there), the mean of its sub-tokens, or none (sub-tokens)."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Default 0.4 for span heads."""
    threshold: float | Literal["tuned"] = 0.5
    """multi-label: sigmoid threshold, or tuned on validation."""
    fallback: Literal["none", "top1"] = "none"
    """multi-label: what to predict when no label passes the threshold."""
    choice: Literal["sets", "options"] = later("sets")
    """multiple_choice: one output for each set of right options, of which the highest is taken; or one for each
    option, right above one half, the highest where none is."""
    span: SpanOptions | None = later(None)
    """Options of a span head; none elsewhere."""

    @model_validator(mode="before")
    @classmethod
    def _span_defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict) or plain(data.get("kind")) != "span":
            return data
        options = plain(data.get("span")) or {}
        paper = isinstance(options, dict) and options.get("variant") == "paper_variant"
        data = {"pooling": "none" if paper else "first", "dropout": 0.4, **data}
        return data if data.get("span") is not None else {**data, "span": {}}

    @model_validator(mode="after")
    def _options_fit(self) -> Head:
        allowed = {"token": ("cls",), "sequence": ("cls", "mean", "stock"), "span": ("first", "mean", "none")}
        if self.pooling not in allowed[self.kind]:
            known = "leave it out" if self.kind == "token" else "use one of " + ", ".join(allowed[self.kind])
            raise fail(f"head.pooling '{self.pooling}' does not fit a {self.kind} head", known)
        if self.kind != "span" and self.span is not None:
            raise fail(f"head.span does not fit a {self.kind} head", "leave it out")
        return self


class TaskSpec(Strict):
    """A benchmark task. JSON Schema: `biobench tasks schema`."""

    id: str
    version: int = Field(ge=1)
    name: str = descriptive()
    language: str
    """ISO 639-1 code."""
    type: TaskType
    corpus: str | None = None
    """Tasks on the same texts share it; default: the id."""
    sources: tuple[Source, ...] = ()
    source: Source | None = None
    """A single source, with `reader` beside it or inside it."""
    reader: ReaderSpec | None = None
    labels: Labels
    """The label set in order, or the rule that finds it in the data."""
    splits: Splits = "official"
    scale: tuple[float, float] | None = later(None)
    """regression: lowest and highest number of the corpus's scale; predictions are cut to it."""
    unit: Literal["sentence", "line", "document"]
    seeds: str = "42-46"
    protocol: Protocol = Protocol()
    training: Training
    head: Head
    probe: Probe | None = later(None)
    """What is trained where the encoder is frozen."""
    metric: Metric
    gate: Gate = descriptive(Gate())
    access: Access = descriptive()
    obtain: Obtain | None = descriptive(None)
    """Instructions where `fetch` cannot get the data; required for access agreement."""
    licence: str = descriptive()
    homepage: str = descriptive()
    citation: str = descriptive()
    tags: list[str] = descriptive([])
    """What `--tag` picks tasks by, such as clinical."""
    notes: list[str] = descriptive([])
    deviations: Deviations = descriptive([])
    """What is otherwise than in the published protocol that scores are compared with; empty: nothing known."""
    counts: dict[str, dict[str, int]] = descriptive({})
    """Counted facts per split (documents, mentions, a label's name: its support), checked by validation."""
    findings: dict[str, int] = descriptive({})
    """Known findings of `biobench data verify`, by name, with their number; more than that alarms."""
    counts_source: str | None = descriptive(None)
    """Id of the source that `counts` were made on, where the others differ; null: they hold for every source."""
    published_as: str | None = descriptive(None)
    """Id under which published scores are comparable with this task; null: with none."""
    variant_of: str | None = descriptive(None)
    """Id of the task that this one varies; variants are run by name and stay out of the suites."""

    @field_validator("id")
    @classmethod
    def _id(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9_]+", value):
            raise fail(f"'{value}' is not a task id", "use lower-case letters, digits and underscores")
        return value

    @field_validator("language")
    @classmethod
    def _language(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z]{2}", value):
            raise fail(f"'{value}' is not an ISO 639-1 code", "two lower-case letters, such as en or fr")
        return value

    @field_validator("homepage")
    @classmethod
    def _homepage(cls, value: str) -> str:
        return web_address(value)

    @field_validator("labels")
    @classmethod
    def _labels(cls, value: Labels) -> Labels:
        if not isinstance(value, list):
            return value
        twice = {v for v in value if value.count(v) > 1}
        if twice:
            raise fail(f"label '{min(twice)}' stands twice", "keep one")
        if not value or any(not v.strip() for v in value):
            raise fail("labels must be at least one non-empty text", "list the labels")
        return value

    @field_validator("scale")
    @classmethod
    def _scale(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not value[0] < value[1]:
            raise fail(f"scale {list(value)} does not rise", "lowest number first, as `scale: [0, 5]`")
        return value

    @field_validator("seeds")
    @classmethod
    def _seeds(cls, value: str) -> str:
        parse_seeds(value)
        return value

    @model_validator(mode="after")
    def _fits(self) -> TaskSpec:
        if (self.source is None) == (not self.sources):
            raise fail("give either sources or source", "a list under `sources:` or one mapping under `source:`")
        sources_named(self.sources)
        if any(s.reader is None for s in self.sources) or (
            self.source is not None and self.source.reader is None and self.reader is None
        ):
            raise fail("a source has no reader", "add `reader: {format: ...}` to it")
        if self.sources and self.reader is not None:
            raise fail("reader stands beside several sources", "put a reader into each source")
        for source in self.all_sources:
            if isinstance(self.splits_of(source), SplitFoldFiles) != source.has_folds:
                what = "no file of" if not source.has_folds else "without splits.fold_files, a file of"
                hint = "write `{fold}` where the number stands, beside `splits: {fold_files: 10}`"
                raise fail(f"{what} source '{source.id}' names {{fold}}", hint)
        kind = KINDS[self.type]
        if self.head.kind != kind.head:
            raise fail(f"head.kind '{self.head.kind}' does not fit type '{self.type}'", f"use `kind: {kind.head}`")
        for field in ("primary", "paper", "selection"):
            name = getattr(self.metric, field)
            if name in kind.lower_is_better:
                raise fail(f"metric.{field} '{name}' falls as predictions get better", f"use {kind.metrics[0]}")
            if name is not None and name not in (*leading_metrics(kind), *PLUGIN_METRICS):
                best = "macro_f1" if kind.counted else kind.metrics[0]
                raise fail(f"metric.{field} '{name}' is not defined for type '{self.type}'", f"use {best}")
        if kind.numeric != (self.scale is not None):
            what = "is missing" if kind.numeric else "does not fit"
            raise fail(
                f"scale {what} for type '{self.type}'", "add `scale: [0, 5]`" if kind.numeric else "leave it out"
            )
        if kind.numeric and isinstance(self.labels, list) and len(self.labels) > 1:
            raise fail(f"{len(self.labels)} labels for one number a document", "name the number, as `[similarity]`")
        if self.protocol.pairs == "shorten_text" and not kind.pairs:
            raise fail(f"protocol.pairs 'shorten_text' does not fit type '{self.type}'", "leave it out")
        if self.head.choice != "sets" and not kind.options:
            raise fail(f"head.choice does not fit type '{self.type}'", "leave it out")
        check_probe(kind, self.probe if self.training.encoder == "frozen" else "none")
        if not kind.trains and self.protocol.long_documents != "truncate":
            raise fail(f"protocol.long_documents 'stride' does not fit type '{self.type}'", "leave it out")
        negative = self.metric.negative_label
        if not isinstance(self.labels, list) and not kind.label_rules:
            raise fail(f"labels by rule do not fit type '{self.type}'", "list the labels")
        if negative is not None and isinstance(self.labels, list) and negative not in self.labels:
            raise fail(f"metric.negative_label '{negative}' is not a label", suggest(negative, self.labels))
        if "micro_f1_positive" in (self.metric.primary, self.metric.paper, self.metric.selection) and not negative:
            raise fail(
                "metric.negative_label is missing, micro_f1_positive needs it", "name the label that does not count"
            )
        if self.access == "agreement" and (self.obtain is None or not self.obtain.needs):
            raise fail(
                "access 'agreement' needs the agreement's name, pages and steps", "add `obtain: {needs, pages, steps}`"
            )
        if not kind.thresholds:
            if self.training.positive_weights != "none":
                raise fail(f"training.positive_weights does not fit type '{self.type}'", "leave it out")
            if self.head.threshold != 0.5 or self.head.fallback != "none":
                raise fail(f"head.threshold and head.fallback do not fit type '{self.type}'", "leave them out")
            labels_needed = not kind.spans and not kind.numeric
            if labels_needed and isinstance(self.labels, list) and len(self.labels) < 2:
                raise fail("a classification task needs at least two labels", "list them all")
        return self

    @property
    def all_sources(self) -> tuple[Source, ...]:
        """The sources in order of preference."""
        return self.sources if self.source is None else (self.source,)

    @property
    def corpus_id(self) -> str:
        """The declared corpus, or the task's own id."""
        return self.corpus or self.id

    @property
    def selection(self) -> MetricName:
        """The average that picks the best weights on validation."""
        return self.metric.selection or self.metric.primary

    @property
    def is_ner(self) -> bool:
        """True where truth is spans."""
        return KINDS[self.type].spans

    def reader_of(self, source: Source) -> ReaderSpec:
        """The reader that `source` is read with."""
        reader = source.reader or self.reader
        assert reader is not None
        return reader

    def splits_of(self, source: Source) -> Splits:
        """How `source` is split."""
        return source.splits if source.splits is not None else self.splits

    def resampled(self, source: Source) -> Resampled | None:
        """The rule by which `source` is split several times; None where it has one split."""
        splits = self.splits_of(source)
        return splits if isinstance(splits, Resampled) else None
