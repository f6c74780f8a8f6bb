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

    shares = truth.mean(axis=0)
    both = (shares > 0) & (shares < 1)
    if not both.any():
        return None
    columns = truth[:, both], scores[:, both]
    return (
        float(roc_auc_score(*columns, average="macro")),
        float(average_precision_score(*columns, average="macro")),
    )


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
    scores = np.array([p.label_scores for p in rows])
    truth = np.array([np.isin(labels, truths[p.document].labels) for p in rows], np.float64)
    squares = (scores - truth) ** 2
    if not kind.single:
        brier = float(squares.mean())
        return _measures(scores.ravel(), truth.ravel(), brier, truth, scores)
    best = scores.argmax(axis=1)
    cases = np.arange(len(rows))
    brier = float(squares.sum(axis=1).mean())
    return _measures(scores[cases, best], truth[cases, best], brier, truth, scores)


def _of_spans(truths: dict[str, Document], predictions: Sequence[Prediction]) -> dict[str, float]:
    confidence: list[float] = []
    right: list[bool] = []
    for p in predictions:
        if len(p.span_scores) == len(p.spans):
            confidence += p.span_scores
            right += map(set(truths[p.document].spans).__contains__, p.spans)
    if not confidence:
        return {}
    scores = np.array(confidence)
    truth = np.array(right, np.float64)
    brier = float(((scores - truth) ** 2).mean())
    return _measures(scores, truth, brier, truth[:, None], scores[:, None])


def _measures(
    confidence: Floats, right: Floats, brier: float, truth: Floats, scores: Floats
) -> dict[str, float]:
    values = {"ece": expected_calibration_error(confidence, right), "brier": brier}
    areas = ranking(truth, scores)
    if areas is not None:
        values["auroc"], values["auprc"] = areas
    return values
