"""Stores with chosen scores, for the report tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biobench.schema.record import RunRecord
from biobench.store import Store, run_key
from tests.helpers.store_make import documents, predictions, record, shipped_identity, weights_hash


def save_run(
    results: Path, model: str, task: str, seed: int, score: float, **fields: Any
) -> RunRecord:
    """Store the run of `run_of`."""
    return Store(results).save(
        run_of(model, task, seed, score, **fields), documents(), predictions()
    )


def run_of(model: str, task: str, seed: int, score: float, **fields: Any) -> RunRecord:
    """One run with `score` as macro and micro F1, on the shipped spec where there is one and `spec`
    is absent.

    fields: those of the record; `spec` (hash), `data` (hash), `weights` (hash), `precision` change
    identity.
    """
    about = shipped_identity(task)
    about |= {"hash": fields.pop("spec", about["hash"]), "data_hash": fields.pop("data", "d")}
    weights, precision = fields.pop("weights", weights_hash(model)), fields.pop("precision", "fp32")
    windows = fields.pop("windows", {})
    base = record(model=model, task=task, seed=seed, **fields)
    key = run_key(
        model_hash=weights,
        task_hash=about["hash"],
        data_hash=about["data_hash"],
        seed=seed,
        precision=precision,
        track=base.track,
        limit=base.limit,
        protocol={"extra": base.provenance.started},
    )
    return base.model_copy(
        update={
            "key": key,
            "task": base.task.model_copy(update=about),
            "model": base.model.model_copy(update={"hash": weights}),
            "training": base.training.model_copy(update={"precision": precision}),
            "windows": base.windows.model_copy(update=windows),
            "scores": {"macro_f1": score, "micro_f1": score, "weighted_f1": score / 2},
        }
    )


def save_runs(
    results: Path, model: str, task: str, scores: Mapping[int, float], **fields: Any
) -> None:
    """Several seeds."""
    for seed, score in scores.items():
        save_run(results, model, task, seed, score, **fields)
