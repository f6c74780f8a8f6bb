"""Examples come in the order of the files and of the lines in them, whatever their offsets or ids."""

from __future__ import annotations

import json

import pytest

from tests.helpers.reading import Parsed

LABELS = {"labels": "[X, Y]"}


def test_a_table_of_mentions_follows_the_text_files(parsed: Parsed) -> None:
    """Of `a` and `a-b` the file of the second stands first, though its name without ending does not."""
    content = {"a.txt": "first", "b.txt": "second", "a-b.txt": "third"}
    content["table.csv"] = "name,code\nb,X\na,X\nb,Y\na-b,Y\n"
    reader = "{format: mention_table, document: name, code: code}"
    files = '{texts: "*.txt", labels: table.csv}'
    found = parsed(reader, files, content, type="multi_label", unit="document", **LABELS)
    assert [(d.id, d.labels) for d in found] == [("a-b", ("Y",)), ("a", ("X",)), ("b", ("X", "Y"))]


@pytest.mark.parametrize(("order", "kept"), [("XY", "Y"), ("YX", "X")])
def test_of_mentions_that_begin_alike_the_later_of_the_file_is_the_last(order: str, kept: str, parsed: Parsed) -> None:
    """The two stand in the same place; neither their labels nor their ends decide."""
    spans = [[0, 4, label] for label in order]
    ann = "".join(f"T{i}\t{label} 0 4\tgout\n" for i, label in enumerate(order))
    content = {"a.jsonl": json.dumps({"text": "gout now", "spans": spans}) + "\n", "a.txt": "gout now", "a.ann": ann}
    options = "tokens: words, overlap: last"
    for format, file in (("json_spans", "a.jsonl"), ("brat", "a.txt")):
        reader, files = f"{{format: {format}, {options}}}", f"{{all: {file}}}"
        (d,) = parsed(reader, files, content, type="token_ner", **LABELS)
        assert d.tags == (f"B-{kept}", "O")
        assert d.unexpressed == (order[0],)
