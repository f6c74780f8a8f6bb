"""All scores of one run: the only place where a score comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from biobench.errors import withholding
from biobench.kinds.base import Answered, get_kind
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import PLUGIN_METRICS
from biobench.schema.record import RunRecord
from biobench.schema.task import TaskSpec
from biobench.score.averages import Scores, f1_averages, micro_without, per_label
from biobench.score.counting import ScoreError, counts, fit_together
from biobench.score.slices import Part, slice_scores
from biobench.score.word_tags import seqeval_scores


def compute(
    *,
    type: str,
    labels: Sequence[str],
    gold_labels: Sequence[str],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    negative_label: str | None = None,
    scale: tuple[float, float] | None = None,
) -> Scores:
    """Every average of docs/results.md, as fractions, and the per-label table.

    All types: macro_f1 (over `gold_labels`, the labels with gold in the full test split),
    macro_f1_all (over all labels), micro_f1, weighted_f1, micro_precision, micro_recall. Each kind
    of task adds its own (`biobench/kinds/`); single-label kinds with a negative label
    micro_f1_positive. Kinds without F1 have their own scores alone, and no label has a row. scale:
    lowest and highest number of a numeric task. Raises ScoreError where gold and predictions do not
    fit together, or nothing is to be scored.
    """
    if not gold:
        raise ScoreError("there is no document to score", hint="check the test split")
    kind = get_kind(type)
    counted = partial(counts, type=type, labels=labels, gold=gold, predictions=predictions)
    prediction_of = {p.document: p for p in predictions}
    if kind.numeric and scale is None:
        raise ScoreError(
            "the scale of the numbers is not known",
            hint="the record's protocol names it; repeat the run",
        )
    if not kind.counted:
        fit_together(kind, gold, predictions, labels)
        return Scores(kind.extra_scores(Answered(labels, gold, prediction_of, dict, scale)), {})
    exact = counted(match="exact")
    values = f1_averages(exact, gold_labels)
    answered = Answered(
        labels, gold, prediction_of, lambda: f1_averages(counted(match="partial"), gold_labels)
    )
    values |= kind.extra_scores(answered)
    if kind.single and negative_label is not None:
        values["micro_f1_positive"] = micro_without(exact, negative_label)
    for name, metric in PLUGIN_METRICS.items():
        value = metric(answered)
        if value is not None:
            values[name] = float(value)
    return Scores(values, per_label(exact))


def score_task(
    spec: TaskSpec, data: TaskData, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> Scores:
    """All averages of predictions for `gold`, documents of a task; see `compute`."""
    with withholding(spec.access == "agreement"):
        return compute(
            type=spec.type,
            labels=data.labels,
            gold_labels=data.gold_labels,
            gold=gold,
            predictions=predictions,
            negative_label=spec.metric.negative_label,
            scale=spec.scale,
        )


def scored(
    record: RunRecord,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
    parts: Mapping[str, Part] | None = None,
) -> RunRecord:
    """`record` with `scores` and `per_label` computed from these predictions.

    parts: what each slice holds of `gold` (`score.slices.parts_of`); its scores are computed too.
    None: those that the record has stay.
    """
    task = record.task
    with withholding(record.redacted):
        scores = compute(
            type=task.type,
            labels=task.labels,
            gold_labels=task.gold_labels,
            gold=gold,
            predictions=predictions,
            negative_label=task.negative_label,
            scale=record.scale,
        )
        values = scores.values | seqeval_scores(record, gold, predictions)
        slices = record.slices if parts is None else slice_scores(task, parts, predictions)
    return record.model_copy(
        update={"scores": values, "per_label": scores.per_label, "slices": slices}
    )
