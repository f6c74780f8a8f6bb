"""Exact and near copies among runs: of another seed of the submission, or of a run that was there
before.

Two honest runs differ in the last digits of their scores nearly everywhere, and in their answers
where a document is hard. What is compared is therefore the scores, and the answers on documents
that not both have right. Runs that gave one answer to everything learnt nothing and all say the
same: they are compared with none.
"""

from __future__ import annotations

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
"""Share of equal answers, and number of documents that not both have right, from which two runs are
near copies.
"""
SAME_SCORES, SCORES_FROM = 0.5, 10
"""Share and number of documents with scores equal to the last stored digit that no two trainings
reach.
"""
ONE_ANSWER = 0.98
"""Share of documents with one answer from which a run is said to give one answer to everything."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run answers, in a form that compares fast. Arrays have one entry a document, in the
    order of ids.
    """

    record: RunRecord
    place: str
    """Folder of the results in which it lies; empty for the submission itself."""
    documents: tuple[str, ...]
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
    numeric, by_id = is_numeric(record.task.type), {p.document: p for p in predictions}
    documents = sorted(gold, key=lambda d: d.id)
    known = any(d.spans or d.labels for d in documents)
    rows = []
    for document in documents:
        p = by_id.get(document.id) or Prediction(document=document.id)
        scores, spans, labels = (
            p.label_scores or p.span_scores,
            frozenset(p.spans),
            frozenset(p.labels),
        )
        telling = numeric or any(1e-3 < s < 1 - 1e-3 for s in scores)
        right = (
            known and spans == frozenset(document.spans) and labels == frozenset(document.labels)
        )
        rows.append(
            (
                hash((spans, labels, scores if numeric else ())),
                hash(scores) | 1 if telling else 0,
                right,
            )
        )
    decided, scored, correct = np.array(rows, np.int64).reshape(-1, 3).T
    varied = max(Counter(decided.tolist()).values(), default=0) < ONE_ANSWER * len(rows)
    return Answers(
        record, place, tuple(d.id for d in documents), decided, scored, correct == 1, varied
    )


def check_copies(runs: Sequence[Answers], earlier: Sequence[Answers] = ()) -> list[Check]:
    """P02 codes, at most one a run: copies of another seed, or of a run that was there before
    (`earlier`).
    """
    checks = []
    for number, run in enumerate(runs):
        for other in (*runs[:number], *earlier):
            if (copied := _copied(run, other)) is not None:
                (grade, what), of = copied, other.record
                named = (
                    f"{of.model.id[:80]}, seed {of.seed}, in {other.place}"
                    if other.place
                    else f"seed {of.seed}"
                )
                where = f"runs/{run.record.task.id}/{run.record.key}.parquet"
                checks.append(Check("P02", grade, where, f"{what} {named}"))
                break
    return checks


def _copied(run: Answers, other: Answers) -> tuple[Grade, str] | None:
    mine, theirs = run.record, other.record
    tests = [
        (record.task.id, record.task.data_hash, record.resampling) for record in (mine, theirs)
    ]
    if tests[0] != tests[1]:
        return None
    same_weights = mine.model.hash == theirs.model.hash
    same_model, same_documents = (
        same_weights and mine.model.id == theirs.model.id,
        run.documents == other.documents,
    )
    if (same_model and mine.seed == theirs.seed) or not (run.varied and other.varied):
        return (
            None  # the run itself, sent again or in another precision; or one that learnt nothing
        )
    if mine.task.type == NEEDLE and not same_documents:
        return None  # of a window that holds other lengths
    if same_weights and not same_model:
        return "person", "has the weights, under another name, of"
    if not same_documents:
        return "person", "has other documents on the same data than"
    scored = (run.scored != 0) & (other.scored != 0)
    number, equal = int(scored.sum()), int((scored & (run.scored == other.scored)).sum())
    if number >= SCORES_FROM and equal >= SAME_SCORES * number:
        return "error", f"has the scores of {equal} of {number} documents to the last digit of"
    if same_model and mine.track == "frozen":
        return None  # probes of several seeds on the same states answer nearly alike
    open_ = ~(run.right & other.right)
    number, equal = int(open_.sum()), int((open_ & (run.decided == other.decided)).sum())
    # where no gold is known, easy documents count as open too, and many equal answers say nothing
    near = run.right.any() and number >= NEAR_FROM and equal >= NEAR * number
    if number and (equal == number or near):
        return "person", f"answers {equal} of the {number} documents that not both have right as"
    return None
