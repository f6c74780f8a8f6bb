"""Calibration and threshold-free measures from stored scores.

ECE: expected calibration error over 15 equal bins of confidence (Guo et al. 2017,
arXiv:1706.04599). Brier: mean squared distance of the probabilities from the truth (Brier 1950);
summed over the labels where they exclude each other. AUROC and AUPRC (average precision):
scikit-learn's, the mean over the labels that have both cases.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from biobench.kinds import Kind
from biobench.schema.document import Document, Prediction

Floats = NDArray[np.float64]
BINS = 15


def expected_calibration_error(confidence: Floats, right: Floats) -> float:
    """Mean over cases of |accuracy - confidence| of their bin. confidence, right: (cases,), 0-1."""
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def ranking(truth: Floats, scores: Floats) -> tuple[float, float] | None:
    """(AUROC, AUPRC), each the mean over the columns with both cases; None where no column has.

    truth: (cases, labels) of 0 and 1; scores: the same shape.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    both = [j for j in range(truth.shape[1]) if 0 < truth[:, j].sum() < len(truth)]
    if not both:
        return None
    areas = [roc_auc_score(truth[:, j], scores[:, j]) for j in both]
    precisions = [average_precision_score(truth[:, j], scores[:, j]) for j in both]
    return float(np.mean(areas)), float(np.mean(precisions))


def probabilistic(
    kind: Kind, labels: Sequence[str], gold: Sequence[Document], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """The measures of one run; those that its stored scores do not give are missing.

    Labels: over documents with a score for each label. Spans: over the predicted spans with a
    score, which say how sure the model is of those, and nothing of what it missed.
    """
    truths = {d.id: d for d in gold}
    if kind.spans:
        return _of_spans(truths, predictions)
    rows = [p for p in predictions if len(p.label_scores) == len(labels)]
    if not rows:
        return {}
    column = {label: j for j, label in enumerate(labels)}
    scores = np.asarray([p.label_scores for p in rows], dtype=np.float64)
    truth = np.zeros_like(scores)
    for i, p in enumerate(rows):
        truth[i, [column[label] for label in truths[p.document].labels]] = 1.0
    squares = (scores - truth) ** 2
    if kind.single:
        best = scores.argmax(axis=1)
        cases = np.arange(len(rows))
        confidence, right = scores[cases, best], truth[cases, best]
        brier = squares.sum(axis=1).mean()
    else:
        confidence, right, brier = scores.ravel(), truth.ravel(), squares.mean()
    return _measures(confidence, right, float(brier), truth, scores)


def _of_spans(truths: dict[str, Document], predictions: Sequence[Prediction]) -> dict[str, float]:
    confidence: list[float] = []
    right: list[float] = []
    for p in predictions:
        if len(p.span_scores) == len(p.spans):
            spans = set(truths[p.document].spans)
            confidence += p.span_scores
            right += [float(span in spans) for span in p.spans]
    if not confidence:
        return {}
    scores, truth = np.array(confidence), np.array(right)
    brier = float(((scores - truth) ** 2).mean())
    return _measures(scores, truth, brier, truth[:, None], scores[:, None])


def _measures(
    confidence: Floats, right: Floats, brier: float, truth: Floats, scores: Floats
) -> dict[str, float]:
    values = {"ece": expected_calibration_error(confidence, right), "brier": brier}
    areas = ranking(truth, scores)
    return values if areas is None else values | {"auroc": areas[0], "auprc": areas[1]}
