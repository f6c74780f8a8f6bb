"""Predictions of unknown make, held against the kind of task that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from biobench.schema.document import Document, Prediction
from biobench.schema.kind import traits_of
from biobench.schema.record import RunRecord
from biobench.store.records import is_key
from biobench.submission.checks import Check, error

MOST_RANKED = 20
"""Labels of a ranking that a run stores; those below them count nothing."""
ROUNDING = 2e-6
"""Stored scores are rounded to six digits."""


def check_predictions(
    record: RunRecord, where: str, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> list[Check]:
    """P01 codes: what no run of ours stores, whatever the model.

    gold: the documents as the file holds them, before anything of them is replaced.
    """
    problems = (
        ["documents of another split than test"] if any(d.split != "test" for d in gold) else []
    )
    if record.redacted:
        if any(d.spans or d.labels or d.tags or d.tokens for d in gold):
            problems.append("gold of a task whose data is under an agreement")
        if any(not is_key(d.id) or not is_key(d.group) for d in gold):
            problems.append("names of documents of a task whose data is under an agreement")
    problems += filter(None, (_problem(record, prediction) for prediction in predictions))
    return [error("P01", where, f"holds {what}") for what in dict.fromkeys(problems)]


def _problem(record: RunRecord, p: Prediction) -> str:
    """What is wrong with one prediction of this kind of task; empty where nothing is."""
    labels, traits, numbers = record.task.labels, traits_of(record.task.type), p.label_scores
    if traits.numeric:
        low, high = record.scale or (0.0, 0.0)
        fits = (
            len(numbers) == 1 and low <= numbers[0] <= high and not (p.labels or p.spans or p.tags)
        )
        return "" if fits else "something else than one number of the scale"
    different, known = len({*p.labels}), {s.label for s in p.spans} | {*p.labels} <= {*labels}
    wrong = {  # NaN is no fraction either
        "scores that are no fractions between 0 and 1": any(
            not 0 <= s <= 1 for s in (*p.span_scores, *numbers)
        ),
        "labels that the task does not have": not (known or traits.ranked),
    }
    if traits.spans:
        wrong |= {
            "labels of documents in a task of spans": bool(p.labels or numbers),
            "another number of span scores than of spans": len(p.span_scores)
            not in (0, len(p.spans)),
            "a span twice": len({*p.spans}) < len(p.spans),
            "spans that end before they begin": any(not 0 <= s.start < s.end for s in p.spans),
        }
    else:
        wrong["spans in a task of document labels"] = bool(p.spans or p.span_scores or p.tags)
    if traits.ranked:
        what = f"something else than one to {MOST_RANKED} different labels in order"
        wrong[what] = bool(numbers) or not 0 < different == len(p.labels) <= MOST_RANKED
    elif not traits.spans:
        wrong["another number of label scores than the task has labels"] = len(numbers) != len(
            labels
        )
        wrong["a label twice for one document"] = different < len(p.labels)
        if (
            traits.single and not traits.options
        ):  # the likeliest set need not hold the likeliest options
            best = [
                one for one, s in zip(labels, numbers, strict=False) if s >= max(numbers) - ROUNDING
            ]
            wrong["labels that do not follow from their scores"] = (
                len(p.labels) != 1 or p.labels[0] not in best
            )
    return next((what for what, is_so in wrong.items() if is_so), "")
