"""Recomputing every stored score from the stored predictions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Literal

from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.schema.record import RunRecord
from biobench.score.compute import scored
from biobench.score.counting import ScoreError
from biobench.score.slices import RunTexts
from biobench.store import Store

TextLoader = Callable[[RunRecord], RunTexts | None]
"""What was read of a run's data, None where nobody named its folder; may raise
DataUnavailableError. Data under an agreement are not scored without it, others get slices by it."""

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
    load_texts: TextLoader | None = None,
    *,
    tasks: Collection[str] | None = None,
) -> list[Rescored]:
    """Score all runs of `store` (or those of these tasks) again and replace the records whose
    scores differ.

    load_texts: gives scores on slices. A damaged record or prediction file becomes a `failed` line,
    agreement-bound data that is missing an `unavailable` one; the others go on. Raises StoreError
    only where a record cannot be written.
    """
    records, findings = store.scan()
    results = [
        Rescored(task="", key="", outcome="failed", reason=str(finding), hint=finding.hint)
        for finding in findings
    ]
    for record in records:
        if tasks is not None and record.task.id not in tasks:
            continue
        result = _rescored(store, record, load_texts)
        if result.outcome == "changed" and result.record is not None:
            store.update(result.record)
        results.append(result)
    return results


def _rescored(store: Store, record: RunRecord, load_texts: TextLoader | None) -> Rescored:
    result = partial(Rescored, record.task.id, record.key)
    texts = None
    reason = None
    hint = None
    try:
        texts = None if load_texts is None else load_texts(record)
    except DataUnavailableError as error:
        if record.redacted:
            return result("unavailable", record, reason=str(error), hint=error.hint)
        reason = f"its slices stay as they are: {error}"
        hint = error.hint
    except DataFormatError as error:
        return result("failed", record, reason=str(error), hint=error.hint)
    try:
        new = _scored_again(store, record, texts)
    except DataUnavailableError as error:
        return result("unavailable", record, reason=str(error), hint=error.hint)
    except (StoreError, ScoreError) as error:
        return result("failed", record, reason=str(error), hint=error.hint)
    changed = _changed_scores(record, new)
    if changed or new.per_label != record.per_label:
        return result("changed", new, changed, reason, hint)
    return result("unchanged", new, changed, reason, hint)


def _scored_again(store: Store, record: RunRecord, texts: RunTexts | None) -> RunRecord:
    """The record with the scores of today, with slices where the texts are at hand."""
    if texts is None:
        gold, predictions = store.load_predictions(record, None)
        return scored(record, gold, predictions)
    gold, predictions = store.load_predictions(record, texts.scored_on)
    return scored(record, gold, predictions, texts.parts)


def _changed_scores(
    record: RunRecord, rescored: RunRecord
) -> dict[str, tuple[float | None, float | None]]:
    """Name of a score (``unseen micro_f1`` on a slice) to what it was and what it is now."""
    old = _all_scores(record)
    new = _all_scores(rescored)
    changed = {}
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            changed[name] = old.get(name), new.get(name)
    return changed


def _all_scores(record: RunRecord) -> dict[str, float]:
    scores = dict(record.scores)
    for name, on_slice in record.slices.items():
        scores |= {f"{name} {metric}": value for metric, value in on_slice.scores.items()}
    return scores
