"""What a scaffold makes of imperfect files: nulls, byte order marks, other encodings, ids that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.scaffold import check_task_id, scaffold
from biobench.errors import DataFormatError, UsageError


def rows(count: int = 60) -> list[dict[str, Any]]:
    return [{"note": f"a longer text number {i}", "class": "no" if i % 3 else "yes"} for i in range(count)]


def json_lines(path: Path, items: list[dict[str, Any]], encoding: str = "utf-8") -> Path:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding=encoding)
    return path


@pytest.mark.parametrize("null", [{"class": None}, {"note": None}, {"class": float("nan")}])
@pytest.mark.parametrize("at", [0, 30])
def test_json_lines_with_a_null(null: dict[str, Any], at: int, tmp_path: Path) -> None:
    items = rows()
    items[at] |= null
    made = scaffold(json_lines(tmp_path / "all.jsonl", items))
    assert 'text: "note", label: "class"' in made
    assert 'labels: ["no", "yes"]' in made


def test_parquet_with_nulls(tmp_path: Path) -> None:
    items = rows()
    items[0]["class"] = items[7]["note"] = None
    pq.write_table(pa.Table.from_pylist(items), tmp_path / "all.parquet")
    made = scaffold(tmp_path / "all.parquet")
    assert 'text: "note", labels: "class"' in made
    assert 'labels: ["no", "yes"]' in made


def test_a_null_in_a_list_of_labels_is_no_label(tmp_path: Path) -> None:
    items = [row | {"class": ["x", "y"][: i % 3]} for i, row in enumerate(rows())]
    items[5]["class"] = ["x", None]
    made = scaffold(json_lines(tmp_path / "all.jsonl", items))
    assert "type: multi_label" in made
    assert 'labels: ["x", "y"]' in made


def test_a_sparse_field_is_not_taken_for_the_label(tmp_path: Path) -> None:
    many = [row | {"class": f"c{i % 5}", "flag": "ab"[i % 2] if i % 3 else None} for i, row in enumerate(rows())]
    assert 'label: "class"' in scaffold(json_lines(tmp_path / "all.jsonl", many))


@pytest.mark.parametrize("name", ["all.jsonl", "all.csv"])
def test_a_byte_order_mark_is_dropped(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    if name == "all.jsonl":
        json_lines(folder / name, rows(), "utf-8-sig")
    else:
        lines = ["note,class", *(f"{row['note']},{row['class']}" for row in rows())]
        (folder / name).write_text("\r\n".join(lines), encoding="utf-8-sig")
    spec = tmp_path / "made.yaml"
    spec.write_text(scaffold(folder / name, "made"), encoding="utf-8")
    task = load_task(spec)
    assert task.spec.labels == ["no", "yes"]
    assert sum(len(part) for part in load_data(task, tmp_path).documents.values()) == 60


@pytest.mark.parametrize("name", ["all.jsonl", "all.tsv"])
def test_another_encoding_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    items = rows()
    items[4]["class"] = "fièvre"
    if name == "all.jsonl":
        json_lines(tmp_path / name, items, "latin-1")
    else:
        (tmp_path / name).write_text("".join(f"{r['note']}\t{r['class']}\n" for r in items), encoding="latin-1")
    with pytest.raises(DataFormatError, match="byte 0xe8 is not UTF-8") as caught:
        scaffold(tmp_path / name)
    assert (caught.value.file, caught.value.line) == (str(tmp_path / name), 5)
    assert caught.value.hint == "save the file as UTF-8"


@pytest.mark.parametrize(
    ("id", "instead"), [("My Task", "my_task"), ("Santé-2", "sante_2"), ("", "my_task"), ("x/y", "x_y"), ("a\n", "a")]
)
def test_an_id_that_is_none_is_refused(id: str, instead: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a task id") as caught:
        scaffold(json_lines(tmp_path / "all.jsonl", rows()), id)
    assert caught.value.hint.endswith(f"such as {instead}")
    check_task_id(instead)
