"""Exact and near copies among runs: of another seed of the submission, or of a run that was there
before.

Two honest runs differ in the last digits of their scores nearly everywhere, and in their answers
where a document is hard. What is compared is therefore the scores, and the answers on documents
that not both have right. Runs that gave one answer to everything learnt nothing and all say the
same: they are compared with none.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from biobench.report.tasks import NEEDLE
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.store import Brief
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

    brief: Brief
    fold: int
    """Of a task with several splits: which one, from 0."""
    place: str
    """Folder of the results in which it lies; empty for the submission itself."""
    documents: int
    """Hash of the documents' ids."""
    decided: NDArray[np.int64]
    scored: NDArray[np.int64]
    """0 where no score tells two trainings apart: none, or all next to 0 and 1."""
    right: NDArray[np.bool_]
    """Whether the answer is the gold; all false where the gold is not known."""
    varied: bool
    """Whether it gives more than one answer."""

    @property
    def where(self) -> str:
        """Its predictions, in the folder of its results."""
        return f"runs/{self.brief.task}/{self.brief.key}.parquet"

    @property
    def data(self) -> tuple[str, str, int]:
        """What runs must share to be compared: task, data and split."""
        return self.brief.task, self.brief.data, self.fold


def _number(*values: object) -> int:
    """64 bits of the parts, the same in every process."""
    digest = hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little", signed=True)


def answers_of(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction], place: str = ""
) -> Answers:
    """gold: as the file or the data holds it; without spans and labels where it is not known."""
    numeric, by_id = is_numeric(record.task.type), {p.document: p for p in predictions}
    documents = sorted(gold, key=lambda d: d.id)
    has_gold = any(d.spans or d.labels for d in documents)
    rows = [
        _row(
            document,
            by_id.get(document.id) or Prediction(document=document.id),
            numeric=numeric,
            has_gold=has_gold,
        )
        for document in documents
    ]
    decided_, scored, correct = np.array(rows, np.int64).reshape(-1, 3).T
    varied = max(Counter(decided_.tolist()).values(), default=0) < ONE_ANSWER * len(rows)
    return Answers(
        brief=Brief.of(record),
        fold=0 if record.resampling is None else record.resampling.fold,
        place=place,
        documents=_number([d.id for d in documents]),
        decided=decided_,
        scored=scored,
        right=correct == 1,
        varied=varied,
    )


def _row(
    document: Document, prediction: Prediction, *, numeric: bool, has_gold: bool
) -> tuple[int, int, bool]:
    """Hash of the answer, hash of its scores (0: they tell nothing), and whether it is the gold."""
    spans, labels = sorted(set(prediction.spans)), sorted(set(prediction.labels))
    scores = prediction.label_scores or prediction.span_scores
    decided = _number(spans, labels, scores if numeric else ())
    scored = 0
    if numeric or any(1e-3 < score < 1 - 1e-3 for score in scores):
        scored = _number(scores) | 1
    right = set(spans) == set(document.spans) and set(labels) == set(document.labels)
    return decided, scored, has_gold and right


def check_copies(runs: Sequence[Answers], earlier: Iterable[Answers] = ()) -> list[Check]:
    """P02 codes, at most one a run: copies of another seed, or of a run that was there before
    (`earlier`, which is gone through once).
    """
    copies: dict[int, Check] = {}
    pairs = itertools.chain(
        ((number, original) for number in range(len(runs)) for original in runs[:number]),
        ((number, original) for original in earlier for number in range(len(runs))),
    )
    for number, original in pairs:
        run = runs[number]
        if number in copies or (copied := _copied(run, original)) is None:
            continue
        grade, words = copied
        named = f"seed {original.brief.seed}"
        if original.place:
            named = f"{original.brief.model[:80]}, {named}, in {original.place}"
        copies[number] = Check("P02", grade, run.where, f"{words} {named}")
    return [copies[number] for number in sorted(copies)]


def _copied(run: Answers, original: Answers) -> tuple[Grade, str] | None:
    """The grade and what is copied, in words that the other run's name ends; None: no copy."""
    if not _are_comparable(run, original):
        return None
    is_same_model = _same_model(run.brief, original.brief)
    if run.brief.weights == original.brief.weights and not is_same_model:
        return "person", "has the weights, under another name, of"
    if run.documents != original.documents:
        return "person", "has other documents on the same data than"
    copied = _copied_scores(run, original)
    # probes of several seeds on the same states answer nearly alike
    if copied is None and not (is_same_model and run.brief.track == "frozen"):
        copied = _copied_answers(run, original)
    return copied


def _same_model(run: Brief, original: Brief) -> bool:
    return (run.weights, run.model) == (original.weights, original.model)


def _are_comparable(run: Answers, original: Answers) -> bool:
    """Whether equal answers would say anything: both learnt something, on the same data."""
    if run.data != original.data or not (run.varied and original.varied):
        return False
    is_same_model = _same_model(run.brief, original.brief)
    if is_same_model and run.brief.seed == original.brief.seed:
        return False  # the run itself, sent again or in another precision
    # a needle run whose window holds other lengths has other documents
    return run.brief.type != NEEDLE or run.documents == original.documents


def _copied_scores(run: Answers, original: Answers) -> tuple[Grade, str] | None:
    """Scores of the same documents that are equal to the last stored digit."""
    both_scored = (run.scored != 0) & (original.scored != 0)
    number = int(both_scored.sum())
    equal = int((both_scored & (run.scored == original.scored)).sum())
    if number >= SCORES_FROM and equal >= SAME_SCORES * number:
        return "error", f"has the scores of {equal} of {number} documents to the last digit of"
    return None


def _copied_answers(run: Answers, original: Answers) -> tuple[Grade, str] | None:
    """Equal answers to the same documents, of which those count that not both have right."""
    hard = ~(run.right & original.right)
    number, equal = int(hard.sum()), int((hard & (run.decided == original.decided)).sum())
    # where no gold is known, easy documents count as hard too, and many equal answers say nothing
    near = run.right.any() and number >= NEAR_FROM and equal >= NEAR * number
    if number and (equal == number or near):
        return "person", f"answers {equal} of the {number} documents that not both have right as"
    return None
