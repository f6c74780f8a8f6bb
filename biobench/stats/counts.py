"""F1 from stored counts: true positives, false positives, false negatives per document group and
label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biobench.stats.types import BoolArray, FloatArray, StatsInputError

Average = Literal["macro", "macro_all", "micro", "weighted"]


@dataclass(frozen=True)
class Counts:
    """Counts of one model on one task. tp, fp, fn: (seeds, groups, labels), whole numbers.

    A group is what is resampled: a document, or the documents of one patient. Gold (tp + fn)
    belongs to the task, so it must be the same in every seed. Single-label accuracy is the micro
    average; micro F1 without a negative label is the micro average of counts that leave that
    label's column out.
    """

    tp: NDArray[Any]
    fp: NDArray[Any]
    fn: NDArray[Any]

    @classmethod
    def of(cls, tp: ArrayLike, fp: ArrayLike, fn: ArrayLike) -> Counts:
        """Checked counts; arrays of shape (groups, labels) are one seed. Keeps small integer
        types."""
        arrays = []
        for name, values in (("tp", tp), ("fp", fp), ("fn", fn)):
            array = np.asarray(values)
            array = array[None] if array.ndim == 2 else array
            if array.ndim != 3 or 0 in array.shape:
                raise StatsInputError(
                    f"{name} has shape {array.shape}",
                    hint="give (seeds, groups, labels) or (groups, labels)",
                )
            if array.dtype == np.bool_:
                array = array.astype(np.uint8)
            if not np.issubdtype(array.dtype, np.integer):
                if not (np.isfinite(array).all() and (array == np.round(array)).all()):
                    raise StatsInputError(
                        f"{name} holds values that are no whole numbers", hint="give counts"
                    )
                array = array.astype(np.int64)
            if array.min() < 0:
                raise StatsInputError(f"{name} holds {array.min()}", hint="counts are zero or more")
            arrays.append(array)
        a, b, c = arrays
        if not a.shape == b.shape == c.shape:
            raise StatsInputError(
                f"tp {a.shape}, fp {b.shape}, fn {c.shape} differ", hint="one shape for all"
            )
        gold = a.astype(np.int64) + c
        if (gold != gold[:1]).any():
            raise StatsInputError(
                "gold (tp + fn) differs between seeds",
                hint="all runs must be scored on the same test split",
            )
        return cls(a, b, c)

    @property
    def n_seeds(self) -> int:
        """Runs with different seeds."""
        return int(self.tp.shape[0])

    @property
    def n_groups(self) -> int:
        """Groups of documents, the unit of resampling."""
        return int(self.tp.shape[1])

    @property
    def n_labels(self) -> int:
        """Labels of the task, with or without gold in the test split."""
        return int(self.tp.shape[2])

    @property
    def gold(self) -> NDArray[np.int64]:
        """Gold counts, (groups, labels)."""
        gold: NDArray[np.int64] = self.tp[0].astype(np.int64) + self.fn[0]
        return gold

    @property
    def doubled(self) -> NDArray[np.int64]:
        """2 tp + fp + fn, the denominator of F1: (seeds, groups, labels)."""
        below: NDArray[np.int64] = 2 * self.tp.astype(np.int64) + self.fp + self.fn
        return below


def evaluated_labels(counts: Counts, chosen: ArrayLike | None = None) -> BoolArray:
    """The labels that macro F1 averages over: those with gold in the full test split, (labels,) of
    bool.

    chosen: the task's own set, needed where the counts are not of the full test split.
    """
    if chosen is None:
        mask: BoolArray = counts.gold.sum(axis=0) > 0
    else:
        mask = np.asarray(chosen, dtype=np.bool_)
        if mask.shape != (counts.n_labels,):
            raise StatsInputError(
                f"evaluated has shape {mask.shape} for {counts.n_labels} labels",
                hint="one yes or no a label",
            )
    if not mask.any():
        raise StatsInputError(
            "no label has gold in the test split",
            hint="macro F1 is undefined; check the split and the labels",
        )
    return mask


def check_average(average: str) -> Average:
    """``average`` itself when it is one of the known ones."""
    for known in get_args(Average):
        if average == known:
            return known  # type: ignore[no-any-return]
    raise StatsInputError(
        f"unknown average {average!r}", hint=f"one of {', '.join(get_args(Average))}"
    )


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
        below = doubled.sum(axis=-1, dtype=np.float64)
        above = 2.0 * tp.sum(axis=-1, dtype=np.float64)
        pooled: FloatArray = above / np.where(below > 0, below, 1.0)
        return pooled
    if average == "macro":
        tp, doubled, gold = tp[..., evaluated], doubled[..., evaluated], gold[..., evaluated]
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


def f1_scores(counts: Counts, average: Average, evaluated: ArrayLike | None = None) -> FloatArray:
    """The score of each seed on the whole test split, (seeds,), a fraction."""
    return f1_from_sums(
        counts.tp.sum(axis=1, dtype=np.int64),
        counts.doubled.sum(axis=1),
        counts.gold.sum(axis=0),
        check_average(average),
        evaluated_labels(counts, evaluated),
    )
