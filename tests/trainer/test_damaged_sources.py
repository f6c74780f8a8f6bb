"""Text that cannot be read is one line with its file and place, whatever is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.errors import DataFormatError, StoreError
from trainer.corpus.shards import read_manifest
from trainer.corpus.sources import texts
from trainer.recipe.corpus import CorpusSource

GOOD = '{"text": "a good line"}\n'
MANIFEST: dict[str, Any] = {
    "sequence_length": 16,
    "dtype": "uint16",
    "sources": [{"id": "a", "share": 1}],
    "exclusion": {"documents": 0, "hash": ""},
    "train": {"tokens": 0, "shards": []},
    "held_out": {"tokens": 0, "shards": [{"file": "a.bin", "tokens": 16, "sha256": "00"}]},
}


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
        ('{"text": "x", "n": ' + "9" * 5000 + "}", "too many digits"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
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
    ("damage", "what"),
    [
        ({"train": {}}, "'tokens'"),
        ({"held_out": {"tokens": 0}}, "'shards'"),
        ({"held_out": None}, "'held_out'"),
        ({"train": {"tokens": 0, "shards": [{}]}}, "'file'"),
        ({"sequence_length": "16"}, "'sequence_length'"),
        ({"exclusion": []}, "'exclusion'"),
    ],
)
def test_a_manifest_without_its_parts_is_damaged(damage: dict[str, Any], what: str, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(MANIFEST))
    assert read_manifest(tmp_path) == MANIFEST
    file.write_text(json.dumps({**MANIFEST, **damage}))
    with pytest.raises(StoreError, match=f"manifest is damaged: {what}") as caught:
        read_manifest(tmp_path)
    check(caught.value)


@pytest.mark.parametrize("content", [b"[]", b"", b"3", b"\xff", b"[" * 100_000])
def test_a_manifest_that_is_none_is_damaged(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(StoreError, match="manifest is") as caught:
        read_manifest(tmp_path)
    check(caught.value)
