"""The multi-label threshold that scores best on validation, from one pass over the scores.

A score that passes a threshold passes all lower ones. So one histogram per label (of the highest threshold
that each score passes) holds the counts at every threshold: time and memory grow with the scores plus
thresholds x labels, not with thresholds x scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biobench.encode.merge import merge_labels
from biobench.finetune.prepare import Prepared
from biobench.score.averages import AVERAGES, Sums, average_of

GRID = tuple(round(0.05 * i, 2) for i in range(1, 20))
"""The thresholds that are tried."""


def tune_threshold(prepared: Prepared, chances: Sequence[NDArray[np.float32]]) -> float:
    """The threshold on a 0.05 grid that gives the best selection score on validation (ties: nearest 0.5)."""
    scores = threshold_scores(prepared, chances)
    best = max(range(len(GRID)), key=lambda i: (scores[i], -abs(GRID[i] - 0.5)))
    return GRID[best]


def threshold_scores(prepared: Prepared, chances: Sequence[NDArray[np.float32]]) -> list[float]:
    """The selection score on validation at each threshold of the grid.

    chances: per window, (labels,) sigmoid; windows are merged as the protocol says. A label is predicted when
    its score is above the threshold; with `fallback: top1` the highest one where none is.
    """
    split, labels = prepared.validation, len(prepared.outputs)
    steps = np.asarray(GRID, dtype=np.float32)
    place = {label: i for i, label in enumerate(prepared.outputs)}
    # Column k: labels whose score passes exactly the first k thresholds.
    said, right = (np.zeros((labels, len(GRID) + 1), dtype=np.int64) for _ in range(2))
    extra_said, extra_right = (np.zeros((labels, len(GRID)), dtype=np.int64) for _ in range(2))
    support = np.zeros(labels, dtype=np.int64)
    example = np.zeros(len(GRID))
    for document, places in zip(split.documents, split.windows, strict=True):
        p = merge_labels([chances[w] for w in places], prepared.spec.protocol.merge)
        gold = np.asarray(sorted({place[label] for label in document.labels}), dtype=np.int64)
        support[gold] += 1
        over = np.flatnonzero(p > steps[0])
        passed = np.searchsorted(steps, p[over], side="left")
        hits = np.searchsorted(steps, p[gold], side="left")
        said[over, passed] += 1
        right[gold, hits] += 1
        found = _at_least(np.bincount(passed, minlength=len(GRID) + 1))
        true = _at_least(np.bincount(hits, minlength=len(GRID) + 1))
        if prepared.spec.head.fallback == "top1":
            none = np.flatnonzero(found == 0)
            top = int(p.argmax())
            own = top in gold
            extra_said[top, none] += 1
            extra_right[top, none] += own
            found[none], true[none] = 1, int(own)
        below = len(gold) + found
        example += np.where(below > 0, 2 * true / np.maximum(below, 1), 1.0)
    if prepared.spec.selection == "example_f1":
        return [float(x) for x in example / len(split.documents)]
    predicted, tp = _at_least(said) + extra_said, _at_least(right) + extra_right
    average = AVERAGES[prepared.spec.selection]
    gold_labels = prepared.data.gold_labels
    return [
        average_of(
            Sums(prepared.outputs, tp[:, i], predicted[:, i] - tp[:, i], support - tp[:, i]), average, gold_labels
        )
        for i in range(len(GRID))
    ]


def _at_least(histogram: NDArray[np.int64]) -> NDArray[np.int64]:
    """(..., thresholds) scores that pass each threshold, from (..., thresholds + 1) that pass exactly k of them."""
    return np.asarray(histogram[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:])
