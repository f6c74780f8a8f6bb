"""Predictions of unknown make, held against the kind of task that they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from biobench.schema.document import Document, Prediction
from biobench.schema.kind import traits_of
from biobench.schema.record import RunRecord
from biobench.store.records import is_key
from biobench.submission.checks import Problem, found

MOST_RANKED = 20
"""Labels of a ranking that a run stores; those below them count nothing."""
ROUNDING = 2e-6
"""Stored scores are rounded to six digits."""


def check_predictions(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> list[Problem]:
    """P01 codes: what no run of ours stores, whatever the model.

    gold: the documents as the file holds them, before anything of them is replaced.
    """
    splits = {document.split for document in gold}
    contents = [*found({"documents of another split than test": splits - {"test"}})]
    if record.redacted:
        contents += _disclosures(gold)
    for prediction in predictions:
        # a prediction's later problems may follow from its first
        contents += islice(_problems(record, prediction), 1)
    return [Problem("P01", f"holds {content}") for content in dict.fromkeys(contents)]


def _disclosures(gold: Sequence[Document]) -> Iterator[str]:
    """What the documents give away of data that is under an agreement."""
    shows_gold = any(d.spans or d.labels or d.tags or d.tokens for d in gold)
    hides_names = all(is_key(d.id) and is_key(d.group) for d in gold)
    return found(
        {
            "gold of a task whose data is under an agreement": shows_gold,
            "names of documents of a task whose data is under an agreement": not hides_names,
        }
    )


def _problems(record: RunRecord, prediction: Prediction) -> Iterator[str]:
    """What is wrong with one prediction of this kind of task; the first tells the most."""
    traits = traits_of(record.task.type)
    labels = record.task.labels
    if traits.numeric:
        yield from _number_problems(prediction, record.scale or (0.0, 0.0))
        return
    yield from _fraction_problems(prediction)
    used_labels = {span.label for span in prediction.spans} | {*prediction.labels}
    if not traits.ranked and not used_labels <= {*labels}:
        yield "labels that the task does not have"
    if traits.spans:
        yield from _span_problems(prediction)
    elif prediction.spans or prediction.span_scores or prediction.tags:
        yield "spans in a task of document labels"
    elif traits.ranked:
        yield from _ranking_problems(prediction)
    else:
        yield from _label_problems(prediction, labels)
        # the likeliest set of options need not hold the likeliest options
        if traits.single and not traits.options:
            yield from _choice_problems(prediction, labels)


def _number_problems(prediction: Prediction, scale: tuple[float, float]) -> Iterator[str]:
    """scale: lowest and highest number of the task."""
    numbers, (low, high) = prediction.label_scores, scale
    has_others = prediction.labels or prediction.spans or prediction.tags
    if has_others or len(numbers) != 1 or not low <= numbers[0] <= high:
        yield "something else than one number of the scale"


def _fraction_problems(prediction: Prediction) -> Iterator[str]:
    scores = (*prediction.span_scores, *prediction.label_scores)
    if not all(0 <= score <= 1 for score in scores):  # NaN is no fraction either
        yield "scores that are no fractions between 0 and 1"


def _span_problems(prediction: Prediction) -> Iterator[str]:
    spans = prediction.spans
    scores = prediction.span_scores
    are_ordered = all(0 <= span.start < span.end for span in spans)
    return found(
        {
            "labels of documents in a task of spans": prediction.labels or prediction.label_scores,
            "another number of span scores than of spans": len(scores) not in (0, len(spans)),
            "a span twice": len({*spans}) < len(spans),
            "spans that end before they begin": not are_ordered,
        }
    )


def _ranking_problems(prediction: Prediction) -> Iterator[str]:
    labels = prediction.labels
    is_ranking = 0 < len({*labels}) == len(labels) <= MOST_RANKED
    if prediction.label_scores or not is_ranking:
        yield f"something else than one to {MOST_RANKED} different labels in order"


def _label_problems(prediction: Prediction, labels: Sequence[str]) -> Iterator[str]:
    used = prediction.labels
    scores = prediction.label_scores
    return found(
        {
            "another number of label scores than the task has labels": len(scores) != len(labels),
            "a label twice for one document": len({*used}) < len(used),
        }
    )


def _choice_problems(prediction: Prediction, labels: Sequence[str]) -> Iterator[str]:
    """The only label has the highest score, up to rounding.

    labels: of the task, in the order of the scores, which are as many.
    """
    scores = dict(zip(labels, prediction.label_scores, strict=True))
    chosen = [scores[label] for label in prediction.labels]
    if len(chosen) != 1 or chosen[0] < max(scores.values()) - ROUNDING:
        yield "labels that do not follow from their scores"
