"""A null in a table or a JSON file is refused where it stands; it never becomes the word 'None'."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import LoadedTask
from biobench.data.load import load_data
from biobench.errors import DataFormatError

NAN = float("nan")
TEXTS = "{format: parquet, columns: {id: key, group: who, text: text, labels: label}}"
TOKENS = "{format: parquet, columns: {tokens: tokens, tags: tags}}"
LABELLED = {"key": "k", "who": "p", "text": "a text", "label": ["a"]}
TAGGED = {"tokens": ["no", "fever"], "tags": ["O", "B-a"]}


@pytest.fixture
def refusal(make_task: Callable[..., LoadedTask], tmp_path: Path) -> Callable[..., DataFormatError]:
    """The error of reading `file` in the data folder with this reader."""

    def refused(file: str, reader: str, type: str = "multi_label") -> DataFormatError:
        task = make_task(
            type=type,
            files=f"{{all: {file}}}",
            labels='[a, b, "None", nan]',
            splits="{ratios: [0.4, 0.3, 0.3], seed: 1, method: datasets}",
            reader=reader,
        )
        with pytest.raises(DataFormatError) as caught:
            load_data(task, tmp_path)
        assert caught.value.file == str(tmp_path / "data" / file)
        return caught.value

    (tmp_path / "data").mkdir()
    return refused


@pytest.mark.parametrize(
    ("reader", "row", "words"),
    [
        (TEXTS, LABELLED | {"text": None}, "the row has no text"),
        (TEXTS, LABELLED | {"label": None}, "the row has no label"),
        (TEXTS, LABELLED | {"label": ["a", None]}, "a null stands among the row's labels"),
        (TEXTS, LABELLED | {"key": None}, "the row has no id"),
        (TEXTS, LABELLED | {"who": None}, "the row has no group"),
        (TOKENS, TAGGED | {"tokens": None}, "the row has no tokens"),
        (TOKENS, TAGGED | {"tags": None}, "the row has no tags"),
        (TOKENS, TAGGED | {"tokens": ["no", None]}, "a null stands among the row's tokens"),
        (TOKENS, TAGGED | {"tags": ["O", None]}, "a null stands among the row's tags"),
    ],
)
def test_a_null_of_a_table(
    reader: str, row: dict[str, Any], words: str, refusal: Callable[..., DataFormatError], tmp_path: Path
) -> None:
    whole = [(LABELLED if reader == TEXTS else TAGGED) | ({"key": f"k{i}"} if reader == TEXTS else {}) for i in (1, 2)]
    pq.write_table(pa.Table.from_pylist([*whole, row]), tmp_path / "data" / "x.parquet")
    error = refusal("x.parquet", reader, "multi_label" if reader == TEXTS else "token_ner")
    assert (error.what, error.line) == (words, 3)
    assert "remove the row" in error.hint


@pytest.mark.parametrize(
    ("column", "words"), [(["no", "fever"], "the row's tokens are not a list"), ([[1], [2]], "tokens are not texts")]
)
def test_tokens_that_are_none(
    column: list[Any], words: str, refusal: Callable[..., DataFormatError], tmp_path: Path
) -> None:
    pq.write_table(pa.table({"tokens": column, "tags": [["O"], ["O"]]}), tmp_path / "data" / "x.parquet")
    error = refusal("x.parquet", TOKENS, "token_ner")
    assert words in error.what
    assert error.line == 1


@pytest.mark.parametrize("drop", ["", ", drop_missing: true"])
@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"label": ["a", None]}, "a null stands among the object's labels"),
        ({"label": [NAN]}, "a null stands among the object's labels"),
        ({"key": None}, "the object has no id"),
    ],
)
def test_a_null_of_a_json_object(
    drop: str, item: dict[str, Any], words: str, refusal: Callable[..., DataFormatError], tmp_path: Path
) -> None:
    lines = [json.dumps(LABELLED), json.dumps(LABELLED | {"key": "l"} | item)]
    (tmp_path / "data" / "x.jsonl").write_text("\n".join(lines))
    error = refusal("x.jsonl", f"{{format: json, layout: lines, id: key, text: text, label: label{drop}}}")
    assert (error.what, error.line) == (words, 2)
    assert "remove the object" in error.hint
