"""Sentence-label pairs, delimited rows, parquet tables, generated sentences; a null is refused and
is never 'None'.
"""

import json
from pathlib import Path

import pytest

from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document, Span
from tests.helpers.reading import documents_of, parquet


def test_paired_quirks(make_task, fixtures):
    labels = [
        "enabling replicative immortality",
        "sustaining proliferative signaling",
        "inducing angiogenesis",
    ]
    files, reader = "{texts: text/*.txt, labels: labels/*.txt}", "{format: paired}"
    spec = {"type": "multi_label", "folder": "paired", "labels": json.dumps(labels)}
    found = documents_of(make_task(files=files, reader=reader, **spec), fixtures)
    assert {d.id: d.group for d in found} == {
        "11_0": "11",
        "11_1": "11",
        "11_2": "11",
        "12_0": "12",
    }
    assert [list(d.labels) for d in found] == [labels[:2], labels[2:], [], []]
    assert found[3].text == "Naïve cells died ."


def test_line_ends_inside_a_quoted_field_are_text(parsed):
    """CRLF ends lines as LF does; a lone CR is a character of the text."""
    content = {"a.tsv": 'text\tlabel\r\n"one\r\ntwo"\t0\r\n"one\rtwo"\t1\r\n'}
    reader, spec = (
        "{format: tsv, columns: {text: text, label: label}}",
        {"type": "single_label", "labels": "['0', '1']"},
    )
    documents = parsed(reader, "{all: a.tsv}", content, **spec)
    assert [(d.text, d.labels) for d in documents] == [("one\ntwo", ("0",)), ("one\rtwo", ("1",))]


def test_tsv_with_a_layout_per_split_and_a_carved_validation(read, fixtures):
    data = read(
        fixtures,
        folder="tsv",
        type="single_label",
        labels='["0", "1"]',
        files="{train: train.tsv, test: test.tsv}",
        splits="{validation_from_train_tail: 1}",
        reader="{format: tsv, header: false, columns: {text: 0, label: 1},"
        " split_layout: {test: {header: true, columns: {text: sentence, label: label}}}}",
    )
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [3, 1, 2]
    assert data.train[2].text == 'the "short" form of @GENE$ protects from @DISEASE$'
    assert data.validation[0].id == "train-4"
    assert data.validation[0].split == "validation"
    assert data.test[0].labels == ("1",)
    assert data.test[0].origin.endswith("test.tsv:2")


def test_csv_quotes_line_numbers_and_label_map(make_task, fixtures):
    task = make_task(
        type="single_label",
        folder="tsv",
        files="{all: quoted.csv}",
        labels="[positive, negative]",
        splits="{ratios: [0.4, 0.3, 0.3], seed: 1, method: datasets}",
        reader="{format: tsv, separator: comma, columns: {id: key, text: note, label: class, "
        "group: who},"
        ' label_map: {"yes": positive, "no": negative}}',
    )
    found = documents_of(task, fixtures)
    assert [(d.id, d.group, d.labels) for d in found] == [
        ("n1", "p1", ("negative",)),
        ("n2", "p1", ("positive",)),
        ("n3", "p2", ("negative",)),
    ]
    assert found[0].text == 'two lines,\nwith a "quote"'
    assert [d.origin.rsplit(":", 1)[1] for d in found] == ["2", "4", "5"]


def test_parquet_text_view(parsed):
    rows: list[dict[str, object]] = [
        {"document_id": "11_0", "text": " first ", "labels": ["none"]},
        {"document_id": "11_1", "text": "second", "labels": ["a", "b", "a"]},
    ]
    reader = (
        "{format: parquet, columns: {id: document_id, group: document_id, text: text, labels: "
        "labels},"
        " group_pattern: before_underscore, label_map: {none: null}}"
    )
    document, next_document = parsed(
        reader,
        "{all: x.parquet}",
        {"x.parquet": parquet(rows)},
        type="multi_label",
        labels="[a, b]",
    )
    assert (document.id, document.group, document.text, document.labels) == (
        "11_0",
        "11",
        "first",
        (),
    )
    assert next_document.labels == ("a", "b")


def test_parquet_token_view_with_class_numbers(parsed):
    content = {"x.parquet": parquet([{"tokens": ["no", "hay", "fever"], "ner_tags": [0, 1, 2]}])}
    reader = (
        "{format: parquet, columns: {tokens: tokens, tags: ner_tags}, names: [O, B-Disease, "
        "I-Disease]}"
    )
    spec = {"type": "token_ner", "labels": "[Disease]"}
    (only,) = parsed(reader, "{all: x.parquet}", content, **spec)
    assert only.spans == (Span(3, 12, "Disease"),)
    with pytest.raises(DataFormatError, match="not an index"):
        parsed(reader.replace(", I-Disease", ""), "{all: x.parquet}", **spec)


def test_a_column_of_a_table_may_have_no_name(parsed):
    """As pandas writes an index; a table without it is named."""
    content = {
        "a.parquet": parquet([{"": ["no", "fever"], "tags": ["O", "B-a"]}]),
        "b.parquet": parquet([{"tokens": ["no"], "tags": ["O"]}]),
    }
    spec = {"type": "token_ner", "labels": "[a]"}
    reader = '{format: parquet, columns: {tokens: "", tags: tags}}'
    (only,) = parsed(reader, "{all: a.parquet}", content, **spec)
    assert only.text == "no fever"
    with pytest.raises(DataFormatError, match="has no column ''"):
        parsed(reader, "{all: b.parquet}", **spec)


def test_a_split_of_several_files_numbers_on(parsed):
    content = dict.fromkeys(("one.tsv", "two.tsv"), "t\tl\tp\none\ta\tx\ntwo\tb\tx\n")
    reader = "{format: tsv, columns: {text: t, label: l, group: p}}"
    spec = {"type": "single_label", "labels": "[a, b]"}
    documents = parsed(reader, '{test: "*.tsv"}', content, **spec)
    assert [(d.id, d.group, d.labels[0]) for d in documents] == [
        (f"test-{i + 1}", "x", "abab"[i]) for i in range(4)
    ]


def test_a_column_that_stands_twice_is_refused_by_name_and_read_by_number(parsed):
    def read(text: str) -> list[Document]:
        reader, content = (
            f"{{format: tsv, columns: {{text: {text}, label: label}}}}",
            "text\ttext\tlabel\none\tuno\ta\n",
        )
        return parsed(
            reader, "{all: all.tsv}", {"all.tsv": content}, type="single_label", labels="[a, b]"
        )

    with pytest.raises(DataFormatError, match="the header has column 'text' 2 times") as caught:
        read("text")
    assert "`text: 0`" in caught.value.hint
    assert read("1")[0].text == "uno"


@pytest.mark.parametrize(
    ("header", "text", "words"),
    [
        ("false", '"0"', "column '0' (text) needs a header"),
        ("false", "note", "column 'note' (text) needs a header"),
        ("true", "7", "has 2 columns, none numbered 7 (text)"),
        ("true", "-1", "has 2 columns, none numbered -1 (text)"),
        ("true", "nota", "the header has no column 'nota'"),
    ],
)
def test_a_column_that_is_not_there_is_named(header, text, words, parsed):
    reader = f"{{format: tsv, header: {header}, columns: {{text: {text}, label: 1}}}}"
    spec = {"type": "single_label", "labels": "[a, b]"}
    with pytest.raises(DataFormatError) as caught:
        parsed(reader, "{all: a.tsv}", {"a.tsv": "note\tlabel\none\ta\n"}, **spec)
    assert words in caught.value.what


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ('{"key": 2, "text": "t"', "not valid JSON", "write one object a line"),
        (
            '{"key": 2, "text": "t", "labels": "a"}',
            "the object has no field 'label'",
            "did you mean 'labels'?",
        ),
    ],
)
def test_a_broken_line_of_json_is_named(line, words, hint, parsed):
    """A field that an object lacks is no matter of separators."""
    text = f'{{"key": 1, "text": "t", "label": "a"}}\n{line}\n'
    with pytest.raises(DataFormatError, match=words) as caught:
        parsed(OBJECTS, "{all: a.jsonl}", {"a.jsonl": text}, type="multi_label", labels=LABELS)
    assert (caught.value.line, caught.value.hint) == (2, hint)


def test_a_first_text_does_not_go_with_tokens(parsed):
    with pytest.raises(SpecError, match=r"columns\.first goes with text and labels"):
        parsed(TOKENS.replace("tags: tags", "tags: tags, first: q"), "{all: a.parquet}", {})


TEXTS = "{format: parquet, columns: {id: key, group: who, text: text, labels: label}}"
TOKENS = "{format: parquet, columns: {tokens: tokens, tags: tags}}"
OBJECTS = "{format: json, layout: lines, id: key, text: text, label: label}"
DROPPING = OBJECTS.replace("}", ", drop_missing: true}")
LABELLED = {"key": "k", "who": "p", "text": "a text", "label": ["a"]}
TAGGED = {"tokens": ["no", "fever"], "tags": ["O", "B-a"]}
LABELS = '[a, b, "None", nan]'


@pytest.mark.parametrize(
    ("reader", "field", "value"),
    [
        (TEXTS, "text", None),
        (TEXTS, "label", None),
        (TEXTS, "label", ["a", None]),
        (TEXTS, "key", None),
        (TOKENS, "tags", None),
        (TOKENS, "tags", ["O", None]),
        (TOKENS, "tokens", ["no", None]),
        (OBJECTS, "label", ["a", None]),
        (OBJECTS, "label", [float("nan")]),
        (OBJECTS, "key", None),
        (DROPPING, "label", ["a", None]),
        (DROPPING, "label", [float("nan")]),
        (DROPPING, "key", None),
    ],
)
def test_a_null_is_refused_by_its_row_and_field(reader, field, value, parsed):
    sound = TAGGED if reader == TOKENS else LABELLED
    rows = [sound, sound | {field: value}]
    if reader in (TEXTS, TOKENS):
        content = parquet(rows)
    else:
        content = "\n".join(map(json.dumps, rows)).encode()
    spec = {"type": "token_ner" if reader == TOKENS else "multi_label", "labels": LABELS}
    with pytest.raises(DataFormatError, match=f"a null in field '{field}'") as caught:
        parsed(reader, "{all: x}", {"x": content}, **spec)
    assert Path(caught.value.file or "").name == "x"
    assert caught.value.line == 2
    assert "remove the" in caught.value.hint
