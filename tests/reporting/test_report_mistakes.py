"""Every kind of mistake by example, and marks that add up to the counts of the scores."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.reporting.details.marked import to_html
from biobench.reporting.details.mistake_forms import as_text, whole_sentences
from biobench.reporting.details.mistaken import Mistakes
from biobench.reporting.details.mistakes import by_label, judge, leaks, side_by_side
from biobench.reporting.frame import build
from biobench.schema.document import Document, Prediction, Span
from biobench.score import counts
from biobench.store import Store
from tests.helpers.report_make import save_run


@pytest.mark.parametrize(
    ("gold", "said", "kinds"),
    [
        ("X0-4", "X0-4", "right X"),
        ("X0-4", "X0-5", "boundary X"),
        ("X0-4", "Y0-4", "label X"),
        ("X0-4", "Y1-4", "both X"),
        ("X0-4", "", "missed X"),
        ("", "Y0-4", "spurious Y"),
        ("X0-4", "X4-8", "missed X, spurious X"),
        # a prediction explains one gold mention
        ("X0-4 X6-9", "X0-9", "boundary X, missed X"),
    ],
)
def test_each_kind(gold, said, kinds):
    def spans(text):
        found = re.findall(r"(\w)(\d)-(\d)", text)
        return tuple(Span(int(start), int(end), label) for label, start, end in found)

    document = Document("d", "g", "x" * 60, "test", spans=spans(gold))
    (judged,) = judge([document], [Prediction("d", spans=spans(said))])
    assert ", ".join(f"{mark.kind} {mark.label}" for mark in judged.marks) == kinds


def test_classification():
    gold = [
        Document("a", "g", "", "test", labels=("P", "Q")),
        Document("b", "g", "", "test", labels=("P",)),
    ]
    judged = judge(gold, [Prediction("a", labels=("P", "R")), Prediction("b", labels=("P",))])
    assert [j.document.id for j in judged] == ["a", "b"]
    assert judged[0].wrong == 2
    assert by_label(judged) == {"P": {"right": 2}, "Q": {"missed": 1}, "R": {"spurious": 1}}


def test_an_identifier_leaks_where_a_character_of_it_is_not_hidden():
    gold = [
        Document("hidden", "hidden", "", "test", spans=(Span(0, 10, "NAME"), Span(20, 25, "CITY"))),
        Document("seen", "seen", "", "test", spans=(Span(0, 10, "NAME"), Span(20, 25, "NAME"))),
        Document("none", "none", "", "test"),
    ]
    # hidden: two words with a blank between, and another label; seen: two blanks, and a missing end
    hidden = (Span(0, 4, "NAME"), Span(5, 10, "NAME"), Span(18, 30, "NAME"))
    seen = (Span(0, 4, "NAME"), Span(6, 10, "NAME"), Span(20, 24, "NAME"))
    judged = judge(gold, [Prediction("hidden", spans=hidden), Prediction("seen", spans=seen)])
    found = leaks(judged)
    assert (found.identifiers, found.leaked) == ({"NAME": 3, "CITY": 1}, {"NAME": 2})
    assert (found.recall, found.safe_documents) == (2 / 4, 2)
    mistakes = Mistakes("m", "deid", 42, (42,), tuple(judged), {}, identifying=True)
    title, *_ = said = as_text(mistakes, ("missed",), None, 0).splitlines()
    assert "recall 50.0" in title
    assert "2 of 3 test documents leak nothing" in title
    rows = [line.split() for line in said if line.startswith(("all", "NAME", "CITY"))][:3]
    assert rows == [["all", "4", "2"], ["NAME", "3", "2"], ["CITY", "1", "0"]]


def test_the_report_tells_recall_first_where_mentions_identify_people(tmp_path):
    for task in ("deid", "anatem"):
        for seed, recall in ((42, 0.9), (43, 0.8)):
            record = save_run(tmp_path, "tiny", task, seed, 0.6)
            scores = record.scores | {"micro_recall": recall}
            Store(tmp_path).update(record.model_copy(update={"scores": scores}))
    rows = build(tmp_path, "micro", tasks=["deid", "anatem"], sources=["run"]).rows
    notes = {row.task: row.notes for row in rows}
    assert notes["deid"][0].startswith("tiny on deid: recall 85.0 of identifiers")
    assert not any("identifiers" in note for note in notes["anatem"])


def test_documents_in_which_two_runs_differ_most_come_first():
    gold = [Document(name, name, "", "test", labels=("P", "Q")) for name in "abcd"]

    def said(*labels):
        given = zip("abcd", labels, strict=True)
        return judge(gold, [Prediction(name, labels=tuple(of_name)) for name, of_name in given])

    shared = side_by_side(said("PQ", "PQ", "", "PQ"), said("PQ", "", "P", "PQ"))
    assert [(one.first.document.id, list(one.sides.values())) for one in shared] == [
        ("b", ["only A right", "only A right"]),
        ("c", ["only B right", "neither"]),
        ("a", ["both right", "both right"]),
        ("d", ["both right", "both right"]),
    ]


def test_the_gold_part_of_a_mention_has_a_solid_line_and_the_rest_a_dashed_one():
    document = Document("d", "g", "chronic pain now", "test", spans=(Span(8, 12, "X"),))
    (judged,) = judge([document], [Prediction("d", spans=(Span(0, 12, "X"),))])
    pieces = re.findall(r"2px (\w+) rgb[^>]*>([^<]*)<", to_html(judged, document.text))
    assert pieces == [("dashed", "chronic "), ("solid", "pain")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Short. As it is.", "Short. As it is."),
        ("One\nsentence of 5 . 4 %. " + "Two " * 150, "One sentence of 5 . 4 %. […]"),
        ("word " * 200, "word " * 119 + "word […]"),
        ("x" * 700, "x" * 600 + " […]"),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_sentence_with_a_mark(text, shown):
    assert whole_sentences(text) == shown


def test_a_mention_that_begins_its_sentence_is_shown_without_the_one_before():
    text = "He died. Cancer was found."
    judged = judge([Document("d", "g", text, "test", spans=(Span(9, 15, "D"),))], [])
    said = as_text(Mistakes("m", "t", 42, (42,), tuple(judged), {"d": text}), ("missed",), None, 1)
    assert "  missed: D: [Cancer] was found.\n" in said
    assert "\nAsked for: missed: 1 documents.\n" in said


def test_a_mention_stands_in_its_sentence_with_dots_only_where_that_is_cut():
    text = f"Before it. He has severe pain today. {'A long way to a ' * 9}cough now"
    spans = []
    for word, label in (("severe", "Y"), ("pain", "X"), ("cough", "X")):
        spans.append(Span(text.index(word), text.index(word) + len(word), label))
    judged = judge([Document("d", "g", text, "test", spans=tuple(spans))], [])
    said = as_text(Mistakes("m", "t", 42, (42,), tuple(judged), {"d": text}), ("missed",), None, 1)
    assert "  missed: Y: He has [severe] pain today.\n" in said
    assert "  missed: X [pain] in the sentence above\n" in said, (
        "its sentence was shown just before"
    )
    assert f"  missed: X: …{('A long way to a ' * 9)[-80:]}[cough] now\n" in said


def test_a_wrong_label_of_a_document_is_one_mistake():
    (judged,) = judge(
        [Document("d", "g", "", "test", labels=("A",))], [Prediction("d", labels=("B",))]
    )
    assert re.findall(r"<li>.*?>([\w ]+)</b> · (.*?)</li>", to_html(judged, "")) == [
        ("wrong label", "gold: A · predicted: B")
    ]


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
