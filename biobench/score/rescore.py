"""Recomputing every stored score from the stored predictions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.schema.document import Document
from biobench.schema.record import RunRecord
from biobench.score.compute import scored
from biobench.score.counting import ScoreError
from biobench.store import Store

DataLoader = Callable[[RunRecord], Sequence[Document]]
"""Scored documents of a record's run (its limit applied), for agreement-bound data; may raise
DataUnavailableError."""

Outcome = Literal["unchanged", "changed", "unavailable", "failed"]


@dataclass(frozen=True, slots=True)
class Rescored:
    """What became of one record. record: with the scores of today, the stored one where there are
    none, None where that is damaged. changed: score name -> (before, after); None before: it was
    not there.
    """

    task: str
    key: str
    outcome: Outcome
    record: RunRecord | None = None
    changed: dict[str, tuple[float | None, float | None]] | None = None
    reason: str | None = None
    hint: str | None = None


def rescore(
    store: Store,
    data_loader: DataLoader | None = None,
    *,
    write: bool = True,
    tasks: Collection[str] | None = None,
) -> list[Rescored]:
    """Score all runs of `store` (or those of these tasks) again and replace the records whose
    scores differ.

    A damaged record or prediction file becomes a `failed` line, agreement-bound data that is
    missing an
    `unavailable` one; the others go on. Raises StoreError only where a record cannot be written.
    """
    records, findings = store.scan()
    results = [
        Rescored(task="", key="", outcome="failed", reason=str(finding), hint=finding.hint)
        for finding in findings
    ]
    for record in records:
        if tasks is not None and record.task.id not in tasks:
            continue
        result = _one(store, record, data_loader)
        if write and result.outcome == "changed" and result.record is not None:
            store.update(result.record)
        results.append(result)
    return results


def _one(store: Store, record: RunRecord, data_loader: DataLoader | None) -> Rescored:
    task, key = record.task.id, record.key
    try:
        documents = data_loader(record) if record.redacted and data_loader is not None else None
        gold, predictions = store.load_predictions(record, documents)
        after = scored(record, gold, predictions)
    except DataUnavailableError as error:
        return Rescored(task, key, "unavailable", record, reason=str(error), hint=error.hint)
    except (StoreError, ScoreError, DataFormatError) as error:
        return Rescored(task, key, "failed", record, reason=str(error), hint=error.hint)
    if after.scores == record.scores and after.per_label == record.per_label:
        return Rescored(task, key, "unchanged", after, {})
    names = sorted(record.scores.keys() | after.scores.keys())
    changed = {
        name: (record.scores.get(name), after.scores.get(name))
        for name in names
        if record.scores.get(name) != after.scores.get(name)
    }
    return Rescored(task, key, "changed", after, changed)
