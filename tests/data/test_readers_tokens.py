"""Token files: schemes, separators, document markers, line ends, type maps, decoding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask
from biobench.errors import DataFormatError
from biobench.schema.document import Document, Span, TaskData
from tests.helpers.reading import documents_of

Read = Callable[..., TaskData]


def iob(read: Read, fixtures: Path, options: str = "", labels: str = "[Disease, Symptom]") -> TaskData:
    files = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"
    reader = f"{{format: iob{options}}}"
    return read(fixtures, folder="iob", type="token_ner", labels=labels, files=files, reader=reader)


def test_text_offsets_tags_and_spans(read: Read, fixtures: Path) -> None:
    data = iob(read, fixtures)
    first, second = data.train
    assert first.text == "Mild asthma and hay fever ."
    assert first.spans == (Span(5, 11, "Disease"), Span(16, 25, "Disease"))
    assert [first.text[a:b] for a, b in first.tokens] == ["Mild", "asthma", "and", "hay", "fever", "."]
    assert first.tags == ("O", "B-Disease", "O", "B-Disease", "I-Disease", "O")
    assert (first.id, first.group, second.id) == ("train-1", "train-1", "train-2")
    assert first.origin.endswith("train.tsv:1")
    assert second.origin.endswith("train.tsv:8")
    assert data.gold_labels == ("Symptom",)
    assert data.labels == ("Disease", "Symptom")


def test_no_final_blank_line_and_crlf(read: Read, fixtures: Path) -> None:
    data = iob(read, fixtures)
    assert data.validation[0].text == "Severe gout ."
    assert [d.text for d in data.test] == ["Fever faded", "stray"]
    assert data.decode == "strict"


def test_decode_is_the_readers_choice(read: Read, fixtures: Path) -> None:
    spans = {mode: iob(read, fixtures, f", decode: {mode}").test[1].spans for mode in ("strict", "lenient")}
    assert spans == {"strict": (), "lenient": (Span(0, 5, "Disease"),)}


def test_type_map_is_many_to_one_and_can_drop(read: Read, make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    merged = iob(read, fixtures, ", types: {Disease: Finding, Symptom: Finding}", "[Finding]")
    assert merged.test[0].tags == ("B-Finding", "O")
    reader = "{format: iob, types: {Symptom: null}}"
    dropped = _one_file(make_task, fixtures, "test.tsv", labels="[Disease]", reader=reader)
    assert dropped[0].tags == ("O", "O")
    with pytest.raises(DataFormatError, match="no document of the test split has a mention"):
        iob(read, fixtures, ", types: {Symptom: null}", "[Disease]")


def _one_file(make_task: Callable[..., LoadedTask], fixtures: Path, name: str, **spec: str) -> list[Document]:
    task = make_task(
        type="token_ner", folder="iob", files=f"{{all: {name}}}", splits="{validation_from_train_tail: 1}", **spec
    )
    return documents_of(task, fixtures)


def test_iob1_with_docstart_ids_and_extra_columns(make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    documents = _one_file(
        make_task,
        fixtures,
        "iob1.txt",
        labels="[Anatomy, Disease]",
        reader="{format: iob, columns: [token, pos, chunk, tag], separator: space, scheme: IOB1}",
    )
    assert [(d.id, d.group) for d in documents] == [("101/1", "101"), ("101/2", "101"), ("102/1", "102")]
    assert documents[0].tags == ("B-Anatomy", "B-Disease", "B-Disease")
    assert [documents[0].text[s.start : s.end] for s in documents[0].spans] == ["Kidney", "stones", "cysts"]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_neighbours_of_two_types_stay_two_when_the_types_become_one(
    scheme: str, make_task: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    """IOB1 tells the two apart by their types alone; a dropped type between them ends a mention too."""
    tags = {
        "IOB1": "I-dna I-dna I-rna I-other I-dna B-dna O",
        "IOB2": "B-dna I-dna B-rna B-other B-dna B-dna O",
        "IOBES": "B-dna E-dna S-rna S-other S-dna S-dna O",
    }[scheme].split()
    (tmp_path / "iob").mkdir()
    (tmp_path / "iob" / "a.tsv").write_text("".join(f"w{i}\t{tag}\n" for i, tag in enumerate(tags)))
    reader = f"{{format: iob, scheme: {scheme}, types: {{dna: X, rna: X, other: null}}}}"
    (document,) = _one_file(make_task, tmp_path, "a.tsv", labels="[X]", reader=reader)
    assert document.tags == ("B-X", "I-X", "B-X", "O", "B-X", "B-X", "O")
    assert [document.text[a:b] for a, b, _ in document.spans] == ["w0 w1", "w2", "w4", "w5"]


def test_medline_markers_and_document_unit(make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    spec = {"labels": "[protein, cell_type]", "reader": "{format: iob, separator: whitespace}"}
    sentences = _one_file(make_task, fixtures, "medline.iob2", **spec)
    assert [d.id for d in sentences] == ["7001/1", "7001/2", "7002/1"]
    whole = _one_file(make_task, fixtures, "medline.iob2", unit="document", **spec)
    assert [(d.id, d.text) for d in whole] == [("7001", "IL-2 gene expression"), ("7002", "T cells")]


def test_words_before_the_first_marker_belong_to_no_document(
    make_task: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    (tmp_path / "iob").mkdir()
    (tmp_path / "iob" / "late.tsv").write_text("\nlost\tO\n\n-DOCSTART-\tO\n\nkept\tO\n")
    spec = {"labels": "[D]", "reader": "{format: iob}"}
    assert [d.text for d in _one_file(make_task, tmp_path, "late.tsv", **spec)] == ["lost", "kept"]
    with pytest.raises(DataFormatError, match=r"late\.tsv:2: has words without a document marker before them"):
        _one_file(make_task, tmp_path, "late.tsv", unit="document", **spec)


def test_docstart_without_an_id(make_task: Callable[..., LoadedTask], fixtures: Path) -> None:
    documents = _one_file(make_task, fixtures, "docstart.tsv", labels="[protein]", reader="{format: iob}")
    assert [d.group for d in documents] == ["docstart-document-1", "docstart-document-2"]
