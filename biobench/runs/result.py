"""What `run` says of each run, as object and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from biobench.runs.options import RunRequest
from biobench.runs.plan import Status, TaskEntry
from biobench.schema.record import RunRecord


class RunName(NamedTuple):
    """Which run is meant: its key, and what a person calls it."""

    key: str
    model: str
    task: str
    seed: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """One line of the run's report. seconds: wall; scores: fractions (0-1)."""

    model: str
    task: str
    task_version: int
    seed: int | None
    status: Status
    reason: str | None = None
    key: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
    primary: str = "macro_f1"
    seconds: float | None = None
    peak_memory_bytes: int | None = None
    energy_kwh: float | None = None
    truncated_documents: int | None = None
    lost_gold: int | None = None
    predictions: str | None = None
    seconds_expected: float | None = None
    """Of a planned run, from stored runs on this device; None where these tell nothing."""
    steps_expected: int | None = None
    """Of a planned run: optimiser steps, at most, of all its trials; 0 where nothing is trained."""
    tokens_expected: int | None = None
    """Of a planned run: tokens that it reads, training and scoring together, from a sample of its texts."""
    disk_expected: int | None = None
    """Of a planned run: bytes that its savepoint takes at most while it is made; it is removed at the end."""
    seconds_left: float | None = None
    """Of a finished run: what the rest of the plan takes, where that can be told."""
    model_folder: str | None = None
    """Where `--keep-model` saved the fine-tuned model."""
    origin: str = "run"
    split: str = "test"
    track: str = "fixed"
    limit: int | None = None
    train_fraction: float = 1.0
    fold: int | None = None
    """Of a task with several splits: which one, from 0."""
    overrides: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain data with the field names of the public contract."""
        return asdict(self)


def without_record(
    request: RunRequest,
    entry: TaskEntry,
    model: str,
    status: Status,
    *,
    seed: int | None = None,
    reason: str | None = None,
    key: str | None = None,
    expected: float | None = None,
    steps: int | None = None,
    tokens: int | None = None,
    disk: int | None = None,
) -> RunResult:
    """The line of a run that is planned, failed, or has no data."""
    spec = entry.loaded.spec
    return RunResult(
        model=model,
        task=entry.id,
        task_version=spec.version,
        seed=seed,
        status=status,
        reason=reason,
        key=key,
        primary=spec.metric.primary,
        seconds_expected=None if expected is None else round(expected, 1),
        steps_expected=steps,
        tokens_expected=tokens,
        disk_expected=disk,
        origin="checkpoint" if request.no_training else "run",
        split="validation" if request.no_test else "test",
        track=request.track,
        limit=request.limit,
        train_fraction=spec.training.train_fraction,
        fold=None if entry.resampled is None else entry.loaded.fold,
        overrides=entry.loaded.overrides,
    )


def of_record(record: RunRecord, status: Status, predictions: str, reason: str | None = None) -> RunResult:
    """The line of a finished run."""
    return RunResult(
        model=record.model.id,
        task=record.task.id,
        task_version=record.task.version,
        seed=record.seed,
        status=status,
        reason=reason,
        key=record.key,
        scores=dict(record.scores),
        primary=record.task.primary,
        seconds=record.cost.seconds,
        peak_memory_bytes=record.cost.peak_memory_bytes,
        energy_kwh=record.cost.energy_kwh,
        truncated_documents=record.windows.truncated_documents,
        lost_gold=record.windows.lost_gold,
        predictions=predictions,
        origin=record.origin,
        split=record.split,
        track=record.track,
        limit=record.limit,
        train_fraction=float(record.protocol.get("training", {}).get("train_fraction", 1.0)),
        fold=None if record.resampling is None else record.resampling.fold,
        overrides=record.overrides,
    )
