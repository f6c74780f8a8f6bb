"""Every kind of mistake by example, and marks that add up to the counts of the scores."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.report.details.marked import to_html
from biobench.report.details.mistakes import by_label, judge, side_by_side
from biobench.schema.document import Document, Prediction, Span
from biobench.score import counts


def kinds(gold, said):
    document = Document("d", "g", "x" * 60, "test", spans=tuple(Span(*s) for s in gold))
    (judged,) = judge([document], [Prediction("d", spans=tuple(Span(*s) for s in said))])
    return [(m.kind, m.label) for m in judged.marks]


def test_each_kind():
    assert kinds([(0, 4, "X")], [(0, 4, "X")]) == [("right", "X")]
    assert kinds([(0, 4, "X")], [(0, 5, "X")]) == [("boundary", "X")]
    assert kinds([(0, 4, "X")], [(0, 4, "Y")]) == [("label", "X")]
    assert kinds([(0, 4, "X")], [(1, 4, "Y")]) == [("both", "X")]
    assert kinds([(0, 4, "X")], []) == [("missed", "X")]
    assert kinds([], [(0, 4, "Y")]) == [("spurious", "Y")]
    assert kinds([(0, 4, "X")], [(4, 8, "X")]) == [("missed", "X"), ("spurious", "X")]


def test_a_prediction_explains_one_gold_mention():
    assert kinds([(0, 4, "X"), (6, 9, "X")], [(0, 9, "X")]) == [("boundary", "X"), ("missed", "X")]


def test_classification():
    gold = [
        Document("a", "g", "", "test", labels=("P", "Q")),
        Document("b", "g", "", "test", labels=("P",)),
    ]
    judged = judge(gold, [Prediction("a", labels=("P", "R")), Prediction("b", labels=("P",))])
    assert [j.document.id for j in judged] == ["a", "b"]
    assert judged[0].wrong == 2
    assert by_label(judged) == {"P": {"right": 2}, "Q": {"missed": 1}, "R": {"spurious": 1}}


def test_documents_in_which_two_runs_differ_most_come_first():
    names = {"a": "PQ", "b": "PQ", "c": "PQ", "d": "P"}
    gold = [
        Document(name, name, "", "test", labels=tuple(labels)) for name, labels in names.items()
    ]

    def said(*labels):
        return judge(
            gold, [Prediction(d.id, labels=tuple(one)) for d, one in zip(gold, labels, strict=True)]
        )

    shared = side_by_side(said("PQ", "PQ", "", "P"), said("PQ", "", "P", "P"))
    assert [one.first.document.id for one in shared] == ["b", "c", "a", "d"]
    assert [list(one.sides.values()) for one in shared] == [
        ["only A right", "only A right"],
        ["only B right", "neither"],
        ["both right", "both right"],
        ["both right"],
    ]


def test_the_gold_part_of_a_mention_has_a_solid_line_and_the_rest_a_dashed_one():
    document = Document("d", "g", "chronic pain now", "test", spans=(Span(8, 12, "X"),))
    (judged,) = judge([document], [Prediction("d", spans=(Span(0, 12, "X"),))])
    pieces = re.findall(r"2px (\w+) rgb[^>]*>([^<]*)<", to_html(judged, document.text))
    assert pieces == [("dashed", "chronic "), ("solid", "pain")]


span = st.tuples(st.integers(0, 14), st.integers(1, 6), st.sampled_from("XY")).map(
    lambda s: Span(s[0], s[0] + s[1], s[2])
)


@settings(max_examples=60)
@given(st.lists(span, max_size=6), st.lists(span, max_size=6))
def test_marks_add_up_to_the_counts(true, found):
    gold = [Document("d", "g", "x" * 30, "test", spans=tuple(true))]
    said = [Prediction("d", spans=tuple(found))]
    (judged,) = judge(gold, said)
    counted = counts(type="span_ner", labels="XY", gold=gold, predictions=said)
    right = sum(m.kind == "right" for m in judged.marks)
    assert right == counted.tp.sum()
    assert sum(m.gold is not None for m in judged.marks) == counted.tp.sum() + counted.fn.sum()
    assert sum(m.predicted is not None for m in judged.marks) == counted.tp.sum() + counted.fp.sum()
