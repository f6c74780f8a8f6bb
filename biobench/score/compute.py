"""All scores of one run: the only place where a score comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.schema.task import NER_TYPES, TaskType
from biobench.score.averages import Scores, Sums, f1_averages, micro_without, per_label, ratio
from biobench.score.counting import ScoreError, label_sums
from biobench.score.needle import accuracies


def compute(
    *,
    type: TaskType,
    labels: Sequence[str],
    gold_labels: Sequence[str],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    negative_label: str | None = None,
) -> Scores:
    """Every average of docs/metrics.md, as fractions, and the per-label table.

    All types: macro_f1 (over `gold_labels`, the labels with gold in the full test split), macro_f1_all (over
    all labels), micro_f1, weighted_f1, micro_precision, micro_recall. Single-label types add accuracy and,
    with a negative label, micro_f1_positive; needle adds accuracy.<length>, .<position>, .<template> and
    .<length>.<position>; multi_label adds example_f1 (a document without gold and
    without prediction counts 1, scikit-learn's zero_division=1); NER adds partial_micro_f1,
    partial_macro_f1 and partial_weighted_f1.
    Raises ScoreError where gold and predictions do not fit together, or nothing is to be scored.
    """
    if not gold:
        raise ScoreError("there is no document to score", hint="check the test split")
    sums = Sums(tuple(labels), *label_sums(type=type, labels=labels, gold=gold, predictions=predictions))
    values = f1_averages(sums, gold_labels)
    if type in NER_TYPES:
        partly = label_sums(type=type, labels=labels, gold=gold, predictions=predictions, match="partial")
        loose = f1_averages(Sums(tuple(labels), *partly), gold_labels)
        values |= {f"partial_{name}": loose[name] for name in ("micro_f1", "macro_f1", "weighted_f1")}
    elif type == "multi_label":
        values["example_f1"] = _example_f1(gold, predictions)
    else:
        values["accuracy"] = ratio(int(sums.tp.sum()), len(gold))
        if type == "needle":
            values |= accuracies(gold, predictions)
        if negative_label is not None:
            values["micro_f1_positive"] = micro_without(sums, negative_label)
    return Scores(values, per_label(sums))


def _example_f1(gold: Sequence[Document], predictions: Sequence[Prediction]) -> float:
    said = {p.document: set(p.labels) for p in predictions}
    total = 0.0
    for document in gold:
        true, found = set(document.labels), said.get(document.id, set())
        total += 2 * len(true & found) / (len(true) + len(found)) if true or found else 1.0
    return total / len(gold)


def scored(record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction]) -> RunRecord:
    """`record` with `scores` and `per_label` computed from these predictions."""
    task = record.task
    scores = compute(
        type=cast(TaskType, task.type),
        labels=task.labels,
        gold_labels=task.gold_labels,
        gold=gold,
        predictions=predictions,
        negative_label=task.negative_label,
    )
    return record.model_copy(update={"scores": scores.values, "per_label": scores.per_label})
