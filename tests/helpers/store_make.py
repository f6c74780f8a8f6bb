"""A finished run in miniature: its record, test documents and predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from biobench.reporting.tasks import shipped
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.record import RunRecord
from biobench.score import scored
from biobench.store import Store, run_key
from biobench.store.records import to_json
from biobench.store.tables import to_parquet

SENTENCES = ("Fever after aspirin.", "No pain.", "Aspirin and ibuprofen.")
GOLD = (
    (Span(0, 5, "Disease"), Span(12, 19, "Drug")),
    (Span(3, 7, "Disease"),),
    (Span(0, 7, "Drug"), Span(12, 21, "Drug")),
)


def weights_hash(model: str) -> str:
    """Stands for the content hash of this model's files."""
    return hashlib.sha256(model.encode()).hexdigest()


def documents() -> list[Document]:
    """Three test documents of two patients."""
    made = []
    for number, (text, spans) in enumerate(zip(SENTENCES, GOLD, strict=True)):
        place = (f"note-{number}", f"patient-{number // 2}")
        made.append(Document(*place, text, "test", spans, origin=f"test.tsv:{number + 1}"))
    made[1] = replace(made[1], tokens=((0, 2), (3, 7)), tags=("O", "B-Disease"))
    return made


def predictions(missed: int = 1) -> list[Prediction]:
    """The gold without its first `missed` spans of document 2, and one span too many on document
    1."""
    return [
        Prediction(document="note-0", spans=GOLD[0], span_scores=(0.9, 0.123456)),
        Prediction(document="note-1", spans=(Span(0, 2, "Drug"),), tags=("B-Drug", "O")),
        Prediction(document="note-2", spans=GOLD[2][missed:]),
    ]


RECORD = RunRecord.model_validate(
    yaml.safe_load("""
key: ""
model: {id: "", hash: "", architecture: ModernBertModel, parameters: 1000}
task: {id: "", version: 1, hash: "", data_hash: d, source: local, corpus: "", language: en,
  type: token_ner, labels: [Disease, Drug, Other], gold_labels: [Disease, Drug], test_documents: 3}
seed: 42
protocol: {training: {epochs: 1, learning_rate: 5.0e-5}}
training: {steps: 10, best_step: 5, precision: fp32, attention: packed, batch_size: 16,
  micro_batch_tokens: 512, curve: [{step: 5, epoch: 1.0, train_loss: 0.5,
    validation: {macro_f1: 0.5}, learning_rate: 5.0e-5}]}
cost: {seconds: 2.0, train_seconds: 1.0, evaluation_seconds: 1.0, peak_memory_bytes: 1,
  train_tokens_per_second: 5.0}
windows: {max_length: 128, truncated_documents: 0, lost_gold: 0}
provenance: {biobench: 0.1.0, commit: null, packages: {numpy: "2"}, python: "3.11", platform: Linux,
  device: cpu, threads: 1, started: "2026-01-01T00:00:00+00:00"}
predictions: ""
predictions_sha256: ""
""")
)
"""A run of no model on no task."""


def record(
    *,
    model: str = "tiny",
    task: str = "my_task",
    seed: int = 42,
    language: str = "en",
    corpus: str | None = None,
    score: bool = True,
    **fields: Any,
) -> RunRecord:
    """The record of a run on `documents`, scored on `predictions` unless score is False."""
    key = run_key(
        model_hash=model,
        task_hash=task,
        data_hash="d",
        seed=seed,
        precision="fp32",
        limit=fields.get("limit"),
    )
    about = {"id": task, "hash": f"hash of {task}", "corpus": corpus or task, "language": language}
    weights = {"id": model, "hash": weights_hash(model)}
    run = {
        "key": key,
        "seed": seed,
        "model": RECORD.model.model_copy(update=weights),
        "task": RECORD.task.model_copy(update=about),
    }
    made = RECORD.model_copy(update=run | fields, deep=True)
    return scored(made, documents(), predictions()) if score else made


def saved(store: Store, **fields: Any) -> RunRecord:
    """The run of `record` with these fields, stored."""
    return store.save(record(**fields), documents(), predictions())


def file_of(store: Store, run: RunRecord) -> Path:
    """Where the run's record lies."""
    return store.path_of(run).with_suffix(".json")


def shipped_identity(task: str) -> dict[str, Any]:
    """Hash, source, corpus, language and average of the task's shipped spec; of a task of no suite
    elsewhere.
    """
    info = shipped().get(task)
    if info is None:
        return {"hash": f"hash of {task}", "source": "local", "corpus": task, "paper": "micro_f1"}
    source, spec = next(iter(info.hashes.items()))
    return {
        "hash": spec,
        "source": source,
        "corpus": info.corpus,
        "language": info.language,
        "paper": info.paper,
    }


def save_scored(
    results: Path,
    run: RunRecord,
    gold: Sequence[Document],
    said: Sequence[Prediction],
    **identity: Any,
) -> RunRecord:
    """Store the run with these fields of its task, under the key and with the scores that
    follow."""
    task = run.task.model_copy(update=identity)
    key = run_key(
        model_hash=run.model.hash,
        task_hash=task.hash,
        data_hash=task.data_hash,
        seed=run.seed,
        precision="fp32",
        track=run.track,
        limit=run.limit,
    )
    return Store(results).save(
        scored(run.model_copy(update={"key": key, "task": task}), gold, said), gold, said
    )


def write_runs(results: Path, runs: Iterable[RunRecord]) -> None:
    """Records as they are, on `predictions`, without fsync so that many are written quickly."""
    table = to_parquet(documents(), predictions())
    for run in runs:
        path = results / "runs" / run.task.id / f"{run.key}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = run.model_copy(update={"predictions": f"runs/{run.task.id}/{run.key}.parquet"})
        path.write_bytes(to_json(stored, path))
        path.with_suffix(".parquet").write_bytes(table)
