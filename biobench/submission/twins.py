"""Runs that say the same: copied seeds, another model's predictions under a new name, the gold itself.

Two honest runs of different seeds or weights differ where a document is hard and in the last digits of their scores
everywhere. What is compared is therefore the decisions on documents that not both have right, and the scores.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.submission.checks import Check, Grade

NEAR = 0.9
"""Share of equal decisions among documents that not both have right, from which two runs are nearly equal."""
NEAR_FROM = 10
"""Such documents that are needed to say so; all equal is said of any number."""
SAME_SCORES = 0.5
"""Share of documents with scores equal to the last stored digit that no two trainings reach."""
SCORES_FROM = 10
ORACLE = 0.995
"""A score from which the predictions may be the gold."""


@dataclass(frozen=True, slots=True)
class Print:
    """What one run says, in a form that compares fast. Arrays have one entry a document, in the order of its id."""

    task: str
    key: str
    data: str
    model: str
    """Its name."""
    weights: str
    seed: int
    place: str
    """Folder of the results in which it lies; empty for the submission itself."""
    documents: bytes
    """Hash of all ids."""
    decided: NDArray[np.uint64]
    scored: NDArray[np.uint64]
    """0 where no score tells two trainings apart (none, or all next to 0 and 1)."""
    right: NDArray[np.bool_]
    """Where the decision is the gold; all false where the gold is not known."""


def print_of(record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction], place: str = "") -> Print:
    """gold: as the file or the data holds it; without spans and labels where it is not known."""
    prediction_of = {p.document: p for p in predictions}
    documents = sorted(gold, key=lambda d: d.id)
    known = any(d.spans or d.labels for d in documents)
    decided, scored, right = [], [], []
    for document in documents:
        prediction = prediction_of.get(document.id) or Prediction(document=document.id)
        decided.append(_digest(sorted(set(prediction.spans)), sorted(prediction.labels)))
        scores = prediction.label_scores or prediction.span_scores
        tells = any(1e-3 < s < 1 - 1e-3 for s in scores)
        scored.append(_digest(scores) if tells else 0)
        same = set(prediction.spans) == set(document.spans) and set(prediction.labels) == set(document.labels)
        right.append(known and same)
    return Print(
        task=record.task.id,
        key=record.key,
        data=record.task.data_hash,
        model=record.model.id,
        weights=record.model.hash,
        seed=record.seed,
        place=place,
        documents=hashlib.sha256("\0".join(d.id for d in documents).encode("utf-8", "replace")).digest(),
        decided=np.array(decided, np.uint64),
        scored=np.array(scored, np.uint64),
        right=np.array(right, np.bool_),
    )


def _digest(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).digest(), "big") | 1


class Alike(NamedTuple):
    """How much two runs say the same. open: documents that not both have right. same: of these, equally decided."""

    open: int
    same: int
    scored: int
    """Documents on which both have scores that tell trainings apart."""
    same_scores: int


def alike(a: Print, b: Print) -> Alike:
    """Of two runs on the same documents."""
    open_ = ~(a.right & b.right)
    scored = (a.scored > 0) & (b.scored > 0)
    return Alike(
        int(open_.sum()),
        int((open_ & (a.decided == b.decided)).sum()),
        int(scored.sum()),
        int((scored & (a.scored == b.scored)).sum()),
    )


def check_twins(prints: Sequence[Print], others: Iterable[Print] = ()) -> list[Check]:
    """P02 codes: seeds of the submission that say the same, and runs of other weights that say the same.

    others: runs that were there before; one of the same weights and seed is the same run and may say the same.
    """
    checks: list[Check] = []
    by_task: dict[tuple[str, str], list[Print]] = defaultdict(list)
    for run in prints:
        # one finding a run: copies of one file would give as many as there are pairs
        checks += next(filter(None, (_pair(run, earlier) for earlier in by_task[run.task, run.data])), [])
        by_task[run.task, run.data].append(run)
    reported: set[str] = set()
    for other in others:
        for run in by_task.get((other.task, other.data), ()):
            if run.key not in reported and (run.weights, run.seed) != (other.weights, other.seed):
                pair = _pair(run, other)
                reported |= {run.key} if pair else set()
                checks += pair
    return checks


def _pair(run: Print, other: Print) -> list[Check]:
    whose = f"seed {other.seed}" if not other.place else f"{other.model[:80]}, seed {other.seed}, in {other.place}"

    def finding(grade: Grade, what: str) -> list[Check]:
        return [Check("P02", grade, f"runs/{run.task}/{run.key}.parquet", f"{what} {whose}")]

    if run.documents != other.documents:
        return finding("person", "has other documents on the same data than")
    seen = alike(run, other)
    if seen.scored >= SCORES_FROM and seen.same_scores >= SAME_SCORES * seen.scored:
        return finding("error", f"has the scores of {seen.same_scores} of {seen.scored} documents to the last digit of")
    if seen.open and seen.same == seen.open:
        return finding("person", f"decides all {seen.open} documents that not both have right as")
    known = bool(run.right.any() or other.right.any())  # where no gold is known, easy documents count as open
    if known and seen.open >= NEAR_FROM and seen.same >= NEAR * seen.open:
        return finding("person", f"decides {seen.same} of {seen.open} documents that not both have right as")
    return []


def check_scores(records: Sequence[RunRecord]) -> list[Check]:
    """P03 and P04: scores of the oracle, and seeds without any spread."""
    checks = []
    by_task: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        by_task[record.task.id].append(record)
        names = sorted({record.task.primary, record.task.paper, "micro_f1"} & record.scores.keys())
        best = max((record.scores[n] for n in names), default=0.0)
        if best >= ORACLE:
            what = f"scores {best:.4f}, as the gold itself does"
            checks.append(Check("P03", "person", f"runs/{record.task.id}/{record.key}.json", what))
    for task, task_records in by_task.items():
        several = len(task_records) > 1 and all(r.scores == task_records[0].scores for r in task_records)
        most = len(task_records) > 2 and len({r.scores.get(r.task.primary) for r in task_records}) == 1
        if several or most:
            what = f"the spread of its {len(task_records)} seeds is exactly zero"
            checks.append(Check("P04", "person", f"runs/{task}", what))
    return checks
