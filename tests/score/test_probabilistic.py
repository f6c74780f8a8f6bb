"""Calibration and threshold-free measures, against scikit-learn and by hand."""

from __future__ import annotations

from itertools import compress

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from biobench.kinds import get_kind
from biobench.schema.document import Document, Prediction, Span
from biobench.score.probabilistic import expected_calibration_error, probabilistic

LABELS = ("A", "B", "C")


def test_the_calibration_error_of_a_worked_case() -> None:
    confidence, right = np.array([0.95, 0.95, 0.55, 1.0]), np.array([1.0, 0.0, 1.0, 1.0])
    # one bin holds 0.95, 0.95 and 1.0: accuracy 2/3, confidence 0.96667; the other 0.55: accuracy 1
    expected = 0.75 * abs(2 / 3 - 2.9 / 3) + 0.25 * 0.45
    assert expected_calibration_error(confidence, right) == pytest.approx(expected)
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0.0


@pytest.mark.parametrize("kind", ["single_label", "multi_label"])
def test_scores_of_labels_agree_with_scikit_learn(kind: str) -> None:
    """A label without both cases is left out of the areas: the third one of several."""
    rng = np.random.default_rng(5)
    scores = rng.dirichlet([1, 1, 1], size=60)
    truth = np.eye(3)[rng.integers(0, 3, size=60)]
    if kind == "multi_label":
        truth = rng.integers(0, 2, size=(60, 3)) * [1.0, 1.0, 0.0]
    documents, predictions = [], []
    for number, (row, of_labels) in enumerate(zip(truth, scores, strict=True)):
        name, labels = str(number), tuple(compress(LABELS, row))
        documents.append(Document(name, name, "", "test", labels=labels))
        predictions.append(Prediction(name, label_scores=tuple(of_labels)))
    values = probabilistic(get_kind(kind), LABELS, documents, predictions[::-1])
    both = truth.any(axis=0)
    assert values["auroc"] == pytest.approx(roc_auc_score(truth[:, both], scores[:, both]))
    assert values["auprc"] == pytest.approx(
        average_precision_score(truth[:, both], scores[:, both])
    )
    brier = brier_score_loss(truth.ravel(), scores.ravel())
    if kind == "single_label":
        gold = truth.argmax(axis=1)
        brier = brier_score_loss(gold, scores, labels=range(3), scale_by_half=False)
    assert values["brier"] == pytest.approx(brier)
    assert 0 < values["ece"] < 1


def test_spans_are_judged_by_whether_they_are_right() -> None:
    gold = [Document("d", "d", "", "test", spans=(Span(0, 3, "A"), Span(5, 9, "B")))]
    said = [Prediction("d", spans=(Span(0, 3, "A"), Span(5, 9, "A")), span_scores=(0.8, 0.4))]
    values = probabilistic(get_kind("token_ner"), LABELS, gold, said)
    assert values["brier"] == pytest.approx((0.2**2 + 0.4**2) / 2)
    assert values["ece"] == pytest.approx((0.2 + 0.4) / 2)
    assert (values["auroc"], values["auprc"]) == (1.0, 1.0)
    assert probabilistic(get_kind("token_ner"), LABELS, gold, [Prediction("d")]) == {}
    assert (
        probabilistic(get_kind("single_label"), LABELS, gold, [Prediction("d", labels=("A",))])
        == {}
    )
