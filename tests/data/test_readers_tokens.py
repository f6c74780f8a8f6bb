"""Token files and JSON: schemes, separators, markers, type maps, decoding; mentions by offsets or
tags; their order.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biobench.errors import DataFormatError
from biobench.schema.document import Document, Span, TaskData
from tests.helpers.reading import Parsed

Read = Callable[..., TaskData]


def iob(
    read: Read, fixtures: Path, options: str = "", labels: str = "[Disease, Symptom]"
) -> TaskData:
    reader = f"{{format: iob{options}}}"
    return read(fixtures, folder="iob", type="token_ner", labels=labels, reader=reader)


def test_text_offsets_tags_and_spans(read, fixtures):
    data = iob(read, fixtures)
    document, next_document = data.train
    assert document.text == "Mild asthma and hay fever ."
    assert document.spans == (Span(5, 11, "Disease"), Span(16, 25, "Disease"))
    assert [document.text[a:b] for a, b in document.tokens] == document.text.split(" ")
    assert document.tags == ("O", "B-Disease", "O", "B-Disease", "I-Disease", "O")
    assert (document.id, document.group, next_document.id) == ("train-1", "train-1", "train-2")
    assert document.origin.endswith("train.tsv:1")
    assert next_document.origin.endswith("train.tsv:8")
    assert data.gold_labels == ("Symptom",)
    assert data.labels == ("Disease", "Symptom")


def test_no_final_blank_line_and_crlf(read, fixtures):
    data = iob(read, fixtures)
    assert data.validation[0].text == "Severe gout ."
    assert [d.text for d in data.test] == ["Fever faded", "stray"]
    assert data.decode == "strict"


def test_decode_is_the_readers_choice(read, fixtures):
    spans = {
        mode: iob(read, fixtures, f", decode: {mode}").test[1].spans
        for mode in ("strict", "lenient")
    }
    assert spans == {"strict": (), "lenient": (Span(0, 5, "Disease"),)}


def test_type_map_is_many_to_one_and_can_drop(read, parsed, fixtures):
    merged = iob(read, fixtures, ", types: {Disease: Finding, Symptom: Finding}", "[Finding]")
    assert merged.test[0].tags == ("B-Finding", "O")
    reader = "{format: iob, types: {Symptom: null}}"
    dropped = one_file(parsed, fixtures / "iob" / "test.tsv", "[Disease]", reader)
    assert dropped[0].tags == ("O", "O")
    with pytest.raises(DataFormatError, match="no document of the test split has a mention"):
        iob(read, fixtures, ", types: {Symptom: null}", "[Disease]")


def one_file(parsed: Parsed, path: Path, labels: str, reader: str, **spec: str) -> list[Document]:
    """Of a token file, whatever its split."""
    spec |= {"type": "token_ner", "labels": labels}
    return parsed(reader, f"{{all: {path.name}}}", {path.name: path.read_bytes()}, **spec)


def test_iob1_with_docstart_ids_and_extra_columns(parsed, fixtures):
    reader = "{format: iob, columns: [token, pos, chunk, tag], separator: space, scheme: IOB1}"
    documents = one_file(parsed, fixtures / "iob" / "iob1.txt", "[Anatomy, Disease]", reader)
    assert [d.id for d in documents] == ["101/1", "101/2", "102/1"]
    assert [d.group for d in documents] == ["101", "101", "102"]
    assert documents[0].tags == ("B-Anatomy", "B-Disease", "B-Disease")
    surfaces = [documents[0].text[start:end] for start, end, _ in documents[0].spans]
    assert surfaces == ["Kidney", "stones", "cysts"]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_neighbours_of_two_types_stay_two_when_the_types_become_one(scheme, parsed):
    """IOB1 tells the two apart by their types alone; a dropped type between them ends a mention
    too.
    """
    tags = {
        "IOB1": "I-dna I-dna I-rna I-other I-dna B-dna O",
        "IOB2": "B-dna I-dna B-rna B-other B-dna B-dna O",
        "IOBES": "B-dna E-dna S-rna S-other S-dna S-dna O",
    }[scheme].split()
    text = "".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags))
    reader = f"{{format: iob, scheme: {scheme}, types: {{dna: X, rna: X, other: null}}}}"
    (document,) = parsed(reader, "{all: a.tsv}", {"a.tsv": text}, type="token_ner", labels="[X]")
    assert document.tags == ("B-X", "I-X", "B-X", "O", "B-X", "B-X", "O")
    assert [document.text[a:b] for a, b, _ in document.spans] == ["w0 w1", "w2", "w4", "w5"]


def test_medline_markers_and_document_unit(parsed, fixtures):
    path, reader = fixtures / "iob" / "medline.iob2", "{format: iob, separator: whitespace}"
    sentences = one_file(parsed, path, "[protein, cell_type]", reader)
    assert [d.id for d in sentences] == ["7001/1", "7001/2", "7002/1"]
    whole_documents = one_file(parsed, path, "[protein, cell_type]", reader, unit="document")
    wanted = {"7001": "IL-2 gene expression", "7002": "T cells"}
    assert {d.id: d.text for d in whole_documents} == wanted


def test_words_before_the_first_marker_belong_to_no_document(parsed):
    reader, files, spec = "{format: iob}", "{all: late.tsv}", {"type": "token_ner"}
    late = {"late.tsv": "\nlost\tO\n\n-DOCSTART-\tO\n\nkept\tO\n"}
    assert [d.text for d in parsed(reader, files, late, **spec)] == ["lost", "kept"]
    with pytest.raises(
        DataFormatError, match=r"late\.tsv:2: has words without a document marker before them"
    ):
        parsed(reader, files, unit="document", **spec)


def test_docstart_without_an_id(parsed, fixtures):
    path = fixtures / "iob" / "docstart.tsv"
    documents = one_file(parsed, path, "[protein]", "{format: iob}")
    assert [d.group for d in documents] == ["docstart-document-1", "docstart-document-2"]


def json_spans(
    parsed: Parsed, rows: list[dict[str, Any]], reader: str = "", **spec: str
) -> list[Document]:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    files, labels = "{all: all.jsonl}", "[D, S]"
    return parsed(
        f"{{format: json_spans{reader}}}", files, {"all.jsonl": lines}, labels=labels, **spec
    )


TEXT = " Goutte 🦶 sévère\r\net fièvre."


def test_json_with_mentions_as_annotation_tools_write_them(parsed):
    objects = [
        {"start": 1, "end": 16, "label": "D"},
        {"start": 1, "end": 7, "label": "D", "text": "Goutte"},
        {"start": 21, "end": 27, "label": "S", "text": "fièvre"},
    ]
    (document,) = json_spans(parsed, [{"text": TEXT, "spans": objects}])
    assert document.text == TEXT, "offsets count from the very start"
    assert [(TEXT[a:b], label) for a, b, label in document.spans] == [
        ("Goutte", "D"),
        ("Goutte 🦶 sévère", "D"),
        ("fièvre", "S"),
    ]
    rows = [{"text": TEXT, "label": [[1, 7, "D"], [21, 27, "S"]], "who": "p1"}]
    (mapped,) = json_spans(parsed, rows, reader=", spans: label, group: who, types: {S: null}")
    assert (mapped.id, mapped.group, mapped.spans) == ("all-1", "p1", (Span(1, 7, "D"),))
    tagged = json_spans(parsed, rows, type="token_ner", reader=", spans: label, tokens: words")[0]
    assert tagged.tags == ("B-D", "O", "O", "O", "B-S", "O")


@pytest.mark.parametrize(
    ("mention", "message"),
    [
        (
            {"start": 22, "end": 28, "label": "S", "text": "fièvre"},
            "characters 22-28 are not 'fièvre'",
        ),
        ({"start": 22, "end": 99, "label": "S"}, "offsets 22-99 leave the text"),
        ({"start": 3, "end": 3, "label": "S"}, "offsets 3-3 leave the text"),
        ({"start": "3", "end": 5, "label": "S"}, "no whole numbers"),
        ({"begin": 3, "end": 5, "label": "S"}, "a mention has no field 'start'"),
        ({"start": 0, "end": 1, "label": "S"}, "characters 0-1 are not"),
        ({"start": 1, "end": 7, "label": "X"}, "'X' is not a label"),
        ([1, 7], "is no mention"),
    ],
)
def test_json_with_mentions_that_are_none(mention, message, parsed):
    with pytest.raises(DataFormatError, match=re.escape(message)):
        json_spans(parsed, [{"text": TEXT, "spans": [mention]}])


def json_tokens(parsed: Parsed, text: str, reader: str = "") -> list[Document]:
    spec = {"type": "token_ner", "labels": "[D, S]"}
    return parsed(
        f"{{format: json_tokens{reader}}}", "{all: all.jsonl}", {"all.jsonl": text}, **spec
    )


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
def test_json_with_words_and_tags(tags, reader, parsed):
    rows = [
        {"tokens": WORDS, "tags": tags, "who": 7, "no": "a"},
        {"tokens": [], "tags": [], "who": 7, "no": "b"},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    document, next_document = json_tokens(parsed, text, f"{reader}, group: who, id: no")
    assert (document.id, document.group, document.text) == ("a", "7", "Goutte 🦶 sévère et fièvre")
    assert [(document.text[a:b], label) for a, b, label in document.spans] == [
        ("Goutte 🦶 sévère", "D"),
        ("fièvre", "S"),
    ]
    assert document.tags == ("B-D", "I-D", "I-D", "O", "B-S")
    assert [document.text[a:b] for a, b in document.tokens or ()] == WORDS
    assert (next_document.id, next_document.text, next_document.spans) == ("b", "", ())


@pytest.mark.parametrize(
    ("item", "reader", "message"),
    [
        ({"tokens": ["a", "b"], "tags": ["O"]}, "", "1: the object has 2 tokens and 1 tags"),
        ({"tokens": ["a"], "tags": "O"}, "", "the object has 1 tokens and 1 tags"),
        ({"tokens": ["a", 1], "tags": ["O", "O"]}, "", "the object's tokens are not texts"),
        ({"tokens": ["a"], "tags": ["E-D"]}, "", "tag 'E-D' is not O, B-<type> or I-<type>"),
        (
            {"tokens": ["a"], "tags": ["D"]},
            ", scheme: IOBES",
            "tag 'D' is not O, B-, I-, E- or S-<type>",
        ),
        (
            {"tokens": ["a"], "tags": [3]},
            ", names: [O, B-D]",
            "'3' is not an index into the 2 names",
        ),
        ({"tokens": ["a"], "tags": [True]}, ", names: [O, B-D]", "tag 'True' is not O"),
        ({"tokens": ["a"], "tags": ["B-X"]}, "", "'X' is not a label"),
    ],
)
def test_json_with_words_whose_tags_do_not_fit(item, reader, message, parsed):
    with pytest.raises(DataFormatError, match=re.escape(message)):
        json_tokens(parsed, json.dumps(item) + "\n", reader)


ORDERED = {"labels": "[X, Y]"}


def test_a_table_of_mentions_follows_the_text_files(parsed):
    """Of `a` and `a-b` the file of the second stands first, though its name without ending does
    not.
    """
    content = {"a.txt": "first", "b.txt": "second", "a-b.txt": "third"}
    content["table.csv"] = "name,code\nb,X\na,X\nb,Y\na-b,Y\n"
    reader = "{format: mention_table, document: name, code: code}"
    files = '{texts: "*.txt", labels: table.csv}'
    found = parsed(reader, files, content, type="multi_label", unit="document", **ORDERED)
    assert [(d.id, d.labels) for d in found] == [("a-b", ("Y",)), ("a", ("X",)), ("b", ("X", "Y"))]


@pytest.mark.parametrize(("order", "kept_label"), [("XY", "Y"), ("YX", "X")])
def test_of_mentions_that_begin_alike_the_later_of_the_file_is_the_last(order, kept_label, parsed):
    """The two stand in the same place; neither their labels nor their ends decide."""
    spans = [[0, 4, label] for label in order]
    ann = "".join(f"T{i}\t{label} 0 4\tgout\n" for i, label in enumerate(order))
    content = {
        "a.jsonl": json.dumps({"text": "gout now", "spans": spans}) + "\n",
        "a.txt": "gout now",
        "a.ann": ann,
    }
    options = "tokens: words, overlap: last"
    for format, file in (("json_spans", "a.jsonl"), ("brat", "a.txt")):
        reader, files = f"{{format: {format}, {options}}}", f"{{all: {file}}}"
        (d,) = parsed(reader, files, content, type="token_ner", **ORDERED)
        assert d.tags == (f"B-{kept_label}", "O")
        assert d.unexpressed == (order[0],)
