"""A null in a table or a JSON file is refused where it stands; it never becomes the word 'None'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biobench.errors import DataFormatError
from tests.helpers.reading import Parsed, parquet

NAN = float("nan")
TEXTS = "{format: parquet, columns: {id: key, group: who, text: text, labels: label}}"
TOKENS = "{format: parquet, columns: {tokens: tokens, tags: tags}}"
LABELLED = {"key": "k", "who": "p", "text": "a text", "label": ["a"]}
TAGGED = {"tokens": ["no", "fever"], "tags": ["O", "B-a"]}


def refusal(parsed: Parsed, file: str, content: str | bytes, reader: str, type: str = "multi_label") -> DataFormatError:
    """The error of reading a file with this content."""
    with pytest.raises(DataFormatError) as caught:
        parsed(reader, f"{{all: {file}}}", {file: content}, type=type, labels='[a, b, "None", nan]')
    assert Path(caught.value.file or "").name == file
    return caught.value


@pytest.mark.parametrize(
    ("reader", "row", "words"),
    [
        (TEXTS, LABELLED | {"text": None}, "the row has no text"),
        (TEXTS, LABELLED | {"label": None}, "the row has no label"),
        (TEXTS, LABELLED | {"label": ["a", None]}, "a null stands among the row's labels"),
        (TEXTS, LABELLED | {"key": None}, "the row has no id"),
        (TOKENS, TAGGED | {"tags": None}, "the row has no tags"),
        (TOKENS, TAGGED | {"tags": ["O", None]}, "a null stands among the row's tags"),
    ],
)
def test_a_null_of_a_table(reader: str, row: dict[str, Any], words: str, parsed: Parsed) -> None:
    whole = [(LABELLED if reader == TEXTS else TAGGED) | ({"key": f"k{i}"} if reader == TEXTS else {}) for i in (1, 2)]
    kind = "multi_label" if reader == TEXTS else "token_ner"
    error = refusal(parsed, "x.parquet", parquet([*whole, row]), reader, kind)
    assert (error.what, error.line) == (words, 3)
    assert "remove the row" in error.hint


@pytest.mark.parametrize("drop", ["", ", drop_missing: true"])
@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"label": ["a", None]}, "a null stands among the object's labels"),
        ({"label": [NAN]}, "a null stands among the object's labels"),
        ({"key": None}, "the object has no id"),
    ],
)
def test_a_null_of_a_json_object(drop: str, item: dict[str, Any], words: str, parsed: Parsed) -> None:
    lines = [json.dumps(LABELLED), json.dumps(LABELLED | {"key": "l"} | item)]
    reader = f"{{format: json, layout: lines, id: key, text: text, label: label{drop}}}"
    error = refusal(parsed, "x.jsonl", "\n".join(lines), reader)
    assert (error.what, error.line) == (words, 2)
    assert "remove the object" in error.hint
