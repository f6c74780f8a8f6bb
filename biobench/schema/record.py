"""RunRecord: everything one run (model x task x seed) decided, used and measured.

The record and the predictions beside it are the product; scores are derived from the predictions and can
be recomputed (`biobench rescore`). Seconds are wall seconds, memory is bytes, scores are fractions (0-1).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from biobench.schema.contamination import Contamination
from biobench.schema.strict import Strict

ENGINE_VERSION = 2
"""Bumped by hand when the engine changes what a run gives; golden scores in the tests guard it."""

RECORD_VERSION = 1


class ModelIdentity(Strict):
    """Which encoder. `hash` covers weights, config and tokenizer files, so a moved folder is the same model."""

    id: str
    """As the user named it (hub id, or the folder's name)."""
    revision: str | None = None
    hash: str
    architecture: str
    parameters: int
    max_positions: int | None = None


class TaskIdentity(Strict):
    """Which task, in which version, on which data."""

    id: str
    version: int
    hash: str
    """Hash of the canonical spec without its descriptive fields."""
    data_hash: str
    source: str
    corpus: str
    language: str
    type: str
    labels: tuple[str, ...]
    gold_labels: tuple[str, ...]
    decode: str = "strict"
    negative_label: str | None = None
    primary: str = "macro_f1"
    paper: str = "micro_f1"
    test_documents: int = 0


class CurvePoint(Strict):
    """One validation: after `step` optimiser steps."""

    step: int
    epoch: float
    train_loss: float
    validation: dict[str, float]
    learning_rate: float


class Trial(Strict):
    """One learning rate of the tuned track, and the best validation score that it reached."""

    factor: float
    """What the recipe's rates were multiplied by."""
    learning_rate: float
    head_learning_rate: float | None = None
    validation: float
    """Best score on validation of the average that selects weights."""
    best_step: int


class Training(Strict):
    """What happened while training."""

    steps: int
    best_step: int
    curve: tuple[CurvePoint, ...]
    precision: str
    attention: str
    """How batches met the encoder: packed (no padding), padded, or alone (one length at a time)."""
    batch_size: int
    micro_batch_tokens: int
    backoffs: tuple[str, ...] = ()
    """Each change forced by a non-finite loss or by memory, in words."""
    threshold: float | None = None
    stopped_early: bool = False
    resumed: int = 0
    """How often the run was taken up from a savepoint after its process had been killed."""
    trials: tuple[Trial, ...] = ()
    """Tuned track: every trial, in the order of the grid; their number is the budget."""


class Cost(Strict):
    """Wall seconds, bytes and throughput."""

    seconds: float
    train_seconds: float
    evaluation_seconds: float
    peak_memory_bytes: int
    train_tokens_per_second: float
    energy_kwh: float | None = None
    """Kilowatt-hours as codecarbon measures or estimates them for this process; None where nobody asked, or where an
    earlier process of the run was killed."""


class Windows(Strict):
    """What the window cut off in the test split, and gold that a span head cannot express.

    lost_gold: mentions, or (classification) labels of which no mention lies in the window.
    """

    max_length: int
    truncated_documents: int
    strided_documents: int = 0
    """Documents read through several windows; none of their text is lost."""
    lost_gold: int
    ceiling: dict[str, float] = {}
    """Scores of the oracle that returns all gold inside the window; classification: the labels of which the window
    shows a mention. Empty where the corpus does not say where labels are mentioned."""


class Provenance(Strict):
    """Where and with what the run was made."""

    biobench: str
    commit: str | None
    packages: dict[str, str]
    python: str
    platform: str
    device: str
    threads: int
    started: str
    """ISO 8601, UTC."""


class RunRecord(Strict):
    """One finished run."""

    record_version: int = RECORD_VERSION
    key: str
    model: ModelIdentity
    task: TaskIdentity
    seed: int
    track: Literal["fixed", "tuned"] = "fixed"
    limit: int | None = None
    protocol: dict[str, Any]
    """The resolved spec fields that entered the key."""
    overrides: tuple[str, ...] = ()
    """The --set texts, as given."""
    engine_version: int = ENGINE_VERSION
    training: Training
    cost: Cost
    windows: Windows
    provenance: Provenance
    predictions: str
    """Path of the predictions, relative to the results folder."""
    predictions_sha256: str
    scores: dict[str, float] = {}
    per_label: dict[str, dict[str, float]] = {}
    """label -> precision, recall, f1, support, predicted, tp."""
    contamination: Contamination | None = None
    """What is known of the model's training text and this task's documents; None: nothing."""
    unexpressed_gold: dict[str, dict[str, int]] = {}
    """Split -> label -> mentions of the whole corpus that its units, tokens or flat tags cannot hold, in no score."""
    count_problems: tuple[str, ...] = ()
    """How the whole data contradict the counts that the spec declares, one line each."""
    redacted: bool = Field(default=False)
    """True for agreement-bound data: salted ids, no gold and no text in the predictions."""

    @field_validator("per_label")
    @classmethod
    def _labels_are_whole(cls, rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        """Tables read a label's F1 together with its support."""
        if any(not {"f1", "support"} <= row.keys() for row in rows.values()):
            raise ValueError("a label lacks its f1 or its support")
        return rows
