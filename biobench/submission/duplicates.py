"""Exact and near copies among runs: of another seed of the submission, or of a run that was there before.

Two honest runs differ in the last digits of their scores nearly everywhere, and in their answers where a document is
hard. What is compared is therefore the scores, and the answers on documents that not both have right. Runs that gave
one answer to everything learnt nothing and all say the same: they are compared with none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biobench.report.tasks import NEEDLE
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.submission.checks import Check, Grade

NEAR, NEAR_FROM = 0.9, 10
"""Share of equal answers, and number of documents that not both have right, from which two runs are near copies."""
SAME_SCORES, SCORES_FROM = 0.5, 10
"""Share and number of documents with scores equal to the last stored digit that no two trainings reach."""
ONE_ANSWER = 0.98
"""Share of documents with one answer from which a run is said to give one answer to everything."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run answers, in a form that compares fast. Arrays have one entry a document, in the order of ids."""

    record: RunRecord
    place: str
    """Folder of the results in which it lies; empty for the submission itself."""
    documents: bytes
    """Hash of all ids."""
    decided: NDArray[np.int64]
    scored: NDArray[np.int64]
    """0 where no score tells two trainings apart: none, or all next to 0 and 1."""
    right: NDArray[np.bool_]
    """Whether the answer is the gold; all false where the gold is not known."""
    varied: bool
    """Whether it gives more than one answer."""


def answers_of(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction], place: str = ""
) -> Answers:
    """gold: as the file or the data holds it; without spans and labels where it is not known."""
    numeric = is_numeric(record.task.type)
    by_id = {p.document: p for p in predictions}
    documents = sorted(gold, key=lambda d: d.id)
    known = any(d.spans or d.labels for d in documents)
    decided, scored, right = [], [], []
    for document in documents:
        p = by_id.get(document.id) or Prediction(document=document.id)
        scores, spans, labels = p.label_scores or p.span_scores, frozenset(p.spans), frozenset(p.labels)
        decided.append(hash((spans, labels, scores if numeric else ())))
        scored.append(hash(scores) | 1 if numeric or any(1e-3 < s < 1 - 1e-3 for s in scores) else 0)
        right.append(known and spans == frozenset(document.spans) and labels == frozenset(document.labels))
    commonest = max(Counter(decided).values(), default=0)
    return Answers(
        record,
        place,
        hashlib.sha256("\0".join(d.id for d in documents).encode("utf-8", "replace")).digest(),
        np.array(decided, np.int64),
        np.array(scored, np.int64),
        np.array(right, np.bool_),
        varied=commonest < ONE_ANSWER * len(decided),
    )


def check_copies(runs: Sequence[Answers], earlier: Sequence[Answers] = ()) -> list[Check]:
    """P02 codes, at most one a run: copies of another seed, or of a run that was there before (`earlier`)."""
    findings = ((_copied(run, other) for other in (*runs[:number], *earlier)) for number, run in enumerate(runs))
    return [check for checks in findings if (check := next(filter(None, checks), None))]


def _copied(run: Answers, other: Answers) -> Check | None:
    mine, theirs = run.record, other.record
    named = f"{theirs.model.id[:80]}, seed {theirs.seed}, in {other.place}" if other.place else f"seed {theirs.seed}"

    def finding(grade: Grade, what: str) -> Check:
        return Check("P02", grade, f"runs/{mine.task.id}/{mine.key}.parquet", f"{what} {named}")

    if (mine.task.id, mine.task.data_hash) != (theirs.task.id, theirs.task.data_hash):
        return None
    same_model = (mine.model.hash, mine.model.id) == (theirs.model.hash, theirs.model.id)
    if (same_model and mine.seed == theirs.seed) or not (run.varied and other.varied):
        return None  # the run itself, sent again or in another precision; or one that learnt nothing
    if mine.resampling != theirs.resampling or (mine.task.type == NEEDLE and run.documents != other.documents):
        return None  # other test documents: of another split, or of a window that holds other lengths
    if mine.model.hash == theirs.model.hash and not same_model:
        return finding("person", "has the weights, under another name, of")
    if run.documents != other.documents:
        return finding("person", "has other documents on the same data than")
    scored = (run.scored != 0) & (other.scored != 0)
    number, equal = int(scored.sum()), int((scored & (run.scored == other.scored)).sum())
    if number >= SCORES_FROM and equal >= SAME_SCORES * number:
        return finding("error", f"has the scores of {equal} of {number} documents to the last digit of")
    if same_model and mine.track == "frozen":
        return None  # probes of several seeds on the same states answer nearly alike
    open_ = ~(run.right & other.right)
    number, equal = int(open_.sum()), int((open_ & (run.decided == other.decided)).sum())
    # where no gold is known, easy documents count as open too, and many equal answers say nothing
    near = run.right.any() and number >= NEAR_FROM and equal >= NEAR * number
    if number and (equal == number or near):
        return finding("person", f"answers {equal} of the {number} documents that not both have right as")
    return None
