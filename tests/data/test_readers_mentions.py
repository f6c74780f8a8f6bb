"""JSON with mentions: by character offsets, or as words with tags."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from biobench.errors import DataFormatError
from biobench.schema.document import Document, Span
from tests.helpers.reading import Parsed


def json_spans(parsed: Parsed, rows: list[dict[str, Any]], reader: str = "", **spec: str) -> list[Document]:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    files, labels = "{all: all.jsonl}", "[D, S]"
    return parsed(f"{{format: json_spans{reader}}}", files, {"all.jsonl": lines}, labels=labels, **spec)


TEXT = " Goutte 🦶 sévère\r\net fièvre."


def test_json_with_mentions_as_annotation_tools_write_them(parsed: Parsed) -> None:
    objects = [{"start": 1, "end": 16, "label": "D"}, {"start": 1, "end": 7, "label": "D", "text": "Goutte"},
               {"start": 21, "end": 27, "label": "S", "text": "fièvre"}]  # fmt: skip
    (document,) = json_spans(parsed, [{"text": TEXT, "spans": objects}])
    assert document.text == TEXT, "offsets count from the very start"
    assert [(TEXT[a:b], label) for a, b, label in document.spans] == [
        ("Goutte", "D"), ("Goutte 🦶 sévère", "D"), ("fièvre", "S")
    ]  # fmt: skip
    rows = [{"text": TEXT, "label": [[1, 7, "D"], [21, 27, "S"]], "who": "p1"}]
    (mapped,) = json_spans(parsed, rows, reader=", spans: label, group: who, types: {S: null}")
    assert (mapped.id, mapped.group, mapped.spans) == ("all-1", "p1", (Span(1, 7, "D"),))
    tagged = json_spans(parsed, rows, type="token_ner", reader=", spans: label, tokens: words")[0]
    assert tagged.tags == ("B-D", "O", "O", "O", "B-S", "O")


@pytest.mark.parametrize(
    ("mention", "what"),
    [
        ({"start": 22, "end": 28, "label": "S", "text": "fièvre"}, "characters 22-28 are not 'fièvre'"),
        ({"start": 22, "end": 99, "label": "S"}, "offsets 22-99 leave the text"),
        ({"start": 3, "end": 3, "label": "S"}, "offsets 3-3 leave the text"),
        ({"start": "3", "end": 5, "label": "S"}, "no whole numbers"),
        ({"begin": 3, "end": 5, "label": "S"}, "a mention has no field 'start'"),
        ({"start": 0, "end": 1, "label": "S"}, "characters 0-1 are not"),
        ({"start": 1, "end": 7, "label": "X"}, "'X' is not a label"),
        ([1, 7], "is no mention"),
    ],
)
def test_json_with_mentions_that_are_none(mention: Any, what: str, parsed: Parsed) -> None:
    with pytest.raises(DataFormatError, match=re.escape(what)):
        json_spans(parsed, [{"text": TEXT, "spans": [mention]}])


def json_tokens(parsed: Parsed, text: str, reader: str = "") -> list[Document]:
    spec = {"type": "token_ner", "labels": "[D, S]"}
    return parsed(f"{{format: json_tokens{reader}}}", "{all: all.jsonl}", {"all.jsonl": text}, **spec)


WORDS = ["Goutte", "🦶", "sévère", "et", "fièvre"]


@pytest.mark.parametrize(
    ("tags", "reader"),
    [
        (["B-D", "I-D", "I-D", "O", "B-S"], ""),
        (["B-D", "I-D", "E-D", "O", "S-S"], ", scheme: IOBES"),
        (["B-D", "I-D", "L-D", "O", "U-S"], ", scheme: IOBES"),
        (["I-D", "I-D", "I-D", "O", "I-S"], ", scheme: IOB1"),
        (["B-gout", "I-gout", "I-gout", "O", "B-S"], ", types: {gout: D}"),
        ([1, 2, 2, 0, 3], ", names: [O, B-D, I-D, B-S]"),
    ],
)
def test_json_with_words_and_tags(tags: list[Any], reader: str, parsed: Parsed) -> None:
    rows = [{"tokens": WORDS, "tags": tags, "who": 7, "no": "a"}, {"tokens": [], "tags": [], "who": 7, "no": "b"}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    first, second = json_tokens(parsed, text, f"{reader}, group: who, id: no")
    assert (first.id, first.group, first.text) == ("a", "7", "Goutte 🦶 sévère et fièvre")
    assert [(first.text[a:b], label) for a, b, label in first.spans] == [("Goutte 🦶 sévère", "D"), ("fièvre", "S")]
    assert first.tags == ("B-D", "I-D", "I-D", "O", "B-S")
    assert [first.text[a:b] for a, b in first.tokens or ()] == WORDS
    assert (second.id, second.text, second.spans) == ("b", "", ())


@pytest.mark.parametrize(
    ("item", "reader", "what"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "", "1: the object has 2 tokens and 1 tags"),
        ({"tokens": ["a"], "tags": "O"}, "", "the object's tags are not a list"),
        ({"tokens": ["a", None], "tags": ["O", "O"]}, "", "a null stands among the object's tokens"),
        ({"tokens": ["a", 1], "tags": ["O", "O"]}, "", "the object's tokens are not texts"),
        ({"tokens": ["a"], "tags": None}, "", "the object has no tags"),
        ({"tokens": ["a"], "tags": ["E-D"]}, "", "tag 'E-D' is not O, B-<type> or I-<type>"),
        ({"tokens": ["a"], "tags": ["D"]}, ", scheme: IOBES", "tag 'D' is not O, B-, I-, E- or S-<type>"),
        ({"tokens": ["a"], "tags": [3]}, ", names: [O, B-D]", "'3' is not an index into the 2 names"),
        ({"tokens": ["a"], "tags": [True]}, ", names: [O, B-D]", "tag 'True' is not O"),
        ({"tokens": ["a"], "tags": ["B-X"]}, "", "'X' is not a label"),
    ],
)
def test_json_with_words_whose_tags_do_not_fit(item: dict[str, Any], reader: str, what: str, parsed: Parsed) -> None:
    with pytest.raises(DataFormatError, match=re.escape(what)):
        json_tokens(parsed, json.dumps(item) + "\n", reader)
