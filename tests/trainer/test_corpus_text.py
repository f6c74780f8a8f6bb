"""What text can be read from, and what of it becomes tokens; damage is one line with its file and
place.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from tests.helpers.trainer_make import TEXTS, numbered, refusal
from trainer.corpus import hub, sources
from trainer.corpus.builder import corpus_folder, excluded_documents
from trainer.corpus.shards import control_ids, encode, tokenizer_hash, train_tokenizer
from trainer.corpus.sources import ReadMeter, digests, texts
from trainer.recipe.corpus import CorpusSource, CorpusSpec

AWKWARD = [
    *TEXTS,
    'a "quoted" finding,\nwith a comma and a second line',
    "été, 39 °C; 𝒳 positive\ttab",
]
WORDS = train_tokenizer(TEXTS, 400, 64)


def everything(source: CorpusSource, root: Path) -> list[str]:
    return list(texts(source, root))


def source(path: str | Path, field: str = "body", **more: Any) -> CorpusSource:
    return CorpusSource.model_validate({"id": "x", "path": str(path), "field": field, **more})


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The texts in every form."""
    lines = "".join(json.dumps({"body": t}) + "\n\n" for t in AWKWARD).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines[:2000]) + gzip.compress(lines[2000:]))
    packed = [
        pa.compress(part, codec="zstd", asbytes=True) for part in (lines[:2000], lines[2000:])
    ]
    (tmp_path / "a.jsonl.zst").write_bytes(b"".join(packed))
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with (tmp_path / name).open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file, delimiter=delimiter).writerows(
                [["number", "body"], *enumerate(AWKWARD)]
            )
    datasets.Dataset.from_dict({"body": AWKWARD}).save_to_disk(tmp_path / "saved")
    (tmp_path / "all.parquet").mkdir()
    for n, start in enumerate(range(0, len(AWKWARD), 25)):
        part = tmp_path / "all.parquet" / f"part-{n:05d}.snappy.parquet"
        pq.write_table(pa.table({"body": AWKWARD[start : start + 25]}), part)
    (tmp_path / "all.parquet" / "_SUCCESS").write_bytes(b"")
    (tmp_path / "txt").mkdir()
    for number, text in enumerate(AWKWARD):
        (tmp_path / "txt" / f"{number:03d}.txt").write_text(text)
    return tmp_path


FORMS = (
    "a.jsonl",
    "a.jsonl.gz",
    "a.jsonl.zst",
    "a.csv",
    "a.tsv",
    "saved",
    "all.parquet",
    "txt",
    "txt/*.txt",
)


@pytest.mark.parametrize("path", FORMS)
def test_every_form_gives_the_same_documents(path: str, written: Path) -> None:
    meter = ReadMeter()
    assert math.isnan(meter.fraction)
    seen = [(text, meter.fraction) for text in texts(source(path), written, meter)]
    assert [text for text, _ in seen] == AWKWARD
    shares = [share for _, share in seen]
    assert 0 < shares[0] <= shares[-1] <= 1
    assert shares == sorted(shares) or "parquet" in path


def test_lines_are_documents_where_asked(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("\n".join(TEXTS) + "\n")
    assert list(texts(source("all.txt", format="lines"), tmp_path)) == TEXTS


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.csv", "number,text\n1,a\n", ":1: no text under 'body' (it has: number, text)"),
        (
            "a.csv",
            "number,body\n1,a\n2,b,c\n",
            ":3: not a readable csv file: a row with other cells than the table's 2",
        ),
        ("a.csv", 'number,body\n1,"a"b\n', ":2: not a readable csv"),
        ("a.csv", 'number,body\n1,a\n2,"never closed\n', ":3: not a readable csv"),
        ("a.jsonl", '{"body": "x"}\n{"txt": "y"}\n', ":2: no text under 'body' (it has: txt)"),
        (
            "a.jsonl",
            '{"body": "x"}\n{oops\n',
            ":2: not a readable jsonl file: Expecting property name",
        ),
        ("a.jsonl", '\n{"body": "half \\ud83d of it"}', ":2: not a readable jsonl"),
        ("a.jsonl", '{"\\ud83d": "x"}', ":1: no text under 'body'"),
        (
            "a.jsonl",
            '{"body": "x", "n": ' + "9" * 5000 + "}",
            ":1: not a readable jsonl file: Exceeds the limit",
        ),
        (
            "a.jsonl",
            "[" * 100_000 + "]" * 100_000,
            ":1: not a readable jsonl file: maximum recursion depth",
        ),
        ("a.jsonl.gz", b"not packed at all", ": not a readable jsonl"),
        ("a.txt", b"caf\xe9", ": not a readable text file: 'utf-8' codec"),
        ("a.parquet", b"nothing", ": not a readable parquet"),
    ],
)
def test_damage_is_one_line_with_its_place(
    name: str, content: str | bytes, what: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    caught = refusal(f"{tmp_path / name}{what}", everything, source(name), tmp_path)
    assert str(caught).encode()


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "saved/data-00000-of-00001.arrow"])
def test_a_file_that_is_cut_short_is_named(name: str, written: Path) -> None:
    whole = (written / name).read_bytes()
    (written / name).write_bytes(whole[: len(whole) * 2 // 3])
    assert refusal("not a readable", everything, source(name), written).file == str(written / name)


def test_damaged_columns_of_a_parquet_file_are_named(tmp_path: Path) -> None:
    buffers = pa.array([b"\xff\xfe"], pa.binary()).buffers()
    bytes_as_text = pa.Array.from_buffers(pa.string(), 1, buffers)
    pq.write_table(pa.table({"body": bytes_as_text}), tmp_path / "bytes.parquet")
    rows = pa.table({"body": [f"document {n} {n * n}" for n in range(3000)]})
    pq.write_table(rows, tmp_path / "pages.parquet", compression="snappy", use_dictionary=False)
    with (tmp_path / "pages.parquet").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 7800)
    for name in ("bytes.parquet", "pages.parquet"):
        caught = refusal("not a readable parquet file", everything, source(name), tmp_path)
        assert caught.file == str(tmp_path / name)


HUB = CorpusSource(id="h", hub="someone/texts", name="fr", revision="a" * 40, field="body")


def test_a_dataset_that_breaks_off_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, str]]:
        yield {"body": "a text"}
        raise ConnectionError("connection reset")

    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows())
    stream = texts(HUB, tmp_path)
    assert next(stream) == "a text"
    refusal("broke off: connection reset", next, stream)


def test_a_hub_that_does_not_answer_leaves_the_revision_that_the_recipe_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def info(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    hub.commit.cache_clear()
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    assert hub.commit("hidden/texts", "v1") == "v1"
    refusal(
        "does not tell the revision of dataset 'hidden/texts'", hub.commit, "hidden/texts", None
    )


def test_a_corpus_is_found_again_wherever_its_text_lies(tmp_path: Path) -> None:
    """By content, not by path and time: a copy on another machine has neither."""

    def folder(root: Path, name: str) -> Path:
        made = CorpusSpec(sources=[source(name, "text")], sequence_length=32, root=str(root))
        return corpus_folder(made, WORDS, tmp_path / "cache", excluded_documents(made, []))

    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    (one / "a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    shutil.copytree(one, two)
    os.utime(two / "a.jsonl", (1, 1))
    (two / "a.jsonl").rename(two / "moved.jsonl")
    assert folder(one, "a.jsonl") == folder(two, "moved.jsonl") == folder(tmp_path, "one/a.jsonl")
    (two / "moved.jsonl").write_text('{"text": "other"}\n')
    assert folder(one, "a.jsonl") != folder(two, "moved.jsonl")


def test_files_are_hashed_once_and_again_when_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    hashing, memory = sources.file_hash, tmp_path / "m.json"
    monkeypatch.setattr(sources, "file_hash", lambda f: (read.append(f.name), hashing(f))[1])
    files = [tmp_path / "a.bin", tmp_path / "b.bin"]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]))
    assert digests(files, memory) == [hashing(f) for f in files]
    digests(files[::-1], memory)
    files[1].write_bytes(b"xy")
    assert digests(files[::-1], memory) == [hashing(f) for f in files[::-1]]
    assert read == ["a.bin", "b.bin", "b.bin"]
    for torn in ("torn", "[]", '{"a": 1}', "[" * 9_999):
        memory.write_text(torn)
        assert digests(files, memory) == [hashing(f) for f in files]


ODD = "a [SEP] b[MASK] c [PAD][CLS] </s> a<s> <mask>b <pad> [UNK] c"
ANGLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def byte_level() -> PreTrainedTokenizerBase:
    return train_tokenizer([ODD, "a b c d"] * 20, 300, 64)


def unigram() -> PreTrainedTokenizerBase:
    """Its control tokens are pieces of the model, as in SentencePiece's own files."""
    special = ["<s>", "</s>", "<pad>", "<mask>", "<unk>"]
    pieces = [*((t, 0.0) for t in special), ("▁", -2.0), *((c, -3.0) for c in "abc</>smkpd")]
    made = Tokenizer(models.Unigram(pieces, unk_id=4, byte_fallback=False))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens(
        [*special[:3], AddedToken("<mask>", lstrip=True, special=True), "<unk>"]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, mask_token="<mask>", cls_token="<s>", sep_token="</s>", **ANGLES
    )


TOKENIZERS = {"byte level": byte_level(), "unigram": unigram()}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_no_control_token_comes_from_text(name: str) -> None:
    tokenizer = TOKENIZERS[name]
    control = control_ids(tokenizer)
    assert tokenizer.mask_token_id in control
    before = tokenizer_hash(tokenizer)
    plain = tokenizer([ODD], add_special_tokens=False)["input_ids"][0]
    assert not control.isdisjoint(plain)
    found = encode([ODD, "a b c"], tokenizer)
    assert control.isdisjoint(found[0])
    assert found[1] == tokenizer("a b c", add_special_tokens=False)["input_ids"]
    assert tokenizer_hash(tokenizer) == before
    assert encode([], tokenizer) == []


def test_what_is_spelled_like_a_special_token_is_encoded_as_any_text() -> None:
    pieces = TOKENIZERS["unigram"].convert_ids_to_tokens(
        encode(["a </s> b"], TOKENIZERS["unigram"])[0]
    )
    assert "".join(pieces) == "▁a▁▁b", "a control token among a model's pieces goes"
    tokenizer = TOKENIZERS["byte level"]
    assert tokenizer.decode(encode([ODD], tokenizer)[0]) == ODD
    text = f"before {tokenizer.sep_token} and {tokenizer.mask_token}, after"
    pieces = tokenizer.tokenize(text, split_special_tokens=True)
    assert encode([text], tokenizer) == [tokenizer.convert_tokens_to_ids(pieces)]


def test_words_that_a_tokenizer_does_not_know_stay_unknown() -> None:
    assert encode(["low strange high", ""], numbered(9)) == [[3, 1, 9], []]
