"""What a scaffold makes of data files: formats, columns, labels, splits, imperfect files, counts
and findings.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.baselines import gate
from biobench.data.describe import validate
from biobench.data.load import load_data
from biobench.data.scaffold import scaffold
from biobench.data.sniff import Wanted
from biobench.data.sniff.persons import signs_of_persons
from biobench.data.verify import verify
from biobench.errors import DataFormatError, UsageError
from biobench.schema.document import Document
from tests.helpers.drafts import Rows, brat, drafted, mentions_of, rows, write, written

TEXT = "a longer text number {i}"
CLASSES = ("yes", "no", "no")


@pytest.mark.parametrize("null", [{"class": None}, {"note": None}, {"class": float("nan")}])
def test_json_lines_with_a_null(null: dict[str, object], tmp_path: Path) -> None:
    items = rows(60, note=TEXT, **{"class": CLASSES})
    items[30] |= null
    draft = scaffold(write(tmp_path / "all.jsonl", items), "made")
    assert "text: note, label: class, drop_missing: true" in draft.text
    assert "labels: [no, yes]" in draft.text
    assert "rows: 1 of 60 have no text or no label and are left out" in draft.detected


PATIENTS = [f"p{i // 4}" for i in range(60)]
NAMED = rows(
    60,
    title="t{i}",
    body="a much longer text {i}",
    sex=("f", "m"),
    stage=("s0", "s1", "s2", "s3", "s4"),
    who=PATIENTS,
)
COMMAS = rows(20, text="text {i}", kinds=("a", "a,b"))
DRAFTED = [
    (
        rows(60, note=TEXT, **{"class": list("abcde"), "flag": (None, "b", "a")}),
        {},
        ["label: class"],
    ),
    (rows(20, one="a first text {i}", two="no {i}", label=CLASSES), {}, ["# check; not read: two"]),
    (COMMAS, {"label": "kinds", "separator": ","}, ["labels: [a, b]"]),
    (COMMAS, {"separator": ","}, ["labels: [a, b]"]),
    (
        NAMED,
        {"text": "title", "label": "stage", "group": "who"},
        ["text: title, label: stage, group: who"],
    ),
    (rows(30, text="douleur de la jambe, suivie {i}", label=CLASSES), {}, ["language: fr "]),
    (rows(30, text="pain in the leg for two days {i}", label=CLASSES), {}, ["language: en "]),
    (rows(30, text="12,5 mg {i}", label=CLASSES), {}, ["language: en "]),
]
"""Rows, the columns that the user names, and what the draft says of them."""


@pytest.mark.parametrize(("items", "wanted", "lines"), DRAFTED)
def test_columns_are_named_or_told_by_name_and_content(
    items: Rows, wanted: dict[str, str], lines: list[str], tmp_path: Path
) -> None:
    draft = scaffold(write(tmp_path / "all.jsonl", items), "made", wanted=Wanted(**wanted))
    assert [line for line in lines if line not in draft.text] == []
    assert f"columns: {', '.join(items[0])}" in draft.detected


@pytest.mark.parametrize("column", ["patient_id", "ipp_patient", "no_dossier"])
@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_a_patient_groups_and_asks_for_an_agreement(
    column: str, ending: str, tmp_path: Path
) -> None:
    columns = {"text": "a note {i} with words", "sex": "fm", "label": ("a", "b", "c")}
    items = rows(60, **columns | {"sex": ("f", "m"), column: PATIENTS})
    text = scaffold(write(tmp_path / f"all.{ending}", items), "made").text
    assert f"label: label, group: {column}" in text
    assert "# check; not read: sex" in text
    assert "splits: {ratios: [0.5, 0.1, 0.4], seed: 42, method: datasets, by: group}" in text
    assert "access: agreement" in text


def test_a_wrong_id_column_or_language_of_a_draft_is_refused_or_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "all.jsonl", NAMED)
    for task_id in ("My Task", "", "x/y", "a\n"):
        with pytest.raises(UsageError, match="is not a task id"):
            scaffold(path, task_id)
    with pytest.raises(UsageError, match="'gad' is a shipped task"):
        scaffold(path, "gad")
    with pytest.raises(DataFormatError, match="has no column 'titel'") as caught:
        scaffold(path, "made", wanted=Wanted(text="titel"))
    assert "'title'" in caught.value.hint
    assert "language: fr" in scaffold(path, "made", language="fr").text
    with pytest.raises(UsageError, match="--language 'xx' is no code of a language"):
        scaffold(path, "made", language="xx")


def test_train_and_test_without_dev_keep_their_test(tmp_path: Path) -> None:
    for name, size in (("train", 50), ("test", 20)):
        items = rows(size, note=f"{name} {TEXT}", label=CLASSES)
        path = write(tmp_path / "two" / f"{name}.tsv", items)
    draft = scaffold(path, "made")
    assert "splits: {validation_from_train_tail: 5}" in draft.text
    few = "7 new test texts with other labels than the commonest, and the gate needs 8; add texts"
    assert f"gate: the test files are too small: {few}" in draft.detected
    data = load_data(drafted(tmp_path / "two"), tmp_path)
    assert list(map(len, data.documents.values())) == [45, 5, 20]


@pytest.mark.parametrize(
    ("size", "ratios"), [(600, "0.8, 0.1, 0.1"), (200, "0.6, 0.1, 0.3"), (80, "0.5, 0.1, 0.4")]
)
def test_the_test_part_is_large_enough_for_the_gate(size: int, ratios: str, tmp_path: Path) -> None:
    items = rows(size, text="note {i}", label=("a", "b"))
    for item in items:
        item["text"] += {"a": " of pain", "b": " of rash"}[item["label"]]
    task = drafted(write(tmp_path / "notes" / "all.jsonl", items))
    text = task.path.read_text(encoding="utf-8")
    assert f"splits: {{ratios: [{ratios}], seed: 42" in text
    assert ("# the test part is as large as the gate needs" in text) is (size < 600)
    assert gate(task, load_data(task, tmp_path)).passed


@pytest.mark.parametrize(
    "items", [rows(21, text=TEXT, label=CLASSES), rows(2, text=TEXT, label=CLASSES) * 100]
)
def test_a_corpus_that_is_too_small_for_the_gate_is_said_to_be(items: Rows, tmp_path: Path) -> None:
    draft = scaffold(write(tmp_path / "few" / "all.jsonl", items), "made")
    (line,) = [line for line in draft.detected if line.startswith("gate:")]
    assert line.startswith("gate: too small for any split: ")
    assert line.endswith("with other labels than the commonest, and the gate needs 8; add texts")
    task = written(draft)
    assert not gate(task, load_data(task, tmp_path)).passed


def test_a_test_part_of_patients_that_training_has_is_not_called_too_small(tmp_path: Path) -> None:
    items = rows(40, text=TEXT, label=CLASSES, patient=[f"p{i}" for i in range(10)])
    for name in ("train", "dev", "test"):
        write(
            tmp_path / "leak" / f"{name}.csv", [i | {"text": f"{name} {i['text']}"} for i in items]
        )
    draft = scaffold(tmp_path / "leak", "made")
    (line,) = [line for line in draft.detected if line.startswith("gate:")]
    assert line.startswith("gate: 40 of 40 test texts are copies of training texts, or of groups ")
    assert line.endswith("and `splits: {ratios: [0.8, 0.1, 0.1], by: group}`")
    # what nobody has looked at is not declared as known
    assert "groups.test-train" not in written(draft).spec.findings
    leaks = ["groups.test-train", "groups.validation-train", "groups.test-validation"]
    assert verify(written(draft), tmp_path).as_dict()["alarms"] == leaks
    shown = validate(written(draft).path, tmp_path).findings
    assert [finding.name for finding in shown] == leaks


WINDOWS = rows(60, text="fièvre à l’arrivée {i}", label=("aigu", "épisode"))


def test_a_file_of_windows_is_read_in_the_encoding_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "notes" / "all.csv", WINDOWS)
    as_utf8 = load_data(drafted(path), tmp_path).test
    path.write_bytes(path.read_bytes().decode().encode("cp1252"))
    with pytest.raises(DataFormatError, match=r"all\.csv:2: byte 0xe8 is not UTF-8") as caught:
        scaffold(path, "made")
    assert "`tasks new --encoding cp1252`" in caught.value.hint
    task = written(scaffold(path, "made", wanted=Wanted(encoding="cp1252")))
    assert "encoding: cp1252" in task.path.read_text(encoding="utf-8")
    assert load_data(task, tmp_path).test == as_utf8
    path.write_bytes(path.read_bytes() + b"\x81,aigu\n")
    with pytest.raises(DataFormatError, match="byte 0x81 is not CP1252"):
        load_data(task, tmp_path)


def test_offsets_count_the_characters_of_decoded_texts(tmp_path: Path) -> None:
    folder = tmp_path / "brat"
    for number in range(30):
        name, text = f"n{number}", f"été {number}, fièvre"
        start = text.index("fièvre")
        write(folder / f"{name}.txt", text)
        write(folder / f"{name}.ann", f"T1\tD {start} {start + 6}\tfièvre\n")
        for file in (folder / f"{name}.txt", folder / f"{name}.ann"):
            file.write_bytes(file.read_text(encoding="utf-8").encode("iso-8859-15"))
    draft = scaffold(folder, "made", wanted=Wanted(encoding="iso-8859-15"))
    assert set(mentions_of(written(draft))) == {"fièvre/D"}


def test_brat_folders_that_number_their_files_anew(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        brat(tmp_path / "brat" / name, "1", f"gout in {name}.")
    data = load_data(drafted(tmp_path / "brat"), tmp_path)
    ids = [(d.id, d.group) for d in (*data.train, *data.test)]
    assert ids == [("train/1", "train/1"), ("test/1", "test/1")]


def test_brat_sub_folders_are_read_and_one_file_means_its_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "corpus" / name
        brat(folder, f"{name}0", f"gout here {name}0", "T1\tE 0 4\tgout\n")
        brat(folder, f"{name}1", f"gout here {name}0", "T1\tD 0 4;5 9\tgout here\n")
        for i in range(2, 8):
            brat(folder, f"{name}{i}", f"gout here {name}{i}", "T1\tD 0 4;5 9\tgout here\n")
    draft = scaffold(tmp_path / "corpus", "made")
    assert 'files: {all: "*/*.txt"}' in draft.text
    assert "discontinuous" not in draft.text, "white space alone parts no pieces"
    task = written(draft)
    assert (task.spec.type, task.spec.labels) == ("span_ner", ["D", "E"])
    assert task.spec.findings["twice.train"] == 2
    assert sum(c["mentions"] for c in task.spec.counts.values()) == 16
    assert verify(task, tmp_path).clean
    write(tmp_path / "corpus" / "a" / "a0.ann", "")
    assert not verify(task, tmp_path).clean
    for name in ("a2.txt", "a2.ann"):
        assert scaffold(folder.parent / "a" / name, "made") == scaffold(folder.parent / "a", "made")


def test_annotations_that_are_no_mentions_are_told(tmp_path: Path) -> None:
    ann = "T1\tD 0 4\tgout\nA1\tNegation T1\nR1\tCause Arg1:T1 Arg2:T1\nA2\tNegation T1\n"
    for number in range(8):
        brat(tmp_path / "brat", f"{number}", f"gout here {number}", ann)
    told = "not read: 16 attributes (Negation), 8 relations (Cause)"
    assert told in scaffold(tmp_path / "brat", "made").detected
    blocks = []
    for id in range(8):
        rows = f"{id}\t0\t4\tgout\tDisease\tD1\n{id}\tCID\tD1\tD1\n"
        blocks.append(f"{id}|t|gout\n{id}|a|here {id}\n{rows}\n")
    path = write(tmp_path / "pubtator" / "all.txt", "".join(blocks))
    assert "not read: 8 relations (CID)" in scaffold(path, "made").detected


def test_data_that_nothing_reads_cleanly_is_refused_with_its_line_and_the_reader(
    tmp_path: Path,
) -> None:
    items = rows(60, text=TEXT, label=CLASSES)
    items[7]["text"] = " "
    path = write(tmp_path / "corpus" / "all.tsv", items)
    with pytest.raises(DataFormatError, match=r"all\.tsv:9: document 'all-8' has no t") as caught:
        scaffold(path, "made")
    assert "read with `reader: {format: tsv, separator: tab" in caught.value.hint
    brat(tmp_path / "brat", "1", ann="T1\tD 3 7\tgout\n")
    with pytest.raises(DataFormatError, match=r"1\.ann:1: characters 3-7 are not 'gout'"):
        scaffold(tmp_path / "brat", "made")


JOINED = ("cardio", "cardio|neuro", "onco", "cardio", "onco", "neuro|onco|cardio")


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "parquet"])
def test_pairs_of_texts_and_joined_labels_are_told_in_every_format(
    ending: str, tmp_path: Path
) -> None:
    """MORFITT's shape: labels joined by a bar, in a column whose name says nothing."""
    pairs = rows(20, premise="a long first text {i}", hypothesis="it {i}", label=("y", "n"))
    document = load_data(drafted(write(tmp_path / "p" / f"all.{ending}", pairs)), tmp_path).train[0]
    assert (document.query[:17], document.text[:3]) == ("a long first text", "it ")
    items = rows(60, identifier="p{i}", abstract="an abstract {i} of words", specialities=JOINED)
    task = drafted(write(tmp_path / "morfitt" / f"all.{ending}", items))
    assert (task.spec.type, task.spec.labels) == ("multi_label", ["cardio", "neuro", "onco"])
    labels = {d.labels for d in load_data(task, tmp_path).train}
    assert labels >= {("cardio",), ("neuro", "onco", "cardio")}
    cells = rows(30, text="text {i}", kinds=("a", "a|b", "c"))
    assert drafted(write(tmp_path / "f" / f"all.{ending}", cells)).spec.labels == ["a", "b", "c"]


def test_documents_that_stand_again_are_read_by_their_splits(tmp_path: Path) -> None:
    block = "-DOCSTART- (7)\n\ngout\tB-D\n\n"
    for name, content in (("train", block * 2), ("dev", block), ("test", block)):
        write(tmp_path / "iob" / f"{name}.tsv", content)
    task = drafted(tmp_path / "iob")
    assert task.options["local"].ids == "repeated"
    assert [d.id for d in load_data(task, tmp_path).train] == ["train/7/1", "train/7#2/1"]


def test_split_folders_that_are_merged_are_named(tmp_path: Path) -> None:
    for i in range(6):
        brat(tmp_path / "brat" / "train", f"train{i}")
        brat(tmp_path / "brat" / "dev", f"dev{i}")
    merged = "check: the folders dev, train are read as one; `files` can name them as splits"
    assert merged in scaffold(tmp_path / "brat", "made").detected


@pytest.mark.parametrize(("repeats", "said"), [(1, ""), (3, "several texts of one group")])
def test_an_id_that_is_given_twice_by_accident_groups_nothing(repeats: int, said: str) -> None:
    documents = []
    for number in range(2000):
        group = str(max(number, repeats))
        documents.append(Document(str(number), group, "a note", "train"))
    assert signs_of_persons(["id", "text"], documents) == said


def test_options_are_counted_where_they_are_right(tmp_path: Path) -> None:
    items: Rows = []
    for number, right in enumerate("abbb" * 30):
        options = {name: f"the {name} of {number}" for name in "abc"}
        items.append({"question": f"Which of {number}?", "answers": options, "right": [right]})
    draft = scaffold(write(tmp_path / "all.jsonl", items), "made")
    assert "labels: 3: a 30, b 90, c 0" in draft.detected
    assert "labels: [a, b, c]" in draft.text
