"""Text that cannot be read is one line with its file and place, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.errors import DataFormatError, StoreError
from trainer.corpus.shards import Corpus
from trainer.corpus.sources import texts
from trainer.recipe.corpus import CorpusSource

GOOD = '{"text": "a good line"}\n'


def read(root: Path, name: str) -> list[str]:
    return list(texts(CorpusSource(id="s", path=name), root))


def check(error: DataFormatError | StoreError) -> None:
    str(error).encode()
    assert "\n" not in str(error)
    assert error.hint
    error.hint.encode()


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"text": "half \\ud83d of it"}', "half of a surrogate pair"),
        ('{"\\ud83d": "x"}', r"no text under 'text' \(keys: \\ud83d\)"),
        ('{"text": "x", "n": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
        ("[" * 100_000 + "]" * 100_000, "not JSON: maximum recursion"),
        ('{"text": ', "not JSON"),
    ],
    ids=["surrogate", "surrogate key", "digits", "nested", "cut"],
)
def test_a_bad_json_line_is_named(line: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(GOOD + line + "\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match=what) as caught:
        read(tmp_path, "a.jsonl")
    check(caught.value)
    assert str(caught.value).startswith(f"{file}:2: ")


def test_a_whole_surrogate_pair_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "\\ud83d\\ude00"}\n')
    assert read(tmp_path, "a.jsonl") == ["\U0001f600"]


def test_damaged_pages_of_a_parquet_file_are_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    rows = [f"document {n} {n * n}" for n in range(3000)]
    pq.write_table(pa.table({"text": rows}), file, compression="snappy", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[200:8000] = b"\xff" * 7800
    file.write_bytes(bytes(content))
    with pytest.raises(DataFormatError, match="not a readable parquet file") as caught:
        read(tmp_path, "a.parquet")
    check(caught.value)
    assert caught.value.file == str(file)


def test_bytes_in_a_parquet_column_of_text_are_named(tmp_path: Path) -> None:
    column = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
    pq.write_table(pa.table({"text": column}), tmp_path / "a.parquet")
    with pytest.raises(DataFormatError, match="not a readable parquet file") as caught:
        read(tmp_path, "a.parquet")
    check(caught.value)


@pytest.mark.parametrize(
    "content", ["[]", "", '{"sequence_length": "x"}', '{"sequence_length": 16, "dtype": "uint16"}']
)
def test_a_manifest_that_is_none_is_damaged(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match="manifest is missing or damaged") as caught:
        Corpus(tmp_path)
    check(caught.value)
