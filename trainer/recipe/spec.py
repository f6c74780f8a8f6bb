"""Recipe: what a pretraining run is, declared in YAML and nothing else.

A detour, its masked twin, a reversed order, an alternation and a decoder control are all lists of
phases. All durations are tokens. JSON Schema: `trainer.api.recipe_schema`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from biobench.errors import UsageError
from biobench.schema.source import descriptive, fail, later
from biobench.schema.strict import Strict
from biobench.schema.yaml12 import plain
from trainer.recipe.corpus import CorpusSpec
from trainer.recipe.fields import FileName, Growing, Tokens
from trainer.recipe.phases import Batch, Phase


class TokenizerTraining(Strict):
    """A byte-level BPE tokenizer trained on the corpus itself, for models from scratch."""

    vocabulary: int = Field(ge=300)
    """Entries, special tokens included."""


class Base(Growing):
    """What training starts from: a checkpoint, or a config for fresh weights."""

    model: str | None = None
    """Hub id or folder of a checkpoint with its prediction head."""
    revision: str | None = None
    config: dict[str, Any] | None = None
    """transformers config fields with `model_type`, for fresh weights; null takes an inherited
    field away.
    """
    tokenizer: str | TokenizerTraining | None = None
    """For fresh weights: hub id or folder, or a tokenizer to be trained."""

    @field_validator("config", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return plain(value)

    @model_validator(mode="after")
    def _one(self) -> Base:
        if (self.model is None) == (self.config is None):
            raise fail(
                "base needs either a model or a config",
                "write `model: ID_OR_FOLDER`, or `config: {...}`",
            )
        if self.config is not None:
            if "model_type" not in self.config:
                raise fail("base.config has no model_type", "add `model_type: modernbert`")
            if self.tokenizer is None:
                raise fail(
                    "fresh weights need a tokenizer",
                    "write `tokenizer: ID_OR_FOLDER` or a training",
                )
        elif self.tokenizer is not None:
            raise fail("a checkpoint keeps its own tokenizer", "drop base.tokenizer")
        return self


class Seeds(Strict):
    """Where chance enters, each with its own seed."""

    data: int = 42
    """Order of the windows; twins share it."""
    training: int = 17
    """Masks and dropout; a noise twin changes it."""
    init: int = 17
    """Fresh weights and re-initialised heads."""


class Optimizer(Growing):
    """AdamW, decoupled as in the paper: weights shrink by ``rate / peak * weight_decay`` each
    step."""

    learning_rate: float = Field(gt=0)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.98, ge=0, lt=1)
    epsilon: float = Field(1e-6, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    """None on biases and one-dimensional parameters."""
    gradient_clip: float | None = Field(None, gt=0)
    """Largest global gradient norm; null: not clipped."""


class Engine(Growing):
    """How the machine does it; changes time and memory, not what is trained (within rounding)."""

    precision: Literal["auto", "bf16", "fp32"] = "auto"
    """auto: bf16 on a GPU, fp32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    distributed: Literal["ddp", "fsdp2"] = "ddp"
    compile: Literal["auto"] | bool = "auto"
    """auto: on a GPU. It takes minutes at a phase's start."""
    deterministic: bool = later(False)
    """Whether a GPU computes the same bits every time, at a cost in speed; a CPU with a number of
    threads does anyway. Only with it is a resume on a GPU promised to be the uninterrupted run bit
    for bit.
    """
    activation_checkpointing: bool = False
    dropout: float = Field(0.0, ge=0, lt=1)

    def compiles(self, device: str) -> bool:
        """Whether layers are compiled on a kind of device (``cpu``, ``cuda``)."""
        return device == "cuda" if self.compile == "auto" else self.compile


class Checkpoints(Growing):
    """When the state is saved."""

    every: Tokens | None = None
    """Tokens between checkpoints; each phase's end is always saved."""
    keep: int = Field(2, ge=1)
    """Newest checkpoints kept; those at phase ends come on top."""
    keep_phases: bool = True
    """Whether the optimiser state at each phase's end is kept, so that others can branch from it.
    """
    export: bool = False
    """Whether each checkpoint that `every` asks for is also written as a folder for
    from_pretrained.
    """


class Logging(Strict):
    """What is written while training."""

    every: int = Field(10, ge=1)
    """Steps between lines of metrics.jsonl."""
    evaluate: Tokens | None = None
    """Tokens between validation losses; each phase's end is always evaluated."""
    tracker: Literal["none"] = Field("none", exclude=True)
    """Recipes of earlier runs, as their folders keep them, say it."""


class Reuse(Strict):
    """Phases that another run has trained already: they are adopted, not repeated."""

    run: str
    """Folder of that run."""
    through: str
    """Name of the last phase that is adopted."""


class Recipe(Strict):
    """A pretraining run."""

    name: FileName
    description: str = descriptive("")
    base: Base
    corpus: CorpusSpec
    phases: list[Phase]
    batch: Batch
    optimizer: Optimizer
    seeds: Seeds = Seeds()
    engine: Engine = Engine()
    checkpoints: Checkpoints = Checkpoints()
    logging: Logging = Logging()
    reuse: Reuse | None = None

    @model_validator(mode="after")
    def _phases(self) -> Recipe:
        if not self.phases:
            raise fail("the recipe has no phases", "list at least one")
        names = [p.name for p in self.phases]
        if len(set(names)) < len(names):
            raise fail(
                f"two phases are called '{max(names, key=names.count)}'", "give each its own name"
            )
        if self.reuse is not None and self.reuse.through not in names[:-1]:
            raise fail(
                f"reuse.through '{self.reuse.through}' is not a phase before the last",
                "name one of: " + ", ".join(names[:-1]),
            )
        for phase in self.phases:
            self.corpus_of(phase)
        return self

    @property
    def step_tokens(self) -> int:
        """Tokens per optimiser step, in phases that do not say otherwise."""
        return self.batch.sequences * self.corpus.sequence_length

    def length_of(self, phase: Phase) -> int:
        """Tokens per window of a phase."""
        return phase.sequence_length or self.corpus.sequence_length

    def batch_of(self, phase: Phase) -> Batch:
        """The batch of a phase."""
        return phase.batch or self.batch

    def step_tokens_of(self, phase: Phase) -> int:
        """Tokens per optimiser step of a phase."""
        return self.batch_of(phase).sequences * self.length_of(phase)

    def corpus_of(self, phase: Phase) -> CorpusSpec:
        """What a phase reads: the recipe's corpus with the phase's own shares and window length."""
        spec = self.corpus.model_copy(update={"sequence_length": self.length_of(phase)})
        if phase.corpus is None:
            return spec
        by_id = {source.id: source for source in self.corpus.sources}
        sources = []
        for name, share in phase.corpus.shares.items():
            if name not in by_id:
                raise fail(
                    f"phase '{phase.name}' gives a share to '{name}', which is no source of the "
                    f"corpus",
                    "name one of: " + ", ".join(by_id),
                )
            fields = by_id[name].model_dump(exclude={"repeat", "share"})
            sources.append({**fields, "share": share})
        # validated anew: shares must sum to 1
        return CorpusSpec.model_validate(spec.model_dump() | {"sources": sources})

    @property
    def corpora(self) -> list[CorpusSpec]:
        """All corpora of the recipe, each once: its own, then those of phases that differ."""
        specs = [self.corpus]
        for spec in map(self.corpus_of, self.phases):
            if spec not in specs:
                specs.append(spec)
        return specs

    def check_shares(self, count: int, of: str) -> None:
        """Raise UsageError unless the windows of every step can be shared by `count` processes or
        GPUs alike.
        """
        for batch in map(self.batch_of, self.phases):
            if batch.sequences % count:
                raise UsageError(
                    f"{batch.sequences} windows a step cannot be shared by {count} {of} alike",
                    hint=f"take a number of {of} that divides batch.sequences",
                )

    @property
    def total_steps(self) -> int:
        """Optimiser steps of all phases."""
        return sum(self.steps(p) for p in self.phases)

    @property
    def total_tokens(self) -> int:
        """Tokens of all phases, in whole steps."""
        return sum(self.steps(p) * self.step_tokens_of(p) for p in self.phases)

    def steps(self, phase: Phase) -> int:
        """Optimiser steps of a phase: the fewest that reach its tokens."""
        return math.ceil(phase.tokens / self.step_tokens_of(phase))

    def every(self, tokens: int | None, phase: Phase) -> int | None:
        """Steps of a phase from one thing that happens every `tokens` tokens to the next, at least
        1; None: never.
        """
        return None if tokens is None else max(1, round(tokens / self.step_tokens_of(phase)))
