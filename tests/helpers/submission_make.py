"""Submissions, honest and changed."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.hashing import task_identity
from biobench.data.load import load_data
from biobench.reporting.tasks import shipped
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import RunRecord
from biobench.store import Store
from biobench.submission.checks import Check, Verification
from biobench.submission.pack import MANIFEST, submit
from biobench.submission.verify import examine
from tests.helpers.store_make import record, save_scored

TASK = "demo_topic"


@lru_cache(maxsize=1)
def demo_data() -> TaskData:
    return load_data(load_task(TASK), None)


def honest_run(
    results: Path,
    seed: int = 42,
    model: str = "org/tiny",
    weights: str | None = None,
    **fields: Any,
) -> RunRecord:
    """A run on the task's real documents, right on two thirds of them, under its true key."""
    data, info = demo_data(), shipped()[TASK]
    base = record(model=model, task=TASK, seed=seed, score=False, **fields)
    changes: dict[str, Any] = {
        "protocol": task_identity(load_task(TASK), data.source),
        "cost": base.cost.model_copy(update={"peak_memory_bytes": 10**8}),
    }
    if weights is not None:
        changes["model"] = base.model.model_copy(update={"hash": weights})
    return save_scored(
        results,
        base.model_copy(update=changes),
        data.test,
        imperfect(data.test, data.labels, f"{model} {weights} {seed}"),
        hash=info.hashes[data.source],
        data_hash=data.hash,
        source=data.source,
        type=info.type,
        labels=data.labels,
        gold_labels=data.gold_labels,
        test_documents=len(data.test),
        paper=info.paper,
        corpus=info.corpus,
        primary=info.spec.metric.primary,
    )


def save_rekeyed(
    results: Path,
    run: RunRecord,
    predictions: Sequence[Prediction] | None = None,
    gold: Sequence[Document] | None = None,
    seed: int | None = None,
    **model: Any,
) -> RunRecord:
    """The run under other weights, seed or predictions, with the key, scores and hashes that
    follow.
    """
    stored = Store(results).load_predictions(run) if predictions is None or gold is None else None
    if stored is not None:
        gold, predictions = gold or stored[0], predictions or stored[1]
    seed = run.seed if seed is None else seed
    run = run.model_copy(update={"seed": seed, "model": run.model.model_copy(update=model)})
    return save_scored(results, run, gold, predictions)


def imperfect(documents: Sequence[Document], labels: Sequence[str], who: str) -> list[Prediction]:
    """Predictions with scores, other ones for each name `who`, as trainings from different seeds
    give them.

    One document in three is hard, for everybody, and the errors are there.
    """
    chance, predictions = random.Random(who), []
    for document in documents:
        hard = random.Random(document.id).random() < 1 / 3
        label = chance.choice(labels) if hard or chance.random() < 0.03 else document.labels[0]
        raw = [chance.random() + (1.0 if name == label else 0.0) for name in labels]
        scores = tuple(round(score / sum(raw), 6) for score in raw)
        predictions.append(Prediction(document=document.id, labels=(label,), label_scores=scores))
    return predictions


def checked(
    results: Path, name: str = "pack", model: str = "org/tiny", **options: Any
) -> Verification:
    """The findings in the model's runs, packed beside the results."""
    return examine(submit(model, results, results.parent / name), **options)


def codes(verification: Verification, grade: str = "error") -> set[str]:
    return {check.code for check in verification.checks if check.grade == grade}


def every_code(verification: Verification) -> set[str]:
    """The codes of all findings, whatever their grade."""
    return {check.code for check in verification.checks}


def findings(verification: Verification, code: str) -> list[Check]:
    """The findings of one code."""
    return [check for check in verification.checks if check.code == code]


def with_task(run: RunRecord, **fields: Any) -> RunRecord:
    """The record with these fields of its task changed, and nothing that follows from them."""
    return run.model_copy(update={"task": run.task.model_copy(update=fields)})


def refused(folder: Path, **options: Any) -> set[str]:
    """The codes of the errors that refuse a submission."""
    verification = examine(folder, **options)
    assert verification.state == "refused"
    return codes(verification)


def relist(folder: Path) -> None:
    """Make the manifest fit the files again, as a careful cheat would."""
    manifest = json.loads((folder / MANIFEST).read_text())
    contents = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.glob("runs/*/*"))
    }
    manifest["files"] = [
        {"path": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
    ]
    (folder / MANIFEST).write_text(json.dumps(manifest))


def change_record(
    folder: Path, change: Callable[[dict[str, Any]], object], path: Path | None = None
) -> None:
    """Change a record of a submission (the first), and its manifest with it."""
    path = path or next(folder.glob("runs/*/*.json"))
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    relist(folder)
