"""Every average of docs/results.md from counts summed over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from biobench.score.counting import GroupCounts, ScoreError
from biobench.stats.counts import Average, f1_from_sums

#: Name of a score -> the average of the statistics that recomputes it from counts.
AVERAGES: dict[str, Average] = {
    "macro_f1": "macro",
    "macro_f1_all": "macro_all",
    "micro_f1": "micro",
    "weighted_f1": "weighted",
}


@dataclass(frozen=True, slots=True)
class Scores:
    """values: name -> fraction (0-1). per_label: label -> precision, recall, f1, support,
    predicted, tp.
    """

    values: dict[str, float]
    per_label: dict[str, dict[str, float]]


def f1_averages(summed: GroupCounts, gold_labels: Sequence[str]) -> dict[str, float]:
    """macro_f1, macro_f1_all, micro_f1, weighted_f1, and pooled precision and recall.

    summed: counts of all documents together, in one row. macro_f1 is taken over `gold_labels`, the
    labels with gold in the full test split. The formula is the statistics' own, so a bootstrap draw
    of all documents gives these very numbers.
    """
    wanted = set(gold_labels)
    unknown = wanted - set(summed.labels)
    if unknown:
        raise ScoreError(
            f"gold label '{min(unknown)}' is not one of the task's", hint="check the label set"
        )
    if not gold_labels:
        raise ScoreError(
            "no label has gold in the test split", hint="macro F1 is undefined; check the split"
        )
    evaluated = np.array([label in wanted for label in summed.labels])
    (tp,), (fp,), (fn,) = summed.tp, summed.fp, summed.fn
    values = {
        name: float(f1_from_sums(tp, 2 * tp + fp + fn, tp + fn, average, evaluated))
        for name, average in AVERAGES.items()
    }
    values["micro_precision"] = ratio(int(tp.sum()), int((tp + fp).sum()))
    values["micro_recall"] = ratio(int(tp.sum()), int((tp + fn).sum()))
    return values


def micro_without(summed: GroupCounts, negative: str) -> float:
    """Micro F1 over all labels but `negative`."""
    if negative not in summed.labels:
        raise ScoreError(
            f"negative label '{negative}' is not one of the task's",
            hint="check metric.negative_label",
        )
    keep = np.array([label != negative for label in summed.labels])
    tp, fp, fn = (int(x[:, keep].sum()) for x in (summed.tp, summed.fp, summed.fn))
    return ratio(2 * tp, 2 * tp + fp + fn)


def per_label(summed: GroupCounts) -> dict[str, dict[str, float]]:
    """Per label precision, recall, f1 (0 where undefined), support (gold), predicted and tp
    (counts).
    """
    result = {}
    for label, (a, b, c) in zip(
        summed.labels, np.vstack([summed.tp, summed.fp, summed.fn]).T.tolist(), strict=True
    ):
        result[label] = {
            "precision": ratio(a, a + b),
            "recall": ratio(a, a + c),
            "f1": ratio(2 * a, 2 * a + b + c),
            "support": float(a + c),
            "predicted": float(a + b),
            "tp": float(a),
        }
    return result


def ratio(above: int, below: int) -> float:
    """above / below, 0 where nothing is below (scikit-learn's zero_division=0)."""
    return above / below if below else 0.0
