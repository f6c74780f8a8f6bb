"""Stores whose predictions are real: single-label runs of a chosen quality, scored from what is
stored.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from tests.helpers.store_make import record, save_scored, shipped_identity

LABELS = ("A", "B", "C")
SEEDS = (42, 43, 44)


def documents(task: str, count: int) -> list[Document]:
    """Test documents with labels in turn, each its own group."""
    return [
        Document(
            id=f"{task}-{i}", group=f"{task}-{i}", text="", split="test", labels=(LABELS[i % 3],)
        )
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


def with_errors(gold: list[Document], wrong: range) -> list[Prediction]:
    """Right but on the documents at these positions, where it is the next label."""
    answers = []
    for position, document in enumerate(gold):
        label = document.labels[0]
        if position in wrong:
            label = LABELS[(LABELS.index(label) + 1) % 3]
        answers.append(Prediction(document=document.id, labels=(label,)))
    return answers


def save_errors(
    results: Path, model: str, task: str, seed: int, wrong: range, count: int, **fields: Any
) -> None:
    """A run that is wrong on these documents alone."""
    answers = with_errors(documents(task, count), wrong)
    save(results, model, task, seed, count=count, said=answers, **fields)


def constant(gold: list[Document]) -> list[Prediction]:
    """The baseline that says A always."""
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
    about = shipped_identity(task)
    about |= {"data_hash": data, "type": "single_label", "labels": LABELS, "gold_labels": LABELS}
    about |= {"test_documents": count} | ({"hash": spec} if spec else {}) | (identity or {})
    gold = documents(about["corpus"], count)
    said = predictions(gold, quality, f"{model} {task} {seed}") if said is None else said
    run = record(model=model, task=task, seed=seed, score=False, **fields)
    return save_scored(results, run, gold, said, **about)


def save_runs(
    results: Path,
    model: str,
    tasks: Iterable[str],
    quality: float,
    seeds: Iterable[int] = SEEDS,
    **fields: Any,
) -> None:
    """Several tasks and seeds."""
    for task in tasks:
        for seed in seeds:
            save(results, model, task, seed, quality, **fields)


def save_models(results: Path, *tasks: str, **qualities: float) -> None:
    """Three runs on 200 documents of each of these models, by name."""
    for model, quality in qualities.items():
        save_runs(results, model, tasks, quality, (1, 2, 3), count=200)


def save_pair(
    results: Path,
    tasks: Iterable[str],
    first: float,
    second: float,
    *seeds: Iterable[int],
    **fields: Any,
) -> None:
    """Runs of the models a and b of these qualities."""
    for model, quality in (("a", first), ("b", second)):
        save_runs(results, model, tasks, quality, *seeds, **fields)
