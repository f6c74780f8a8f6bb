"""Configurations of data sets of the hub as tables: what `datasets` makes of them, what is refused.

The client is replaced by a folder; tests/hub speaks its protocol.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Dataset, Features, Value

from biobench.data import hub
from biobench.data.hub import Repository, read_tables, source_named
from biobench.data.readers.tables import class_names
from biobench.errors import DataFormatError, UsageError
from biobench.schema.source import HubSource

COMMIT = "0123456789" * 4
KINDS = ["urgent", "routine"]
COLUMNS: dict[str, list[Any]] = {"text": ["fever", "check", "pain"], "label": [0, 1, 0]}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
CSV = b"text,label\nfever,0\ncheck,1\npain,0\n"
INFO = """
dataset_info:
  features:
  - {name: text, dtype: string}
  - {name: label, dtype: {class_label: {names: {"0": urgent, "1": routine}}}}
"""
Files = dict[str, bytes]
Read = Callable[..., tuple[HubSource, Path]]


def table() -> bytes:
    """The rows as a parquet file with features."""
    features = Features(text=Value("string"), label=ClassLabel(names=KINDS))
    content = io.BytesIO()
    Dataset.from_dict(COLUMNS, features=features).to_parquet(content)
    return content.getvalue()


def card(configs: str, more: str = "") -> Files:
    """A README that names these configurations."""
    return {"README.md": f"---\nconfigs: {configs}\n{more}\n---\n# About it\n".encode()}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """`read(FILES, CONFIG)`: the tables of a repository that holds these files."""

    def read_it(files: Files, config: str | None = None) -> tuple[HubSource, Path]:
        cache = tmp_path / "client"
        for name, content in files.items():
            (cache / name).parent.mkdir(parents=True, exist_ok=True)
            (cache / name).write_bytes(content)

        def look_up(source: HubSource) -> Repository:
            sizes = {name: len(content) for name, content in files.items()}
            return Repository(source, COMMIT, sizes)

        def download(source: HubSource, commit: str, patterns: list[str]) -> dict[str, Path]:
            assert commit == COMMIT
            wanted = [name for name in files if any(fnmatch(name, p) for p in patterns)]
            return {name: cache / name for name in wanted}

        monkeypatch.setattr(hub, "look_up", look_up)
        monkeypatch.setattr(hub, "download_files", download)
        source = HubSource(repo="org/made", revision="main", config=config)
        return read_tables(source, tmp_path / "work")

    return read_it


SHAPES: dict[str, Files] = {
    "parquet": {"data/train-00000-of-00001.parquet": table()},
    "csv and card": {"train.csv": CSV, **card("[]", INFO)},
    "lines and card": {"train.jsonl": LINES, **card("[]", INFO)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_split_is_one_file_with_the_names_of_its_classes(read: Read, shape: str) -> None:
    source, folder = read(SHAPES[shape])
    assert (source.config, source.revision) == ("default", COMMIT)
    assert [path.name for path in folder.iterdir()] == ["train.parquet"]
    assert class_names(folder / "train.parquet") == {"label": KINDS}
    assert pq.read_table(folder / "train.parquet").to_pylist() == ROWS


TWO = card("[{config_name: a, data_files: a/*}, {config_name: b, data_files: b/*, default: true}]")
PARTS = {"a/train.csv": CSV, "b/train.csv": CSV + b"rash,1\n"}


@pytest.mark.parametrize(
    ("files", "config", "chosen", "rows"),
    [
        (PARTS | TWO, None, "b", 4),
        (PARTS | TWO, "a", "a", 3),
        (PARTS, "b", "b", 4),
        ({"train/0.csv": CSV, "test/0.csv": CSV}, None, "default", 3),
    ],
)
def test_the_configuration_is_the_wanted_or_the_default_one(
    read: Read, files: Files, config: str | None, chosen: str, rows: int
) -> None:
    source, folder = read(files, config)
    assert source.config == chosen
    assert pq.read_table(folder / "train.parquet").num_rows == rows


REFUSED: dict[str, tuple[Files, str | None, str]] = {
    "script": ({"made.py": b"raise SystemExit", "a.csv": CSV}, None, "its script made.py is never"),
    "pickle": ({"train.pkl": b"x", "train.pt": b"x"}, None, "it holds 0 csv, tsv, json"),
    "several": (PARTS, None, "it has several configurations"),
    "unknown": (PARTS | TWO, "c", "it has no configuration 'c'"),
    "file here": ({"a.csv": CSV, **card("[{config_name: a, data_files: /etc/*}]")}, None, "names"),
    "above": ({"a.csv": CSV, **card("[{config_name: a, data_dir: ../x}]")}, None, "names '../x'"),
    "address": (
        {"a.csv": CSV, **card("[{config_name: a, data_files: [http://127.0.0.1:9/a.csv]}]")},
        None,
        "names 'http://127.0.0.1:9/a.csv'",
    ),
    "chain": (
        {"a.csv": CSV, **card("[{config_name: a, data_files: 'x::http://127.0.0.1:9/a.csv'}]")},
        None,
        "names 'x::http",
    ),
    "second head": (
        {"a.csv": CSV, "README.md": b"---\nx: 1\n---y: 2\nconfigs: [{data_files: /x}]\n---\n"},
        None,
        "names '/x'",
    ),
    "alias": ({"a.csv": CSV, **card("[*x]", "x: &x {config_name: a}")}, None, "YAML aliases"),
    "expression": ({"a.csv": CSV, **card("[{config_name: a, sep: (x+)+y}]")}, None, "'(x+)+y'"),
    "no mapping": ({"a.csv": CSV, **card("[3]")}, None, "its tables are not read"),
    "large card": ({"a.csv": CSV, "README.md": b"x" * (1 << 20) + b"x"}, None, "its card has more"),
    "broken": ({"train.parquet": table()[:-9]}, None, "its tables are not read"),
    "other columns": ({"a.csv": CSV, "b.csv": b"words\nx\n"}, None, "its tables are not read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_repository_may_not_do_is_refused_in_one_line(read: Read, case: str) -> None:
    files, config, problem = REFUSED[case]
    with pytest.raises(DataFormatError, match="hub dataset org/made@main: ") as caught:
        read(files, config)
    assert problem in str(caught.value)
    assert "work/repository" not in str(caught.value)


@pytest.mark.parametrize(
    ("limit", "most", "problem"),
    [
        ("MOST_ROWS", 5, "more than 5 rows"),
        ("MOST_BYTES", 2 * len(CSV) - 1, "2 files with"),
        ("MOST_FILES", 1, "at most 1 with"),
    ],
)
def test_a_repository_over_a_limit_is_refused(
    read: Read, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, problem: str
) -> None:
    monkeypatch.setattr(hub, limit, most)
    with pytest.raises(DataFormatError, match=problem):
        read({"train.csv": CSV, "test.csv": CSV})


def test_a_name_without_owner_or_with_an_empty_configuration_is_refused() -> None:
    assert source_named("hub:org/x:a b", None) == HubSource(
        repo="org/x", revision="main", config="a b"
    )
    for name in ("hub:org", "hub:org/x:", "hub:org/x/y", "hub:/x"):
        with pytest.raises(UsageError, match="is no data set of the hub"):
            source_named(name, None)
