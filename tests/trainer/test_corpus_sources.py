"""What text can be read from: compressed files, tables, Arrow, folders of parts, the hub in parallel."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.errors import BioBenchError, DataFormatError, DataUnavailableError
from tests.helpers.trainer_make import TEXTS
from trainer.corpus import hub
from trainer.corpus.builder import build, corpus_folder, excluded_documents
from trainer.corpus.shards import train_tokenizer
from trainer.corpus.sources import Digests, ReadMeter, texts
from trainer.recipe.corpus import CorpusSource, CorpusSpec

AWKWARD = [*TEXTS, 'a "quoted" finding,\nwith a comma and a second line', "été, 39 °C; 𝒳 positive\ttab"]
TOKENIZER = train_tokenizer(TEXTS, 400, 64)


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="zstd", asbytes=True)
    return packed


def source(path: str | Path, field: str = "body", **more: Any) -> CorpusSource:
    return CorpusSource.model_validate({"id": "x", "path": str(path), "field": field, **more})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The texts in every form; the documents of each file are AWKWARD."""
    lines = "".join(json.dumps({"body": t}) + "\n" for t in AWKWARD).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines[:2000]) + gzip.compress(lines[2000:]))
    (tmp_path / "a.jsonl.zst").write_bytes(zstd(lines[:2000]) + zstd(lines[2000:]))
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with (tmp_path / name).open("w", newline="", encoding="utf-8-sig") as file:
            table = csv.writer(file, delimiter=delimiter)
            table.writerow(["number", "body"])
            table.writerows(enumerate(AWKWARD))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    datasets.Dataset.from_dict({"body": AWKWARD}).save_to_disk(tmp_path / "saved")
    with pa.ipc.new_file(tmp_path / "b.arrow", pa.schema([("n", pa.int64()), ("body", pa.string())])) as file:
        for n, text in enumerate(AWKWARD):
            file.write_batch(pa.record_batch([[n], [text]], names=["n", "body"]))
    parts = tmp_path / "all.parquet"
    parts.mkdir()
    for n, start in enumerate(range(0, len(AWKWARD), 25)):
        pq.write_table(pa.table({"body": AWKWARD[start : start + 25]}), parts / f"part-{n:05d}.snappy.parquet")
    for extra in ("_SUCCESS", "._SUCCESS.crc"):
        (parts / extra).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    "path", ["a.jsonl.gz", "a.jsonl.zst", "a.csv", "a.tsv", "a.csv.gz", "saved", "b.arrow", "all.parquet"]
)
def test_every_form_gives_the_same_documents(path: str, written: Path) -> None:
    meter = ReadMeter()
    seen = [(text, meter.fraction) for text in texts(source(path), written, meter)]
    assert [text for text, _ in seen] == AWKWARD
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "b.arrow"])
def test_a_file_that_is_cut_short_is_one_line(name: str, written: Path) -> None:
    whole = (written / name).read_bytes()
    (written / name).write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(DataFormatError) as caught:
        list(texts(source(name), written))
    assert caught.value.file == str(written / name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("table", "said", "line"),
    [
        ("number,text\n1,a\n", "no column 'body' (columns: number, text)", 1),
        ("number,body\n1,a\n2,b,c\n", "3 cells in a table of 2 columns", 3),
        ('number,body\n1,"a"b\n', "not a table", 2),
        ('number,body\n1,a\n2,"never closed\n', "not a table", 3),
    ],
)
def test_a_damaged_table_names_the_line(table: str, said: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(table)
    with pytest.raises(DataFormatError, match=said.replace("(", r"\(").replace(")", r"\)")) as caught:
        list(texts(source("a.csv"), tmp_path))
    assert caught.value.line == line


class Rows:
    """A streamed dataset of `shards`; only as many are read at once as are asked for."""

    def __init__(self, shards: list[list[str]], gate: threading.Barrier | None = None) -> None:
        self.shards, self.gate = shards, gate
        self.num_shards = len(shards)

    def shard(self, num_shards: int, index: int) -> Rows:
        assert num_shards <= self.num_shards
        per = len(self.shards) // num_shards
        return Rows(self.shards[index * per : (index + 1) * per], self.gate)

    def __iter__(self) -> Iterator[dict[str, str]]:
        if self.gate is not None:
            self.gate.wait(timeout=10)  # passes only when all are being read
        for shard in self.shards:
            for text in shard:
                if text == "broken":
                    raise ConnectionError("connection reset")
                yield {"body": text}


HUB = CorpusSource(id="h", hub="someone/texts", name="fr", revision="a" * 40, field="body")


def test_a_dataset_of_many_shards_is_streamed_in_parallel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []
    shards = [[f"{s} {n}" for n in range(1 + 300 * s)] for s in range(4)]

    def load(repository: str, **given: Any) -> Rows:
        asked.append(given)
        return Rows(shards, threading.Barrier(4))

    monkeypatch.setattr(datasets, "load_dataset", load)
    found = list(texts(HUB, tmp_path))
    assert asked == [{"name": "fr", "revision": "a" * 40, "split": "train", "streaming": True}]
    assert sorted(found) == sorted(t for s in shards for t in s)
    assert found[:5] == ["0 0", "1 0", "2 0", "3 0", "1 1"], "they take turns"
    assert found == list(texts(HUB, tmp_path)), "in the same order every time"
    for _ in zip(texts(HUB, tmp_path), range(3), strict=False):
        pass
    assert not [t for t in threading.enumerate() if t.name == "hub" and not t.daemon]


def test_a_dataset_that_breaks_off_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: Rows([["a", "broken"], ["b", "c"]]))
    with pytest.raises(DataUnavailableError, match="broke off: connection reset"):
        list(texts(HUB, tmp_path))


def spec(root: Path, *given: CorpusSource) -> CorpusSpec:
    return CorpusSpec.model_validate({"sources": list(given), "sequence_length": 32, "root": str(root)})


def test_the_commit_of_a_dataset_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    class Api:
        def dataset_info(self, repository: str, *, revision: str | None, timeout: float) -> Any:
            if revision == "gone":
                raise OSError("404")
            if repository == "hidden/texts":
                raise OSError("no network")
            return type("Info", (), {"sha": "c" * 40})

    def load(repository: str, **given: Any) -> Rows:
        asked.append(given["revision"])
        return Rows([TEXTS])

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(datasets, "load_dataset", load)
    hub.commit.cache_clear()
    moving = HUB.model_copy(update={"revision": None})
    corpus = build(spec(tmp_path, moving), TOKENIZER, tmp_path / "c")
    assert corpus.manifest["sources"][0]["revision"] == "c" * 40
    assert asked == ["c" * 40]
    fixed = corpus_folder(
        spec(tmp_path, HUB.model_copy(update={"revision": "c" * 40})),
        TOKENIZER,
        tmp_path / "c",
        excluded_documents(spec(tmp_path, HUB), []),
    )
    assert fixed == corpus.folder
    with pytest.raises(DataUnavailableError, match="does not tell the revision of dataset 'hidden/texts'"):
        build(spec(tmp_path, moving.model_copy(update={"hub": "hidden/texts"})), TOKENIZER, tmp_path / "c")


def test_a_corpus_is_found_again_wherever_its_text_lies(tmp_path: Path) -> None:
    """By content, not by path and time: a copy on another machine has neither."""

    def folder(root: Path, name: str) -> Path:
        made = spec(root, source(name, "text"))
        return corpus_folder(made, TOKENIZER, tmp_path / "cache", excluded_documents(made, []))

    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    (one / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    shutil.copytree(one, two)
    os.utime(two / "a.jsonl", (1, 1))
    (two / "a.jsonl").rename(two / "moved.jsonl")
    assert folder(one, "a.jsonl") == folder(two, "moved.jsonl") == folder(tmp_path, str(one / "a.jsonl"))
    with (two / "moved.jsonl").open("a") as file:
        file.write('{"text": "more"}\n')
    assert folder(one, "a.jsonl") != folder(two, "moved.jsonl")


def test_files_are_hashed_once_and_again_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    hashing = Digests.of.__globals__["file_hash"]
    monkeypatch.setitem(Digests.of.__globals__, "file_hash", lambda f: (read.append(f.name), hashing(f))[1])
    files = [tmp_path / f"{n}.bin" for n in range(12)]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))
        os.utime(file, (1000, 1000))
    first = Digests(tmp_path / "m.json").of(files)
    assert first == [hashing(f) for f in files]
    assert sorted(read) == sorted(f.name for f in files)
    read.clear()
    assert Digests(tmp_path / "m.json").of(files[::-1]) == first[::-1]
    assert read == []
    files[3].write_bytes(b"x")
    changed = Digests(tmp_path / "m.json").of(files)
    assert read == ["3.bin"]
    assert [n for n, (a, b) in enumerate(zip(first, changed, strict=True)) if a != b] == [3]
    read.clear()
    Digests(tmp_path / "m.json").of(files)
    assert read == ["3.bin"], "it was changed a moment ago and may change again within a tick of the clock"
    (tmp_path / "m.json").write_text("torn")
    assert Digests(tmp_path / "m.json").of(files) == changed


def test_a_start_does_not_read_shards_that_are_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = spec(tmp_path, CorpusSource.model_validate({"id": "e", "embedded": {"documents": 60}}))
    corpus = build(made, TOKENIZER, tmp_path / "c")
    for file in corpus.folder.glob("*.bin"):
        os.utime(file, (1000, 1000))
    build(made, TOKENIZER, tmp_path / "c")
    hashed: list[Path] = []
    monkeypatch.setitem(Digests.of.__globals__, "file_hash", lambda f: hashed.append(f))
    build(made, TOKENIZER, tmp_path / "c")
    assert not hashed


def test_errors_are_of_ours(written: Path) -> None:
    for name in ("a.jsonl.gz", "a.jsonl.zst"):
        (written / name).write_bytes(b"not packed at all")
        with pytest.raises(BioBenchError):
            list(texts(source(name), written))
