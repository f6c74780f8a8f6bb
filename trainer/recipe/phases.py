"""One phase of a recipe: objective, tokens, masks, rates, and what it has of its own."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from biobench.schema.source import fail, later
from biobench.schema.strict import Strict
from trainer.recipe.fields import FileName, Growing, Tokens, TokensOrNone, human


class Batch(Growing):
    """Windows per optimiser step, and per forward pass on one process."""

    sequences: int = Field(ge=1)
    micro: int | None = Field(None, ge=1)
    """Windows per forward pass; smaller saves memory and changes nothing. Default: a process's
    whole share.
    """


class Masking(Strict):
    """Which tokens a masked phase hides and how."""

    rate: float = Field(gt=0, lt=1)
    """Expected part of the tokens that are hidden."""
    rule: Literal["80-10-10"] = "80-10-10"
    """Mask token, random token, unchanged."""
    special: Literal["protected"] = "protected"
    """End-of-document and other special tokens are not hidden; both words are part of hashes."""


class Schedule(Strict):
    """Learning rate over a phase: warm-up, then `shape` down to `final` of the peak."""

    shape: Literal["constant", "1-sqrt", "linear", "cosine"] = "constant"
    warmup: TokensOrNone = 0
    cooldown: Tokens | None = None
    """Tokens at the phase's end over which the rate falls; default: all after the warm-up."""
    final: float = Field(0.1, ge=0, le=1)
    peak: float = Field(1.0, gt=0)
    """Multiple of the optimiser's learning rate that this phase peaks at."""


class Freeze(Growing):
    """Layers that a phase leaves bit for bit as they are; embeddings and head always train."""

    layers: str
    """Ranges of layer numbers from 0, ends included: ``0-7`` or ``0,2,8-14``."""
    zeroed_gradients: bool = later(False)
    """Zero the layers' gradients after each backward pass, as the paper does, and freeze nothing:
    weight decay, and moments of an earlier phase, still move the weights.
    """

    @field_validator("layers")
    @classmethod
    def _parse(cls, value: str) -> str:
        parse_layers(value)
        return value


class PhaseCorpus(Strict):
    """A phase's text: other shares of the recipe's sources."""

    shares: dict[str, float]
    """Source id to its part of the tokens; a source that is not named is skipped."""


Direction = Literal["clm", "mlm"]
"""Objective of a phase."""


class Phase(Growing):
    """One stretch of training under one objective."""

    name: FileName
    objective: Direction
    tokens: Tokens
    corpus: PhaseCorpus | None = later(None)
    """Text of this phase alone; default: the recipe's corpus."""
    sequence_length: int | None = later(None, ge=16)
    """Tokens per window in this phase; default: corpus.sequence_length."""
    batch: Batch | None = later(None)
    """Windows per step in this phase; default: the recipe's batch."""
    masking: Masking | None = None
    schedule: Schedule = Schedule()
    freeze: Freeze | None = None
    head: Literal["keep"] = "keep"
    """Every phase keeps the prediction head; the word is part of recipes' hashes."""
    data: Literal["continue", "restart"] = "continue"
    """continue: windows follow those of the phase before; restart: from the first again."""
    isolate_documents: bool = False
    """Whether attention stops at document ends inside a window, and no target crosses one."""

    @property
    def predicted(self) -> float:
        """Part of the positions that have a target."""
        return 1.0 if self.masking is None else self.masking.rate

    @model_validator(mode="after")
    def _fits(self) -> Phase:
        if (self.objective == "mlm") != (self.masking is not None):
            raise fail(
                f"phase '{self.name}' is {self.objective}: mlm has masking, and clm has none",
                "add `masking: {rate: 0.3}`, or drop it",
            )
        if self.schedule.warmup >= self.tokens:
            raise fail(
                f"phase '{self.name}' warms up over {human(self.schedule.warmup)} of "
                f"{human(self.tokens)} tokens",
                "make warmup shorter than the phase",
            )
        cooldown = self.schedule.cooldown or 0
        room = self.tokens - self.schedule.warmup
        if cooldown and self.schedule.shape == "constant":
            raise fail(
                f"phase '{self.name}' has a cooldown and a constant rate", "add a shape, 1-sqrt say"
            )
        if cooldown > room:
            raise fail(
                f"phase '{self.name}' cools down over {human(cooldown)} of the {human(room)} "
                f"tokens after its warm-up",
                "make cooldown shorter, or drop it to cool down over all of them",
            )
        return self


def parse_layers(text: str) -> list[int]:
    """``0-7`` or ``0,2,8-14`` to layer numbers. Raises ValueError."""
    numbers: set[int] = set()
    for span in text.split(","):
        layers = range(0)
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", span)
        if match:
            lowest = int(match[1])
            highest = int(match[2] or match[1])
            layers = range(lowest, highest + 1)
        if not layers:
            raise fail(f"layers '{text}' are not understood", "write 0-7 or 0,2,8-14")
        numbers.update(layers)
    return sorted(numbers)
