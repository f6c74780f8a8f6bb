"""Stores with chosen scores, for the report tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biobench.report.tasks import shipped
from biobench.schema.record import RunRecord
from biobench.store import Store, run_key
from tests.helpers.store_make import documents, predictions, record, weights_hash


def save_run(results: Path, model: str, task: str, seed: int, score: float, **fields: Any) -> RunRecord:
    """Store the run of `run_of`."""
    return Store(results).save(run_of(model, task, seed, score, **fields), documents(), predictions())


def run_of(model: str, task: str, seed: int, score: float, **fields: Any) -> RunRecord:
    """One run with `score` as macro and micro F1, on the shipped spec where there is one and `spec` is absent.

    fields: those of the record; `spec` (hash), `data` (hash), `weights` (hash), `precision` change identity.
    """
    info = shipped().get(task)
    source = next(iter(info.hashes)) if info else "local"
    spec = fields.pop("spec", info.hashes[source] if info else f"hash of {task}")
    data, weights = fields.pop("data", "d"), fields.pop("weights", weights_hash(model))
    precision, windows = fields.pop("precision", "fp32"), fields.pop("windows", {})
    base = record(model=model, task=task, seed=seed, **fields)
    identity = base.task.model_copy(
        update={
            "hash": spec,
            "data_hash": data,
            "source": source,
            "corpus": info.corpus if info else task,
            "language": info.language if info else base.task.language,
            "paper": info.paper if info else "micro_f1",
        }
    )
    key = run_key(
        model_hash=weights,
        task_hash=spec,
        data_hash=data,
        seed=seed,
        precision=precision,
        track=base.track,
        limit=base.limit,
        protocol={"model": model, "task": task, "extra": base.provenance.started},
    )
    return base.model_copy(
        update={
            "key": key,
            "task": identity,
            "model": base.model.model_copy(update={"hash": weights}),
            "training": base.training.model_copy(update={"precision": precision}),
            "windows": base.windows.model_copy(update=windows),
            "scores": {"macro_f1": score, "micro_f1": score, "weighted_f1": score / 2},
        }
    )


def save_runs(results: Path, model: str, task: str, scores: Mapping[int, float], **fields: Any) -> None:
    """Several seeds."""
    for seed, score in scores.items():
        save_run(results, model, task, seed, score, **fields)
