"""Every average of docs/results.md from counts summed over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biobench.schema.metric import F1_AVERAGES
from biobench.score.counting import GroupCounts, ScoreError
from biobench.stats.counts import f1_from_sums


@dataclass(frozen=True, slots=True)
class Scores:
    """values: name -> fraction (0-1). per_label: label -> precision, recall, f1, support,
    predicted, tp.
    """

    values: dict[str, float]
    per_label: dict[str, dict[str, float]]


def f1_averages(counts: GroupCounts, gold_labels: Sequence[str]) -> dict[str, float]:
    """macro_f1, macro_f1_all, micro_f1, weighted_f1, and pooled precision and recall.

    macro_f1 is taken over `gold_labels`, the labels with gold in the full test split. The formula
    is the statistics' own, so a bootstrap draw of all documents gives these very numbers.
    """
    with_gold = set(gold_labels)
    foreign = with_gold - set(counts.labels)
    if foreign:
        raise ScoreError(
            f"gold label '{min(foreign)}' is not one of the task's", hint="check the label set"
        )
    if not gold_labels:
        raise ScoreError(
            "no label has gold in the test split", hint="macro F1 is undefined; check the split"
        )
    evaluated = np.array([label in with_gold for label in counts.labels])
    tp, fp, fn = counts.totals
    values = {}
    for metric in F1_AVERAGES:
        assert metric.average is not None
        values[metric.name] = float(
            f1_from_sums(tp, 2 * tp + fp + fn, tp + fn, metric.average, evaluated)
        )
    values["micro_precision"] = ratio(int(tp.sum()), int((tp + fp).sum()))
    values["micro_recall"] = ratio(int(tp.sum()), int((tp + fn).sum()))
    return values


def micro_without(counts: GroupCounts, negative: str) -> float:
    """Micro F1 over all labels but `negative`."""
    if negative not in counts.labels:
        raise ScoreError(
            f"negative label '{negative}' is not one of the task's",
            hint="check metric.negative_label",
        )
    positive = np.array([label != negative for label in counts.labels])
    tp, fp, fn = (int(total[positive].sum()) for total in counts.totals)
    return ratio(2 * tp, 2 * tp + fp + fn)


def per_label(counts: GroupCounts) -> dict[str, dict[str, float]]:
    """Per label precision, recall, f1 (0 where undefined), support (gold), predicted and tp
    (counts).
    """
    result = {}
    columns = np.vstack(counts.totals).tolist()
    for label, tp, fp, fn in zip(counts.labels, *columns, strict=True):
        result[label] = {
            "precision": ratio(tp, tp + fp),
            "recall": ratio(tp, tp + fn),
            "f1": ratio(2 * tp, 2 * tp + fp + fn),
            "support": float(tp + fn),
            "predicted": float(tp + fp),
            "tp": float(tp),
        }
    return result


def ratio(numerator: int, denominator: int) -> float:
    """The quotient, 0 where the denominator is (scikit-learn's zero_division=0)."""
    return numerator / denominator if denominator else 0.0
