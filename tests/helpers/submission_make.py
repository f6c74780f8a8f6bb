"""Submissions, honest and changed."""

from __future__ import annotations

import hashlib
import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.hashing import task_identity
from biobench.data.load import load_data
from biobench.report.tasks import shipped
from biobench.schema.document import Prediction, TaskData
from biobench.schema.record import RunRecord
from biobench.schema.task import TaskSpec
from biobench.score import scored
from biobench.store import Store, run_key
from biobench.store.records import canonical_json
from biobench.submission.pack import MANIFEST
from biobench.submission.verify import examine
from tests.helpers.store_make import record

TASK = "demo_topic"


@lru_cache(maxsize=8)
def _data(task: str, data_dir: Path | None) -> TaskData:
    return load_data(load_task(task), data_dir)


def honest_run(
    results: Path,
    seed: int = 42,
    model: str = "org/tiny",
    weights: str | None = None,
    on: str = TASK,
    data_dir: Path | None = None,
    **fields,
):
    """A run on a task's real documents, right on two thirds of them (or half a point off), under its true key."""
    data = _data(on, data_dir)
    info = shipped()[on]
    base = record(model=model, task=on, seed=seed, score=False, **fields)
    task = base.task.model_copy(
        update={
            "hash": info.hashes[data.source],
            "data_hash": data.hash,
            "source": data.source,
            "type": info.type,
            "labels": data.labels,
            "gold_labels": data.gold_labels,
            "test_documents": len(data.test),
            "paper": info.paper,
            "corpus": info.corpus,
            "primary": info.spec.metric.primary,
        }
    )
    base = base.model_copy(update={"protocol": task_identity(load_task(on), data.source)} | course(base, info.spec))
    if weights is not None:
        base = base.model_copy(update={"model": base.model.model_copy(update={"hash": weights})})
    key = run_key(
        model_hash=base.model.hash,
        task_hash=task.hash,
        data_hash=data.hash,
        seed=seed,
        precision="fp32",
        limit=base.limit,
    )
    who = f"{model} {weights} {seed}"
    said = near(data.test, base.scale, who) if base.scale else imperfect(data.test, data.labels, who)
    made = base.model_copy(update={"task": task, "key": key})
    return Store(results).save(scored(made, data.test, said), data.test, said)


def course(base: RunRecord, spec: TaskSpec) -> dict[str, Any]:
    """Training, cost and window as a run of that spec has them, which got better with each epoch."""
    epochs = spec.training.epochs or 1
    points = tuple(
        base.training.curve[0].model_copy(
            update={
                "step": 10 * epoch,
                "epoch": float(epoch),
                "validation": {spec.selection: epoch / 1000},
                "learning_rate": spec.training.learning_rate / 2,
            }
        )
        for epoch in range(1, epochs + 1)
    )
    steps = points[-1].step
    training = {"steps": steps, "best_step": steps, "curve": points, "batch_size": spec.training.batch_size}
    return {
        "training": base.training.model_copy(update=training),
        "cost": base.cost.model_copy(update={"peak_memory_bytes": 10**8}),
        "windows": base.windows.model_copy(update={"max_length": min(128, spec.protocol.max_length)}),
    }


def near(documents, scale: tuple[float, float], who: str) -> list[Prediction]:
    """Numbers that miss the gold by a part that all runs share and by a part of their own."""
    chance, said = random.Random(who), []
    for document in documents:
        off = random.Random(document.id).gauss(0, 0.4) + chance.gauss(0, 0.3)
        number = min(max(float(document.labels[0]) + off, scale[0]), scale[1])
        said.append(Prediction(document=document.id, label_scores=(round(number, 6),)))
    return said


def imperfect(documents, labels, who: str) -> list[Prediction]:
    """Predictions with scores, other ones for each name `who`, as trainings from different seeds give them.

    One document in three is hard, for everybody, and the errors are there.
    """
    chance, said = random.Random(who), []
    for document in documents:
        hard = random.Random(document.id).random() < 1 / 3
        label = chance.choice(labels) if hard or chance.random() < 0.03 else document.labels[0]
        raw = [chance.random() + (1.0 if name == label else 0.0) for name in labels]
        scores = tuple(round(score / sum(raw), 6) for score in raw)
        said.append(Prediction(document=document.id, labels=(label,), label_scores=scores))
    return said


def relist(folder: Path) -> None:
    """Make the manifest fit the files again, as a careful cheat would."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"] = [
        {
            "path": p.relative_to(folder).as_posix(),
            "size": p.stat().st_size,
            "sha256": hashlib.sha256(p.read_bytes()).hexdigest(),
        }
        for part in ("runs", "floors")
        for p in sorted(folder.glob(f"{part}/*/*"))
    ]
    (folder / MANIFEST).write_text(json.dumps(manifest))


def codes(folder, **options) -> set[str]:
    found = examine(folder, **options)
    assert found.state == "refused"
    return {c.code for c in found.checks if c.grade == "error"}


def change_record(folder: Path, change) -> None:
    path = next(folder.glob("runs/*/*.json"))
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    relist(folder)


def rewrite(path: Path, **fields) -> None:
    """The record with other fields, written as ours are."""
    path.write_bytes(canonical_json(json.loads(path.read_text()) | fields))
