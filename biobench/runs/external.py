"""Predictions that were made elsewhere, scored and stored with the runs: `biobench score`."""

from __future__ import annotations

import hashlib
import re
from operator import attrgetter
from pathlib import Path

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.data.readers.tokens import tagging_of
from biobench.errors import UsageError
from biobench.runs.plan import task_fields
from biobench.runs.provenance import provenance
from biobench.runs.result import RunResult, of_record
from biobench.schema.document import Prediction, TaskData
from biobench.schema.record import Cost, ModelIdentity, RunRecord, TrainingRecord, Windows
from biobench.score import parts_of, scored
from biobench.score.external import Expected, read_predictions
from biobench.store import Store, run_key

ELSEWHERE = "outside"
"""In place of what a record of a run names: precision, attention, architecture and device."""


def score_external(
    predictions: Path,
    task_name: str,
    model: str,
    *,
    seed: int,
    data_dir: str | None,
    results_dir: str,
    force: bool,
    gate: bool,
) -> RunResult:
    """Read, check, score and store; `skipped` where the same predictions are stored already.

    seed: tells several runs of one system apart. Raises DataFormatError naming file and line for
    predictions that do not fit the task, DataUnavailableError where the task has no data, and
    UsageError where other predictions of this name, task and seed are stored.
    """
    if not re.fullmatch(r"\S(.{0,198}\S)?", model) or not model.isprintable():
        raise UsageError("--model is no name", hint="name it in one line of at most 200 characters")
    if not predictions.is_file():
        raise UsageError(f"there is no file '{predictions}'", hint="give a file of JSON Lines")
    task = load_task(task_name)
    data = load_data(task, data_dir)
    redact = task.spec.access == "agreement"
    tagging = tagging_of(task.options[data.source])
    spec = task.spec
    expected = Expected(spec.type, data.labels, data.test, tagging, redact=redact, scale=spec.scale)
    answers = read_predictions(predictions, expected)
    if gate:
        from biobench.baselines import ensure

        ensure(task, data, results_dir)
    store = Store(results_dir)
    parts = parts_of(task.spec.type, data.train, data.test)
    record = scored(_record(model, seed, task, data), data.test, answers, parts)
    stored = store.get(task.id, record.key)
    if stored is not None and not force:
        if _same(store, stored, data, answers):
            reason = "the same predictions are stored already"
            return of_record(store, stored, "skipped", reason)
        raise UsageError(
            f"other predictions of '{model}' on {task.id}, seed {seed}, are stored",
            hint="name another --model, another --seed for another run of the system, or replace "
            "them with --force",
        )
    saved = store.save(record, data.test, answers)
    return of_record(store, saved, "done")


def _same(store: Store, record: RunRecord, data: TaskData, predictions: list[Prediction]) -> bool:
    documents, earlier = store.load_predictions(record, data.test)
    if record.redacted:  # documents have other names there
        return scored(record, documents, earlier) == scored(record, data.test, predictions)
    by_document = attrgetter("document")
    return sorted(earlier, key=by_document) == sorted(predictions, key=by_document)


def _record(model: str, seed: int, task: LoadedTask, data: TaskData) -> RunRecord:
    """What is known without a checkpoint; numbers on training, cost and windows are 0 and no
    measurements.
    """
    digest = task_hash(task, data.source)
    name = hashlib.sha256(f"outside\0{model}".encode()).hexdigest()
    key = run_key(
        model_hash=name,
        task_hash=digest,
        data_hash=data.hash,
        seed=seed,
        precision=ELSEWHERE,
        track="fixed",
    )
    return RunRecord(
        key=key,
        model=ModelIdentity(id=model, hash=name, architecture=ELSEWHERE, parameters=0),
        seed=seed,
        origin="outside",
        training=TrainingRecord(
            steps=0,
            best_step=0,
            curve=(),
            precision=ELSEWHERE,
            attention=ELSEWHERE,
            batch_size=1,
            micro_batch_tokens=0,
        ),
        cost=Cost(
            seconds=0.0,
            train_seconds=0.0,
            evaluation_seconds=0.0,
            peak_memory_bytes=0,
            train_tokens_per_second=0.0,
        ),
        windows=Windows(
            max_length=task.spec.protocol.max_length, truncated_documents=0, lost_gold=0
        ),
        provenance=provenance(None).model_copy(update={"device": ELSEWHERE}),
        **task_fields(task, data, digest),
    )
