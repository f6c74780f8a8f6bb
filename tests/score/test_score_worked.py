"""The worked numbers of docs/results.md, and what is refused."""

from __future__ import annotations

import pytest

from biobench.schema.document import Document, Prediction, Span
from biobench.score import ScoreError, compute
from tests.helpers.score_make import classified, one_document, scores


def test_worked_classification():
    whole = scores("single_label", "ABC", "AB", classified(["A", "A", "B"], ["A", "B", "C"]))
    assert whole.per_label["A"]["f1"] == pytest.approx(2 / 3)
    assert whole.per_label["B"]["f1"] == 0
    assert whole.per_label["C"] == {
        "precision": 0,
        "recall": 0,
        "f1": 0,
        "support": 0,
        "predicted": 1,
        "tp": 0,
    }
    expected = {
        "macro_f1": 1 / 3,
        "macro_f1_all": 2 / 9,
        "micro_f1": 1 / 3,
        "accuracy": 1 / 3,
        "weighted_f1": 4 / 9,
    }
    assert {name: whole.values[name] for name in expected} == pytest.approx(expected)


def test_exact_wants_all_four_and_duplicates_count_once():
    gold = [(0, 4, "X"), (0, 4, "X"), (10, 14, "Y"), (20, 24, "X")]
    said = [(0, 4, "X"), (0, 4, "X"), (10, 14, "X"), (20, 25, "X")]
    whole = scores("span_ner", "XY", "XY", one_document(gold, said))
    assert [whole.per_label["X"][name] for name in ("tp", "support", "predicted")] == [1, 2, 3]
    assert whole.values["micro_f1"] == pytest.approx(2 / 6)
    # partial: 0-4 and 20-25 meet gold of their label, 10-14 meets gold of another one
    assert whole.values["partial_micro_f1"] == pytest.approx(4 / 6)
    assert whole.values["partial_macro_f1"] == pytest.approx((4 / 5 + 0) / 2)


def test_false_positive_on_a_label_without_gold_lowers_micro_not_macro():
    values = scores(
        "multi_label", "ABC", "AB", classified([["A"], ["B"]], [["A", "C"], ["B"]])
    ).values
    assert values["macro_f1"] == 1
    assert values["micro_f1"] == pytest.approx(4 / 5)
    assert values["macro_f1_all"] == pytest.approx(2 / 3)


def test_macro_keeps_the_full_splits_labels_on_a_part_of_it():
    assert scores("single_label", "ABC", "AB", classified(["A"], ["A"])).values["macro_f1"] == 0.5


def test_document_without_prediction_is_missed():
    whole = scores("single_label", "AB", "A", classified(["A", "A"], ["A"]))
    assert (whole.per_label["A"]["recall"], whole.values["accuracy"]) == (0.5, 0.5)
    gold, _ = one_document([(0, 4, "X")], [])
    assert scores("token_ner", "X", "X", (gold, [])).values["micro_recall"] == 0


def test_micro_without_the_negative_label():
    # positives: gold 3, predicted 3, right 2; the many negatives change nothing
    both = classified(["A", "A", "B", *"NNNNN"], ["A", "A", "N", *"NNNNA"])
    values = scores("relation", "ABN", "ABN", both, negative_label="N").values
    assert values["micro_f1_positive"] == pytest.approx(2 * 2 / (3 + 3))
    assert values["micro_f1"] == pytest.approx(6 / 8)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"predictions": [Prediction(document="elsewhere", labels=("A",))]}, "elsewhere"),
        ({"predictions": [Prediction(document="d0", labels=("A",))] * 2}, "twice"),
        ({"predictions": [Prediction(document="d0", labels=("Z",))]}, "predicted label 'Z'"),
        ({"predictions": [Prediction(document="d0", labels=("A", "B"))]}, "2 labels"),
        (
            {"gold": [Document(id="d0", group="g", text="", split="test", labels=("Q",))]},
            "gold label 'Q'",
        ),
        ({"gold": [Document(id="d0", group="g", text="", split="test")]}, "0 gold labels"),
        ({"gold": []}, "no document"),
        ({"gold_labels": ()}, "no label has gold"),
        ({"gold_labels": ("Z",)}, "'Z'"),
        ({"negative_label": "none"}, "'none'"),
    ],
)
def test_what_does_not_fit_is_refused(change, said):
    gold, predictions = classified(["A"], ["A"])
    call = {
        "type": "single_label",
        "labels": "AB",
        "gold_labels": "A",
        "gold": gold,
        "predictions": predictions,
    }
    with pytest.raises(ScoreError, match=said) as caught:
        compute(**call | change)
    assert caught.value.hint


def test_empty_spans_and_repeated_gold_are_refused():
    gold, _ = one_document([(0, 4, "X")], [])
    empty = [Prediction(document="d", spans=(Span(3, 3, "X"),))]
    with pytest.raises(ScoreError, match="no character"):
        scores("token_ner", "X", "X", (gold, empty))
    with pytest.raises(ScoreError, match="twice"):
        scores("token_ner", "X", "X", (gold * 2, []))
