"""Very many documents without text and annotation in the native layout of every reader, behind those of `layouts`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

FIRST = 2000
"""Ids count from here; those of `layouts.rows` end before."""

Text = Callable[[int], str]


def _appended(name: str, one: Text, close: str = "", between: str = "") -> Callable[[Path, int], None]:
    """Add to the training file, before `close`, which ends it, and after a comma where `between` is one."""

    def write(folder: Path, count: int) -> None:
        path = folder / name
        content = path.read_text(encoding="utf-8")
        body = content.removesuffix(close) if close else content
        assert body != content or not close
        with path.open("w", encoding="utf-8", newline="") as stream:
            stream.write(body.rstrip("\n") + between if between else body)
            texts = (one(n) for n in range(FIRST, FIRST + count))
            first = next(texts, "")
            stream.write(first)
            stream.writelines(between + text for text in texts)
            stream.write(close)

    return write


def _each(*parts: Callable[[Path, int], None]) -> Callable[[Path, int], None]:
    def write(folder: Path, count: int) -> None:
        for part in parts:
            part(folder, count)

    return write


def _files(*names: str, content: str = "") -> Callable[[Path, int], None]:
    """A file each, `{}` in its name."""

    def write(folder: Path, count: int) -> None:
        for n, name in itertools.product(range(FIRST, FIRST + count), names):
            (folder / name.format(n)).write_text(content, encoding="utf-8")

    return write


def _parquet(row: dict[str, object], id: str) -> Callable[[Path, int], None]:
    def write(folder: Path, count: int) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / "train.parquet"
        table = pq.read_table(path)
        rows = [{**row, id: str(n)} for n in range(FIRST, FIRST + count)]
        pq.write_table(pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)]), path)

    return write


def _json(row: Callable[[str], object], end: str = "\n") -> Text:
    return lambda n: json.dumps(row(str(n))) + end


def _pairs(folder: Path, count: int) -> None:
    """Rows of the table, and the two texts of each."""
    _appended("train.tsv", lambda n: f"{n}_a\t{n}_b\t1.5\n")(folder, count)
    path = folder / "train.json"
    texts = json.loads(path.read_text(encoding="utf-8"))
    texts |= {f"{n}_{side}": "" for n in range(FIRST, FIRST + count) for side in "ab"}
    path.write_text(json.dumps(texts), encoding="utf-8")


def _masked(name: str) -> Callable[[Path, int], None]:
    return _appended(name, lambda n: f"\nSTART_OF_RECORD={n}||||1||||\n||||END_OF_RECORD\n")


_XMI = """<?xml version="1.0"?>
<xmi:XMI xmlns:xmi="http://xmi" xmlns:cas="http://cas" xmlns:t="http://t">
<cas:Sofa sofaString=""/>
</xmi:XMI>
"""
_UNIT = '<document id="{0}"><unit id="{0}"><text></text></unit></document>\n'
_SET = (
    '<ensemble id="{}" cible="2"><source></source><cible num="1">one</cible><cible num="2"></cible>'
    '<cible num="3">three</cible></ensemble>\n'
)

EMPTY: dict[str, Callable[[Path, int], None]] = {
    "brat": _files("train/{}.txt", "train/{}.ann"),
    "brat_codes": _files("train/{}.txt", "train/{}.ann"),
    "chemprot": _appended("train_abstracts.tsv", lambda n: f"{n}\t\t\n"),
    "choices": _appended(
        "train.json", _json(lambda n: {"id": n, "q": "", "o": {"a": "one", "b": ""}, "right": ["b"]}, ""), "\n]", ",\n"
    ),
    "csv_join": _each(
        _appended("flags.csv", lambda n: f"{n},{n},0,0\n"), _appended("notes.csv", lambda n: f'{n},""\n')
    ),
    "ddi": _appended("train/1000.xml", lambda n: f'<sentence id="s{n}" text=""></sentence>\n', "</document>\n"),
    "deft2020": _appended("train.xml", _SET.format, "</corpus>\n"),
    "iob": _appended("train.tsv", lambda n: f"\n###MEDLINE:{n}\n\n"),
    "json": _appended("train.jsonl", _json(lambda n: {"id": n, "text": "", "label": "Sign"})),
    "json_spans": _appended("train.jsonl", _json(lambda n: {"id": n, "text": "", "spans": []})),
    "json_tokens": _appended("train.jsonl", _json(lambda n: {"id": n, "tokens": [], "tags": []})),
    "mantra": _appended("train.xml", lambda n: _UNIT.format(n), "</Corpus>\n"),
    "meddialog": _each(
        _appended("labels.tsv", lambda n: f"{n}_q\ttrain\t['Sign']\n"),
        _appended("texts.tsv", lambda n: f"{n}_q\t\n{n}_a\t\n"),
    ),
    "mention_table": _files("texts/{}.txt"),
    "paired": _files("texts/{}.txt", "labels/{}.txt"),
    "parquet": _parquet({"text": "", "label": "Sign"}, "id"),
    "projected": _appended("original/train.txt", lambda n: f"\n{n}|t|\n{n}|a|\n"),
    "pubtator": _appended("train.txt", lambda n: f"\n{n}|t|\n{n}|a|\n"),
    "records": _each(_masked("id.text"), _masked("id.res")),
    "scored_pairs": _pairs,
    "tsv": _appended("train.tsv", lambda n: f"{n}\t\tSign\n"),
    "xmi": _files("train/{}.xml", content=_XMI),
}
"""Format to what adds so many empty documents, sentences of `ddi`, to the training part of its corpus."""
