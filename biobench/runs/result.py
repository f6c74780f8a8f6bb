"""What `run` says of each run, as object and as JSON, and to whoever watches."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from biobench.schema.record import READY, RunRecord

if TYPE_CHECKING:
    from biobench.store import Store

Status = Literal["done", "skipped", "failed", "unavailable", "planned"]


class RunName(NamedTuple):
    """Which run is meant: its key, and what a person calls it."""

    key: str
    model: str
    task: str
    seed: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """One line of the run's report; `run --json` prints these fields.

    seconds: wall. scores: fractions (0-1).
    """

    model: str
    task: str
    task_version: int
    seed: int | None
    status: Status
    reason: str | None = None
    key: str | None = None
    scores: dict[str, float] = field(default_factory=dict)
    primary: str = "macro_f1"
    paper: str = "macro_f1"
    """The average that is published on the task."""
    weights: str = ""
    """Hash of the checkpoint: two models of one name differ in it."""
    folder: str | None = None
    """Of the checkpoint, where the command runs several of one name."""
    seconds: float | None = None
    peak_memory_bytes: int | None = None
    truncated_documents: int | None = None
    lost_gold: int | None = None
    predictions: str | None = None
    seconds_expected: float | None = None
    """Of a planned run, from stored runs on this device; None where these tell nothing."""
    steps_expected: int | None = None
    """Of a planned run: optimiser steps, at most, of all its trials; 0 where nothing is trained."""
    tokens_expected: int | None = None
    """Of a planned run: tokens that it reads, training and scoring together, from a sample of its
    texts.
    """
    model_folder: str | None = None
    """Where `--keep-model` saved the fine-tuned model."""
    origin: str = "run"
    split: str = "test"
    track: str = "fixed"
    limit: int | None = None
    fold: int | None = None
    """Of a task with several splits: which one, from 0."""
    overrides: tuple[str, ...] = ()
    baseline: tuple[str, float] | None = None
    """The stored baseline that the primary score does not reach, and its score; None where it does,
    or none is.
    """

    @property
    def is_scored(self) -> bool:
        """Whether it has scores to show."""
        return self.status in ("done", "skipped") and bool(self.scores)

    @property
    def headline(self) -> str:
        """The score that is shown where one is: the published average, if the run has it."""
        return self.paper if self.paper in self.scores else self.primary


def of_record(
    store: Store, record: RunRecord, status: Status, reason: str | None = None
) -> RunResult:
    """The line of a run that the store holds."""
    return RunResult(
        model=record.model.id,
        task=record.task.id,
        task_version=record.task.version,
        seed=None if record.track == READY else record.seed,
        status=status,
        reason=reason,
        key=record.key,
        scores=dict(record.scores),
        primary=record.task.primary,
        paper=record.task.paper,
        weights=record.model.hash,
        seconds=record.cost.seconds,
        peak_memory_bytes=record.cost.peak_memory_bytes,
        truncated_documents=record.windows.truncated_documents,
        lost_gold=record.windows.lost_gold,
        predictions=str(store.path_of(record)),
        origin=record.origin,
        split=record.split,
        track=record.track,
        limit=record.limit,
        fold=None if record.resampling is None else record.resampling.fold,
        overrides=record.overrides,
    )


class Reporter:
    """Hears of each stage and run, and says warnings alone; several runs may be under way."""

    def stage(self, what: str) -> None:
        """What the command does before, between and after runs: "reading gad", say."""

    def warn(self, line: str) -> None:
        """Something that the user must know now: a warning of the program's log."""
        logging.getLogger("biobench").warning(line)

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins, the `position`-th (from 1) of `total`."""

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """A run moved on to step `done` of `total`."""

    def finish(self, result: RunResult) -> None:
        """A run ended, was skipped, failed, or had no data."""
