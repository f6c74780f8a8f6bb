"""Calibration and threshold-free measures, against scikit-learn and by hand."""

from __future__ import annotations

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


def test_one_label_a_document_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    scores = rng.dirichlet([1, 1, 1], size=60)
    gold = [LABELS[i] for i in rng.integers(0, 3, size=60)]
    documents = [
        Document(str(i), str(i), "", "test", labels=(label,)) for i, label in enumerate(gold)
    ]
    chosen = [(LABELS[int(row.argmax())],) for row in scores]
    predictions = [
        Prediction(str(i), labels=c, label_scores=tuple(scores[i])) for i, c in enumerate(chosen)
    ]
    values = probabilistic(get_kind("single_label"), LABELS, documents, predictions[::-1])
    one_hot = np.array([[label == own for label in LABELS] for own in gold], dtype=float)
    assert values["brier"] == pytest.approx(
        brier_score_loss(gold, scores, labels=LABELS, scale_by_half=False)
    )
    assert values["auroc"] == pytest.approx(
        roc_auc_score(gold, scores, multi_class="ovr", labels=LABELS)
    )
    assert values["auprc"] == pytest.approx(
        average_precision_score(one_hot, scores, average="macro")
    )
    assert 0 < values["ece"] < 1


def test_several_labels_agree_with_scikit_learn_and_leave_out_a_label_without_both_cases() -> None:
    rng = np.random.default_rng(7)
    scores, truth = rng.random((40, 3)), rng.integers(0, 2, size=(40, 3))
    truth[:, 2] = 0
    gold = [
        tuple(label for label, is_true in zip(LABELS, row, strict=True) if is_true) for row in truth
    ]
    documents = [
        Document(str(i), str(i), "", "test", labels=labels) for i, labels in enumerate(gold)
    ]
    predictions = [Prediction(str(i), label_scores=tuple(row)) for i, row in enumerate(scores)]
    values = probabilistic(get_kind("multi_label"), LABELS, documents, predictions)
    assert values["auroc"] == pytest.approx(
        roc_auc_score(truth[:, :2], scores[:, :2], average="macro")
    )
    assert values["auprc"] == pytest.approx(
        average_precision_score(truth[:, :2], scores[:, :2], average="macro")
    )
    assert values["brier"] == pytest.approx(brier_score_loss(truth.ravel(), scores.ravel()))


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
