"""Stores whose predictions are real: single-label runs of a chosen quality, scored from what is stored."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from biobench.report.tasks import shipped
from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.score import scored
from biobench.store import Store, run_key
from tests.helpers.store_make import record

LABELS = ("A", "B", "C")
SEEDS = (42, 43, 44)


def documents(task: str, count: int) -> list[Document]:
    """Test documents with labels in turn, each its own group."""
    return [
        Document(id=f"{task}-{i}", group=f"{task}-{i}", text="", split="test", labels=(LABELS[i % 3],))
        for i in range(count)
    ]


def predictions(gold: list[Document], quality: float, salt: str) -> list[Prediction]:
    """Right with probability `quality`, else the next label."""
    chance = random.Random(salt)
    said = []
    for d in gold:
        right = chance.random() < quality
        label = d.labels[0] if right else LABELS[(LABELS.index(d.labels[0]) + 1) % 3]
        said.append(Prediction(document=d.id, labels=(label,)))
    return said


def constant(gold: list[Document]) -> list[Prediction]:
    """The floor that says A always."""
    return [Prediction(document=d.id, labels=("A",)) for d in gold]


def save(
    results: Path,
    model: str,
    task: str,
    seed: int,
    quality: float = 0.7,
    *,
    count: int = 60,
    said: list[Prediction] | None = None,
    spec: str | None = None,
    data: str = "d",
    identity: dict[str, Any] | None = None,
    **fields: Any,
) -> RunRecord:
    """One run, on the shipped spec where there is one. identity: fields of its task;
    fields: of the record (limit, overrides, ...)."""
    info = shipped().get(task)
    source = next(iter(info.hashes)) if info else "local"
    gold = documents(info.corpus if info else task, count)
    base = record(model=model, task=task, seed=seed, score=False, **fields)
    about = base.task.model_copy(
        update={
            "hash": spec or (info.hashes[source] if info else f"hash of {task}"),
            "data_hash": data,
            "source": source,
            "corpus": info.corpus if info else task,
            "language": info.language if info else "en",
            "paper": info.paper if info else "micro_f1",
            "type": "single_label",
            "labels": LABELS,
            "gold_labels": LABELS,
            "test_documents": count,
            **(identity or {}),
        }
    )
    key = run_key(
        model_hash=base.model.hash,
        task_hash=about.hash,
        data_hash=data,
        seed=seed,
        precision="fp32",
        track=base.track,
        limit=base.limit,
        protocol={"model": model, "task": task},
    )
    made = base.model_copy(update={"key": key, "task": about})
    said = predictions(gold, quality, f"{model} {task} {seed}") if said is None else said
    return Store(results).save(scored(made, gold, said), gold, said)


def save_runs(
    results: Path, model: str, tasks: Iterable[str], quality: float, seeds: Iterable[int] = SEEDS, **fields: Any
) -> None:
    """Several tasks and seeds."""
    for task in tasks:
        for seed in seeds:
            save(results, model, task, seed, quality, **fields)
