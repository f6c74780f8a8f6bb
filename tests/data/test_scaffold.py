"""What a scaffold makes of data files: formats, columns, labels, splits, imperfect files, counts
and findings.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.baselines import gate
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.data.scaffold import Draft, scaffold
from biobench.data.sniff import Wanted
from biobench.data.verify import verify
from biobench.errors import DataFormatError, UsageError

Rows = list[dict[str, Any]]


def write(path: Path, items: Rows, encoding: str = "utf-8") -> Path:
    """The rows in the format of the path's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(items), path)
    elif path.suffix == ".jsonl":
        path.write_text(
            "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in items), encoding=encoding
        )
    else:
        sign = {".csv": ",", ".tsv": "\t"}[path.suffix]
        lines = [sign.join(items[0]), *(sign.join(map(str, row.values())) for row in items)]
        path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def rows(count: int = 60) -> Rows:
    return [
        {"note": f"a longer text number {i}", "class": "no" if i % 3 else "yes"}
        for i in range(count)
    ]


def brat(folder: Path, name: str, text: str = "gout here", ann: str = "T1\tD 0 4\tgout\n") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")
    (folder / f"{name}.ann").write_text(ann, encoding="utf-8")


def made(path: Path, draft: Draft | None = None) -> LoadedTask:
    """The task that the scaffold gives, loaded; its data must be read as it stands."""
    draft = draft or scaffold(path, "made")
    spec = draft.data_dir / "made.yaml"
    spec.write_text(draft.text, encoding="utf-8")
    task = load_task(spec)
    load_data(task, draft.data_dir)
    return task


@pytest.mark.parametrize("null", [{"class": None}, {"note": None}, {"class": float("nan")}])
def test_json_lines_with_a_null(null, tmp_path):
    items = rows()
    items[30] |= null
    draft = scaffold(write(tmp_path / "all.jsonl", items), "made")
    assert "text: note, label: class, drop_missing: true" in draft.text
    assert "labels: [no, yes]" in draft.text
    assert "rows: 1 of 60 have no text or no label and are left out" in draft.detected


def test_a_sparse_field_is_not_taken_for_the_label(tmp_path):
    many = [
        row | {"class": f"c{i % 5}", "flag": "ab"[i % 2] if i % 3 else None}
        for i, row in enumerate(rows())
    ]
    assert "label: class" in scaffold(write(tmp_path / "all.jsonl", many), "made").text


@pytest.mark.parametrize("id", ["My Task", "", "x/y", "a\n"])
def test_an_id_that_is_none_is_refused(id, tmp_path):
    with pytest.raises(UsageError, match="is not a task id"):
        scaffold(write(tmp_path / "all.jsonl", rows()), id)


def test_train_and_test_without_dev_keep_their_test(tmp_path):
    for name, size in (("train", 50), ("test", 20)):
        write(
            tmp_path / "two" / f"{name}.tsv",
            [{**r, "note": f"{name} {r['note']}"} for r in rows(size)],
        )
    for given in (tmp_path / "two", tmp_path / "two" / "train.tsv"):
        assert "splits: {validation_from_train_tail: 5}" in scaffold(given, "made").text
    data = load_data(made(tmp_path / "two"), tmp_path)
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [45, 5, 20]


@pytest.mark.parametrize(
    ("size", "ratios"), [(600, "0.8, 0.1, 0.1"), (200, "0.6, 0.1, 0.3"), (80, "0.5, 0.1, 0.4")]
)
def test_the_test_part_is_large_enough_for_the_gate(size, ratios, tmp_path):
    items = [
        {"text": f"note {i} of {('pain', 'rash')[i % 2]}", "label": "ab"[i % 2]}
        for i in range(size)
    ]
    task = made(write(tmp_path / "notes" / "all.jsonl", items))
    assert f"splits: {{ratios: [{ratios}], seed: 42" in task.path.read_text(encoding="utf-8")
    assert gate(task, load_data(task, tmp_path)).passed


def test_a_corpus_that_is_too_small_for_the_gate_is_said_to_be(tmp_path):
    for name, items in (("few", rows(21)), ("copies", [rows(1)[0], rows(2)[1]] * 100)):
        draft = scaffold(write(tmp_path / name / "all.jsonl", items), "made")
        (line,) = [line for line in draft.detected if line.startswith("gate:")]
        assert line.startswith("gate: too small for any split: ")
        assert line.endswith(
            "with other labels than the commonest, and the gate needs 8; add texts"
        )
        task = made(tmp_path / name, draft)
        assert not gate(task, load_data(task, tmp_path)).passed


def test_brat_folders_that_number_their_files_anew(tmp_path):
    for name in ("train", "dev", "test"):
        brat(tmp_path / "brat" / name, "1", f"gout in {name}.")
    data = load_data(made(tmp_path / "brat"), tmp_path)
    assert [(d.id, d.group) for d in (*data.train, *data.test)] == [
        ("train/1", "train/1"),
        ("test/1", "test/1"),
    ]


def test_brat_sub_folders_are_read_and_one_file_means_its_folder(tmp_path):
    for part in ("a", "b"):
        for i in range(8):
            ann = "T1\tD 0 4;5 9\tgout here\n" if i else "T1\tE 0 4\tgout\n"
            brat(
                tmp_path / "corpus" / part,
                f"{part}{i}",
                f"gout here {part}{i if i > 1 else 0}",
                ann,
            )
    draft = scaffold(tmp_path / "corpus", "made")
    assert 'files: {all: "*/*.txt"}' in draft.text
    assert "discontinuous" not in draft.text, "white space alone parts no pieces"
    task = made(tmp_path / "corpus", draft)
    assert (task.spec.type, task.spec.labels) == ("span_ner", ["D", "E"])
    assert task.spec.findings["twice.train"] == 2
    assert sum(c["mentions"] for c in task.spec.counts.values()) == 16
    assert verify(task, tmp_path).clean
    (tmp_path / "corpus" / "a" / "a0.ann").write_text("", encoding="utf-8")
    assert not verify(task, tmp_path).clean
    for name in ("a2.txt", "a2.ann"):
        part = tmp_path / "corpus" / "a"
        assert scaffold(part / name, "made") == scaffold(part, "made")


def test_data_that_nothing_reads_cleanly_is_refused_with_its_line_and_the_reader(tmp_path):
    items = rows()
    items[7]["note"] = " "
    path = write(tmp_path / "corpus" / "all.tsv", items)
    with pytest.raises(
        DataFormatError, match=r"all\.tsv:9: document 'all-8' has no text"
    ) as caught:
        scaffold(path, "made")
    assert "read with `reader: {format: tsv, separator: tab" in caught.value.hint
    brat(tmp_path / "brat", "1", ann="T1\tD 3 7\tgout\n")
    with pytest.raises(DataFormatError, match=r"1\.ann:1: characters 3-7 are not 'gout'"):
        scaffold(tmp_path / "brat", "made")


@pytest.mark.parametrize("column", ["patient_id", "ipp_patient", "no_dossier"])
def test_a_column_called_label_is_the_label_and_a_patient_groups(column, tmp_path):
    many = [
        {
            "text": f"a note {i} with words",
            "sex": "fm"[i % 2],
            "label": "abc"[i % 3],
            column: f"p{i // 4}",
        }
        for i in range(60)
    ]
    for name in ("all.tsv", "all.jsonl"):
        text = scaffold(write(tmp_path / name, many), "made").text
        assert f"label: label, group: {column}" in text
        assert "# check; not read: sex" in text
        assert "splits: {ratios: [0.5, 0.1, 0.4], seed: 42, method: datasets, by: group}" in text
        assert "access: agreement" in text


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_pairs_of_texts_are_read_where_their_columns_say_so(ending, tmp_path):
    pairs = [
        {"premise": f"a long first text {i}", "hypothesis": f"it {i}", "label": "yn"[i % 2]}
        for i in range(20)
    ]
    first = load_data(made(write(tmp_path / "pairs" / f"all.{ending}", pairs)), tmp_path).train[0]
    assert (first.query[:17], first.text[:3]) == ("a long first text", "it ")


def test_a_second_text_is_said_to_be_left_out_and_numbers_are_no_labels(tmp_path):
    pairs = [
        {"one": f"a first text {i}", "two": f"another {i}", "label": "yn"[i % 2]} for i in range(20)
    ]
    assert "# check; not read: two" in scaffold(write(tmp_path / "all.jsonl", pairs), "made").text
    scores = [{"text": f"a first text {i}", "score": i / 7} for i in range(20)]
    with pytest.raises(DataFormatError, match="no text field with a label field"):
        scaffold(write(tmp_path / "scores.jsonl", scores), "made")


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_labels_joined_by_a_sign_are_several(ending, tmp_path):
    """MORFITT's shape: labels joined by a bar, in a column whose name says nothing."""
    joined = ["cardio", "cardio|neuro", "onco", "cardio", "onco", "neuro|onco|cardio"]
    items = [
        {
            "identifier": f"p{i}",
            "abstract": f"an abstract {i} of some words",
            "specialities": joined[i % 6],
        }
        for i in range(60)
    ]
    task = made(write(tmp_path / "morfitt" / f"all.{ending}", items))
    assert (task.spec.type, task.spec.labels) == ("multi_label", ["cardio", "neuro", "onco"])
    assert {d.labels for d in load_data(task, tmp_path).train} >= {
        ("cardio",),
        ("neuro", "onco", "cardio"),
    }
    cells = [{"text": f"text {i}", "kinds": ("a", "a|b", "c")[i % 3]} for i in range(30)]
    assert made(write(tmp_path / "few" / f"all.{ending}", cells)).spec.labels == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("douleur de la jambe, suivie par le service", "fr"),
        ("pain in the leg for two days", "en"),
        ("12,5 mg", "en"),
    ],
)
def test_texts_say_whether_they_are_french_or_english(text, language, tmp_path):
    items = [{"text": f"{text} {i}", "label": "ab"[i % 2]} for i in range(30)]
    draft = scaffold(write(tmp_path / "all.jsonl", items), "made")
    assert f"language: {language} " in draft.text


def test_named_columns_are_taken(tmp_path):
    items = [
        {
            "title": f"t{i}",
            "body": f"a much longer text {i}",
            "sex": "fm"[i % 2],
            "stage": f"s{i % 5}",
            "who": f"p{i // 3}",
        }
        for i in range(60)
    ]
    path = write(tmp_path / "all.jsonl", items)
    draft = scaffold(
        path, "made", language="fr", wanted=Wanted(text="title", label="stage", group="who")
    )
    assert "text: title, label: stage, group: who" in draft.text
    assert "language: fr" in draft.text
    assert "columns: title, body, sex, stage, who" in draft.detected
    commas = write(
        tmp_path / "b.jsonl",
        [{"text": f"text {i}", "kinds": "a,b" if i % 2 else "a"} for i in range(20)],
    )
    for wanted in (Wanted(label="kinds", separator=","), Wanted(separator=",")):
        assert "labels: [a, b]" in scaffold(commas, "made", wanted=wanted).text
    with pytest.raises(DataFormatError, match="has no column 'titel'") as caught:
        scaffold(path, "made", wanted=Wanted(text="titel"))
    assert "'title'" in caught.value.hint


def test_documents_that_stand_again_are_read_by_their_splits(tmp_path):
    (tmp_path / "iob").mkdir()
    for name in ("train", "dev", "test"):
        rest = "-DOCSTART- (7)\n\ngout\tB-D\n\n" * (2 if name == "train" else 1)
        (tmp_path / "iob" / f"{name}.tsv").write_text(rest, encoding="utf-8")
    task = made(tmp_path / "iob")
    assert task.options["local"].ids == "repeated"
    assert [d.id for d in load_data(task, tmp_path).train] == ["train/7/1", "train/7#2/1"]


def test_split_folders_that_are_merged_are_named(tmp_path):
    for name in ("train", "dev"):
        for i in range(6):
            brat(tmp_path / "brat" / name, f"{name}{i}")
    (remark,) = [
        line for line in scaffold(tmp_path / "brat", "made").detected if line.startswith("check:")
    ]
    assert "the folders dev, train are read as one" in remark
