"""What a scaffold makes of imperfect files: nulls, byte order marks, other encodings, ids that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.data.scaffold import check_task_id, scaffold
from biobench.data.sniff import Wanted
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
    assert "text: note, label: class" in made
    assert "labels: [no, yes]" in made


def test_a_sparse_field_is_not_taken_for_the_label(tmp_path: Path) -> None:
    many = [row | {"class": f"c{i % 5}", "flag": "ab"[i % 2] if i % 3 else None} for i, row in enumerate(rows())]
    assert "label: class" in scaffold(json_lines(tmp_path / "all.jsonl", many))


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


def made(folder: Path, spec: Path) -> LoadedTask:
    """The task that the scaffold of a folder gives, loaded; its data must be read as it stands."""
    spec.write_text(scaffold(folder, "made"), encoding="utf-8")
    task = load_task(spec)
    load_data(task, folder.parent if folder.is_dir() else folder.parent.parent)
    return task


def test_train_and_test_without_dev_keep_their_test(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    for name, size in (("train", 50), ("test", 20)):
        lines = ["note\tclass", *(f"{name} {r['note']}\t{r['class']}" for r in rows(size))]
        (tmp_path / "two" / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for given in (tmp_path / "two", tmp_path / "two" / "train.tsv"):
        assert "splits: {validation_from_train_tail: 5}" in scaffold(given)
    data = load_data(made(tmp_path / "two", tmp_path / "made.yaml"), tmp_path)
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [45, 5, 20]


def test_iobes_is_a_token_file(tmp_path: Path) -> None:
    (tmp_path / "iobes").mkdir()
    for name in ("train", "dev", "test"):
        rest = "gout\tS-D\nis\tO\n\nlung\tB-D\ncancer\tE-D\n" * 5
        (tmp_path / "iobes" / f"{name}.tsv").write_text(rest, encoding="utf-8")
    task = made(tmp_path / "iobes", tmp_path / "made.yaml")
    assert (task.spec.type, task.spec.labels) == ("token_ner", ["D"])
    assert task.options["local"].scheme == "IOBES"  # type: ignore[attr-defined]


def test_brat_folders_that_number_their_files_anew(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / "brat" / name).mkdir(parents=True)
        (tmp_path / "brat" / name / "1.txt").write_text(f"gout in {name}.\n", encoding="utf-8")
        (tmp_path / "brat" / name / "1.ann").write_text("T1\tD 0 4\tgout\n", encoding="utf-8")
    task = made(tmp_path / "brat", tmp_path / "made.yaml")
    data = load_data(task, tmp_path)
    assert [(d.id, d.group) for d in (*data.train, *data.test)] == [("train/1", "train/1"), ("test/1", "test/1")]
    spec = (tmp_path / "made.yaml").read_text(encoding="utf-8").replace(", ids: split_and_name", "")
    (tmp_path / "made.yaml").write_text(spec, encoding="utf-8")
    with pytest.raises(DataFormatError, match="document id '1' stands twice") as caught:
        load_data(load_task(tmp_path / "made.yaml"), tmp_path)
    assert "set `reader.ids: split_and_name`" in caught.value.hint


@pytest.mark.parametrize("field", ["spans", "label"])
def test_json_lines_with_mentions(field: str, tmp_path: Path) -> None:
    mention = [7, 11, "D"] if field == "label" else {"start": 7, "end": 11, "label": "D"}
    items: list[dict[str, Any]] = [{"id": i, "text": f"severe gout {i}", field: [mention]} for i in range(12)]
    items[3][field] = []
    (tmp_path / "spans").mkdir()
    task = made(json_lines(tmp_path / "spans" / "all.jsonl", items), tmp_path / "made.yaml")
    assert (task.spec.type, task.spec.labels) == ("span_ner", ["D"])


def test_parquet_of_tokens_with_named_tags(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    names = ["O", "B-D", "I-D"]
    features = {"tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}}
    table = pa.table({"id": ["1", "2"], "words": [["lung", "cancer"], ["well"]], "tags": [[1, 2], [0]]})
    for name in ("train", "validation", "test"):
        pq.write_table(table, tmp_path / "hub" / f"{name}.parquet")
    with pytest.raises(DataFormatError, match="does not name them") as caught:
        scaffold(tmp_path / "hub")
    assert "tokens: words, tags: tags" in caught.value.hint
    told = table.replace_schema_metadata({b"huggingface": json.dumps({"info": {"features": features}}).encode()})
    for name in ("train", "validation", "test"):
        pq.write_table(told, tmp_path / "hub" / f"{name}.parquet")
    task = made(tmp_path / "hub", tmp_path / "made.yaml")
    (first, _) = load_data(task, tmp_path).test
    assert (task.spec.type, first.tags) == ("token_ner", ("B-D", "I-D"))


def test_a_column_called_label_is_the_label_and_a_patient_groups(tmp_path: Path) -> None:
    many = [{"text": f"a note {i} with words", "sex": "fm"[i % 2], "label": "abc"[i % 3], "patient_id": f"p{i // 4}"}
            for i in range(60)]  # fmt: skip
    lines = ["\t".join(many[0]), *("\t".join(row.values()) for row in many)]
    (tmp_path / "all.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for said in (scaffold(tmp_path / "all.tsv"), scaffold(json_lines(tmp_path / "all.jsonl", many))):
        assert "label: label, group: patient_id" in said
        assert "# check; not read: sex" in said
        assert "splits: {ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets, by: group}" in said


def test_pairs_of_texts_are_read_where_their_columns_say_so(tmp_path: Path) -> None:
    pairs = [{"premise": f"a long first text {i}", "hypothesis": f"it {i}", "label": "yn"[i % 2]} for i in range(20)]
    lines = ["\t".join(pairs[0]), *("\t".join(row.values()) for row in pairs)]
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "all.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    json_lines(tmp_path / "pairs" / "all.jsonl", pairs)
    pq.write_table(pa.Table.from_pylist(pairs), tmp_path / "pairs" / "all.parquet")
    for name in ("all.tsv", "all.jsonl", "all.parquet"):
        first = min(load_data(made(tmp_path / "pairs" / name, tmp_path / "made.yaml"), tmp_path).train,
                    key=lambda d: d.query)  # fmt: skip
        assert (first.query[:17], first.text[:3]) == ("a long first text", "it ")
        assert first.reading == f"{first.query}\n{first.text}"


def test_a_second_text_is_said_to_be_left_out_and_numbers_are_no_labels(tmp_path: Path) -> None:
    pairs = [{"one": f"a first text {i}", "two": f"another {i}", "label": "yn"[i % 2]} for i in range(20)]
    assert "# check; not read: two" in scaffold(json_lines(tmp_path / "all.jsonl", pairs))
    scores = [{"text": f"a first text {i}", "score": i / 7} for i in range(20)]
    with pytest.raises(DataFormatError) as caught:
        scaffold(json_lines(tmp_path / "scores.jsonl", scores))
    assert "decimal number" in caught.value.hint


JOINED = ["cardio", "neuro", "cardio|neuro", "onco", "onco|cardio", "neuro|onco|cardio"]


def joined_rows() -> list[dict[str, Any]]:
    """MORFITT's shape: labels joined by a bar, in a column whose name says nothing."""
    return [{"identifier": f"p{i}", "abstract": f"an abstract {i} of some words", "specialities": JOINED[i % 6]}
            for i in range(60)]  # fmt: skip


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_labels_joined_by_a_sign_are_several(ending: str, tmp_path: Path) -> None:
    (tmp_path / "morfitt").mkdir()
    path, items = tmp_path / "morfitt" / f"all.{ending}", joined_rows()
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(items), path)
    elif ending == "jsonl":
        json_lines(path, items)
    else:
        lines = ["\t".join(items[0]), *("\t".join(row.values()) for row in items)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = made(path, tmp_path / "made.yaml")
    assert (task.spec.type, task.spec.labels) == ("multi_label", ["cardio", "neuro", "onco"])
    assert {d.labels for d in load_data(task, tmp_path).train} >= {("cardio",), ("neuro", "onco", "cardio")}


def test_named_columns_are_taken(tmp_path: Path) -> None:
    items = [{"title": f"t{i}", "body": f"a much longer text {i}", "sex": "fm"[i % 2], "stage": f"s{i % 5}",
              "who": f"p{i // 3}"} for i in range(60)]  # fmt: skip
    path = json_lines(tmp_path / "all.jsonl", items)
    named = Wanted(text="title", label="stage", group="who")
    said = scaffold(path, "made", language="fr", wanted=named)
    assert "text: title, label: stage, group: who" in said
    assert "language: fr" in said
    assert "columns: title, body, sex, stage, who" in said.detected
    commas = [{"text": f"text {i}", "kinds": "a,b" if i % 2 else "a"} for i in range(20)]
    parted = scaffold(json_lines(tmp_path / "b.jsonl", commas), "made", wanted=Wanted(label="kinds", separator=","))
    assert "labels: [a, b]" in parted
    with pytest.raises(DataFormatError, match="has no column 'titel'") as caught:
        scaffold(path, "made", wanted=Wanted(text="titel"))
    assert "'title'" in caught.value.hint


def test_split_folders_that_are_merged_are_named(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / "brat" / name).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "brat" / name / f"{name}{i}.txt").write_text(f"gout {i}", encoding="utf-8")
            (tmp_path / "brat" / name / f"{name}{i}.ann").write_text("T1\tD 0 4\tgout\n", encoding="utf-8")
    (remark,) = [line for line in scaffold(tmp_path / "brat", "made").detected if line.startswith("check:")]
    assert "the folders dev, train are read as one" in remark


def test_documents_that_stand_again_are_read_by_their_splits(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / "iob").mkdir(exist_ok=True)
        rest = "-DOCSTART- (7)\n\ngout\tB-D\n\n" * (2 if name == "train" else 1)
        (tmp_path / "iob" / f"{name}.tsv").write_text(rest, encoding="utf-8")
    task = made(tmp_path / "iob", tmp_path / "made.yaml")
    assert task.options["local"].ids == "repeated"  # type: ignore[attr-defined]
    assert [d.id for d in load_data(task, tmp_path).train] == ["train/7/1", "train/7#2/1"]


def test_labels_of_a_shipped_task_are_noticed(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("gout\tB-Disease\nnow\tO\n", encoding="utf-8")
    lines = scaffold(tmp_path, "made").detected
    assert any("the shipped task ncbi_disease" in line for line in lines)
