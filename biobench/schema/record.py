"""RunRecord: everything one run (model x task x seed) decided, used and measured.

The record and the predictions beside it are the product; scores are derived from the predictions
and can be recomputed (`biobench rescore`). Seconds are wall seconds, memory is bytes, scores are
fractions (0-1).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from biobench.schema.contamination import Contamination
from biobench.schema.strict import (
    Bytes,
    Count,
    Fraction,
    Line,
    Number,
    Positive,
    Seconds,
    Strict,
    Text,
)

ENGINE_VERSION = 2
"""Bumped by hand when the engine changes what a run gives; golden scores in the tests guard it."""

RECORD_VERSION = 1

Version = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z.+!_-]{0,99}$")]
"""Of a package, as PEP 440 and git write it."""
Package = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._-]{0,99}$")]
Origin = Literal["run", "checkpoint", "outside"]
"""run: a checkpoint was fine-tuned here. checkpoint: one that was fine-tuned before answered as it
is.
outside: the predictions were made elsewhere. No checkpoint is known, and nothing on training, cost
and windows.
"""
READY = "ready"
"""The track of checkpoints that answer as they are."""
YEARS = (2000, 2100)
"""A record's date lies between them."""


class ModelIdentity(Strict):
    """Which encoder. `hash` covers weights, config and tokenizer files, so a moved folder is the
    same model.
    """

    id: Text
    """Hub id, or the folder's name."""
    revision: Text | None = None
    hash: Line
    architecture: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][0-9A-Za-z_.-]{0,199}$")]
    parameters: Count
    max_positions: Positive | None = None
    source: Text | None = None
    """Hub id, or the folder's name, where `id` is a name that the user gave to an earlier version.
    """
    licence: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+-]{0,63}$")] | None
    ) = None
    """As the checkpoint's model card names it; None: it names none, or the record is older than
    this field.
    """
    tokenizer: Text | None = None
    """What made the tokens: `tokenizer.json`, or the class that read its other files."""
    notes: tuple[Text, ...] = ()
    """What a reader must know of how the checkpoint was read, in words."""
    changes: tuple[Line, ...] = ()
    """In what this run read the checkpoint otherwise than transformers by itself; part of its key.
    """


class TaskIdentity(Strict):
    """Which task, in which version, on which data."""

    id: Line
    version: Count
    hash: Line
    """Hash of the canonical spec without its descriptive fields."""
    data_hash: Line
    source: Line
    corpus: Line
    language: Line
    type: Line
    labels: tuple[Text, ...]
    gold_labels: tuple[Text, ...]
    decode: Line = "strict"
    negative_label: Text | None = None
    primary: Line = "macro_f1"
    paper: Line = "micro_f1"
    test_documents: Count = 0


class CurvePoint(Strict):
    """One validation: after `step` optimiser steps."""

    step: Count
    epoch: Seconds
    train_loss: Number
    validation: dict[Line, Number]
    learning_rate: Seconds


class Trial(Strict):
    """One learning rate of the tuned track, and the best validation score that it reached."""

    factor: Seconds
    """What the recipe's rates were multiplied by."""
    changes: dict[Line, bool | int | float | str | None] = {}
    """Fields of the recipe that a search changed."""
    learning_rate: Seconds
    head_learning_rate: Seconds | None = None
    validation: Number
    """Best score on validation of the average that selects weights."""
    best_step: Count


class TrainingRecord(Strict):
    """What happened while training."""

    steps: Count
    best_step: Count
    curve: tuple[CurvePoint, ...]
    precision: Line
    attention: Line
    """How batches met the encoder: packed (no padding), padded, or alone (one length at a time)."""
    kernels: dict[Line, Text] = {}
    """On an accelerator: what computed packed attention in training, and why it was no
    variable-length kernel; whether layers were compiled, and why not.
    """
    batch_size: Positive
    micro_batch_tokens: Count
    backoffs: tuple[Text, ...] = ()
    """Each change forced by a non-finite loss or by memory, in words."""
    threshold: Fraction | None = None
    stopped_early: bool = False
    resumed: Count = 0
    """How often the run was taken up from a savepoint after its process had been killed."""
    trained_parameters: Count | None = None
    """Weights that were trained, the head's included, where an adapter or the top layers alone
    were.
    """
    trials: tuple[Trial, ...] = ()
    """Tuned track: every trial, in the order of the grid; their number is the budget."""


class Cost(Strict):
    """Wall seconds, bytes and throughput."""

    seconds: Seconds
    train_seconds: Seconds
    evaluation_seconds: Seconds
    peak_memory_bytes: Bytes
    train_tokens_per_second: Annotated[float, Field(ge=0, le=1e18)]
    energy_kwh: Seconds | None = None
    """Records of earlier versions may hold it; nothing measures or shows it."""


class Windows(Strict):
    """What the window cut off in the test split, and gold that a span head cannot express.

    lost_gold: mentions, or (classification) labels of which no mention lies in the window.
    """

    max_length: Positive
    truncated_documents: Count
    strided_documents: Count = 0
    """Documents read through several windows; none of their text is lost."""
    shown_words: dict[Text, Count] = {}
    """Tasks with word tags: a truncated document, as the predictions name it -> how many of its
    words the window shows.
    """
    lost_gold: Count
    ceiling: dict[Text, Number] = {}
    """Scores of the oracle that returns all gold inside the window, which no model passes.
    Classification: of the labels of which the window shows a mention; a model may tell others too,
    so this bounds nothing there. Empty where the corpus does not say where labels are mentioned.
    """


class Resampling(Strict):
    """Of a run on one of several splits of its task."""

    fold: Count
    """Which split, from 0."""
    folds: Positive
    """How many splits the protocol has."""
    train_documents: Positive
    """In the training part, a limit taken off; the test part stands in the task's identity."""


class Provenance(Strict):
    """Where and with what the run was made."""

    biobench: Version
    commit: Version | None
    packages: dict[Package, Version]
    python: Version
    platform: Line
    device: Line
    driver: Line | None = None
    """Version of the GPU's driver."""
    device_memory_bytes: Bytes | None = None
    """Of the GPU; on a CPU that of the machine."""
    threads: Positive
    started: str
    """ISO 8601 with its zone."""

    @field_validator("started")
    @classmethod
    def _dated(cls, value: str) -> str:
        """A time of which one can say whether it lies before another."""
        started = datetime.fromisoformat(value)
        if started.tzinfo is None or not YEARS[0] <= started.year < YEARS[1]:
            raise ValueError(f"no time with its zone between the years {YEARS[0]} and {YEARS[1]}")
        return value


class SliceScores(Strict):
    """The scores on a part of the gold (`score.slices`). gold: answers that the part holds."""

    gold: Count
    scores: dict[Text, Number]


class RunRecord(Strict):
    """One finished run."""

    record_version: Annotated[int, Field(ge=1)] = RECORD_VERSION
    key: Line
    model: ModelIdentity
    task: TaskIdentity
    seed: Annotated[int, Field(ge=0)]
    resampling: Resampling | None = None
    """None: the task has one split."""
    origin: Origin = "run"
    split: Literal["test", "validation"] = "test"
    """What the predictions and scores are of; validation: the run spared the test split
    (--no-test).
    """
    label_map: dict[Text, Text] = {}
    """Of a checkpoint that answered as it is: which label or tag of the task a label of its own
    stands for.
    """
    track: Literal["fixed", "tuned", "frozen", "ready"] = "fixed"
    limit: Positive | None = None
    protocol: dict[str, Any]
    """The resolved spec fields that entered the key."""
    overrides: tuple[Text, ...] = ()
    """The --set texts, as given."""
    engine_version: Positive = ENGINE_VERSION
    train_documents: Positive | None = None
    """Documents that the run trained on; None: nothing was trained, or the record is older than
    this field.
    """
    training: TrainingRecord
    cost: Cost
    windows: Windows
    provenance: Provenance
    predictions: Line
    """Path of the predictions, relative to the results folder."""
    predictions_sha256: Line
    scores: dict[Text, Number] = {}
    per_label: dict[Text, dict[Line, Number]] = {}
    """label -> precision, recall, f1, support, predicted, tp."""
    slices: dict[Line, SliceScores] = {}
    """Slice -> its scores. Empty where the run's training documents were not at hand."""
    contamination: Contamination | None = None
    """What is known of the model's training text and this task's documents; None: nothing."""
    unexpressed_gold: dict[str, dict[str, int]] = {}
    """Split -> label -> mentions of the whole corpus that its units, tokens or flat tags cannot
    hold, in no score.
    """
    count_problems: tuple[str, ...] = ()
    """How the whole data contradict the counts that the spec declares, one line each."""
    redacted: bool = Field(default=False)
    """True for agreement-bound data: salted ids, no gold and no text in the predictions."""

    @property
    def scale(self) -> tuple[float, float] | None:
        """Lowest and highest number of a regression task, from its protocol; None elsewhere."""
        match self.protocol.get("scale"):
            case [int() | float() as low, int() | float() as high]:
                return float(low), float(high)
        return None

    @field_validator("protocol")
    @classmethod
    def _fields_can_be_read(cls, protocol: dict[str, Any]) -> dict[str, Any]:
        """Tables read the recipe by its fields, and the lengths of needle texts."""
        training, reader = protocol.get("training", {}), protocol.get("reader", {})
        if not (isinstance(training, dict) and isinstance(reader, dict)):
            raise ValueError("'training' or 'reader' has no fields")
        lengths = reader.get("lengths", [])
        is_list = isinstance(lengths, list)
        if not is_list or not all(isinstance(length, int) for length in lengths):
            raise ValueError("'reader.lengths' lists no numbers")
        return protocol

    @field_validator("per_label")
    @classmethod
    def _labels_are_whole(cls, rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        """Tables read a label's F1 together with its support."""
        incomplete = [row for row in rows.values() if not {"f1", "support"} <= row.keys()]
        if incomplete:
            raise ValueError("a label lacks its f1 or its support")
        return rows
