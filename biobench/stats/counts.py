"""F1 from stored counts: true positives, false positives, false negatives per document group and
label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.stats.types import BoolArray, FloatArray, StatsInputError

Average = Literal["macro", "macro_all", "micro", "weighted"]


@dataclass(frozen=True)
class Counts:
    """Counts of one model on one task. tp, fp, fn: (seeds, groups, labels), whole numbers.

    evaluated: (labels,), the labels that macro F1 averages over: those with gold in the full test
    split. A group is what is resampled: a document, or the documents of one patient. Gold (tp + fn)
    belongs to the task, so it must be the same in every seed. Single-label accuracy is the micro
    average; micro F1 without a negative label is the micro average of counts that leave that
    label's column out.
    """

    tp: NDArray[Any]
    fp: NDArray[Any]
    fn: NDArray[Any]
    evaluated: BoolArray

    @classmethod
    def of(
        cls, tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, evaluated: ArrayLike | None = None
    ) -> Counts:
        """Checked counts. evaluated: needed where they are not of the full test split.

        Raises StatsInputError where they do not fit together.
        """
        tables = np.asarray(tp), np.asarray(fp), np.asarray(fn)
        shapes = {table.shape for table in tables}
        if len(shapes) > 1 or tables[0].ndim != 3:
            raise StatsInputError(
                f"counts have the shapes {', '.join(map(str, sorted(shapes)))}",
                hint="give (seeds, groups, labels), one shape for all",
            )
        gold = tables[0].astype(np.int64) + tables[2]
        if (gold != gold[:1]).any():
            raise StatsInputError(
                "gold (tp + fn) differs between seeds",
                hint="all runs must be scored on the same test split",
            )
        labels = gold[0].sum(axis=0) > 0
        if evaluated is not None:
            labels = np.asarray(evaluated, dtype=np.bool_)
        if not labels.any():
            raise StatsInputError(
                "no label has gold in the test split",
                hint="macro F1 is undefined; check the split and the labels",
            )
        return cls(*tables, labels)

    @property
    def n_groups(self) -> int:
        """Groups of documents, the unit of resampling."""
        return int(self.tp.shape[1])

    @property
    def gold(self) -> NDArray[np.int64]:
        """Gold counts, (groups, labels)."""
        gold: NDArray[np.int64] = self.tp[0].astype(np.int64) + self.fn[0]
        return gold

    @property
    def doubled(self) -> NDArray[np.int64]:
        """2 tp + fp + fn, the denominator of F1: (seeds, groups, labels)."""
        doubled: NDArray[np.int64] = 2 * self.tp.astype(np.int64) + self.fp + self.fn
        return doubled


def f1_from_sums(
    tp: NDArray[Any],
    doubled: NDArray[Any],
    gold: NDArray[Any],
    average: Average,
    evaluated: BoolArray,
    missing: FloatArray | None = None,
) -> FloatArray:
    """F1 from counts summed over documents; the last axis is the labels, which the average removes.

    tp, doubled (2 tp + fp + fn): (..., labels). gold: broadcasts against them.
    missing: (..., labels), the F1 of a label about which the sum says nothing (no gold, nothing
    predicted); zero where not given, as scikit-learn's ``zero_division=0``. Not for micro.
    micro pools all labels; weighted weights by gold; macro averages over ``evaluated``, macro_all
    over all labels.
    """
    if average == "micro":
        denominator = doubled.sum(axis=-1, dtype=np.float64)
        numerator = 2.0 * tp.sum(axis=-1, dtype=np.float64)
        pooled: FloatArray = numerator / np.where(denominator > 0, denominator, 1.0)
        return pooled
    if average == "macro":
        tp = tp[..., evaluated]
        doubled = doubled[..., evaluated]
        gold = gold[..., evaluated]
        missing = missing[..., evaluated] if missing is not None else None
    defined = doubled > 0
    per_label = 2.0 * np.divide(tp, np.where(defined, doubled, 1), dtype=np.float64)
    per_label = np.where(defined, per_label, 0.0 if missing is None else missing)
    if average == "weighted":
        weights = np.broadcast_to(gold, per_label.shape)
        total = weights.sum(axis=-1, dtype=np.float64)
        mean = (weights * per_label).sum(axis=-1, dtype=np.float64) / np.where(
            total > 0, total, 1.0
        )
        return np.where(total > 0, mean, 0.0)
    result: FloatArray = per_label.mean(axis=-1, dtype=np.float64)
    return result


def f1_scores(counts: Counts, average: Average) -> FloatArray:
    """The score of each seed on the whole test split, (seeds,), a fraction."""
    return f1_from_sums(
        counts.tp.sum(axis=1, dtype=np.int64),
        counts.doubled.sum(axis=1),
        counts.gold.sum(axis=0),
        average,
        counts.evaluated,
    )
