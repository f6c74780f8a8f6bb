"""Standoff formats: offsets, nesting, discontinuous mentions, units, tokens, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from biobench.data.catalog import LoadedTask
from biobench.data.readers.brat import BratOptions
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from tests.helpers.reading import documents_of

TEXT = "Douleur du genou\r\ngauche et droit .\n\nPas de fièvre .\n"
ANN = (
    "T1\tDISO 0 16;18 24\tDouleur du genou gauche\n"
    "T2\tANAT 11 16;18 24\tgenou gauche\n"
    "T3\tANAT 11 16;28 33\tgenou droit\n"
    "T4\tDISO 44 50\tfièvre\n"
    "T5\tPHYS 44 50\tfièvre\n"
    "T6\tDISO 44 50\tfièvre\n"
    "#1\tAnnotatorNotes T4\tC0015967\n"
    "R1\thas Arg1:T1 Arg2:T2\n"
    "E1\tDISO:T4 State:T5\nA1\tValue T4 past\n*\tEquiv T4 T6\n"
)


def write(folder: Path, name: str, text: str, ann: str | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    if ann is not None:
        (folder / f"{name}.ann").write_bytes(ann.encode())


def brat(make_task: Callable[..., LoadedTask], folder: Path, options: str, **more: str) -> list[Document]:
    spec = {"type": "span_ner", "labels": "[ANAT, DISO, PHYS]", "files": '{all: "*.txt"}'} | more
    task = make_task(reader=f"{{format: brat{options}}}", splits="{validation_from_train_tail: 1}", **spec)
    return documents_of(task, folder)


def surfaces(d: Document) -> list[tuple[str, str]]:
    return [(d.text[s.start : s.end], s.label) for s in d.spans]


def test_whole_documents_nested_and_discontinuous(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    write(tmp_path / "data", "a.b", TEXT, ANN)
    (d,) = brat(make_task, tmp_path, ", discontinuous: hull")
    assert d.id == d.group == "a.b"
    assert d.text == TEXT
    assert surfaces(d) == [
        ("Douleur du genou\r\ngauche", "DISO"),
        ("genou\r\ngauche", "ANAT"),
        ("genou\r\ngauche et droit", "ANAT"),
        ("fièvre", "DISO"),
        ("fièvre", "PHYS"),
    ]
    (dropped,) = brat(make_task, tmp_path, ", discontinuous: drop")
    assert len(dropped.spans) == 4
    (first,) = brat(make_task, tmp_path, ", discontinuous: first")
    assert ("genou", "ANAT") in surfaces(first)
    with pytest.raises(DataFormatError, match="discontinuous") as caught:
        brat(make_task, tmp_path, "")
    assert caught.value.line == 3


def test_lines_as_units(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    write(tmp_path / "data", "a", TEXT, ANN)
    found = brat(make_task, tmp_path, ", segment: line, discontinuous: hull", unit="line")
    assert [(d.id, d.group, d.text) for d in found] == [
        ("a:1", "a", "Douleur du genou"),
        ("a:2", "a", "gauche et droit ."),
        ("a:4", "a", "Pas de fièvre ."),
    ]
    assert [len(d.spans) for d in found] == [0, 0, 2]
    assert surfaces(found[2])[0] == ("fièvre", "DISO")


def test_mentions_at_the_very_ends_of_a_unit_belong_to_it(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    """Lines `fièvre`, `la toux` (with blanks around), and a mention that crosses from one to the other."""
    text = "fièvre\n  la toux \n"
    ann = "T9\tDISO 0 6\tfièvre\nT2\tDISO 9 16\tla toux\nT3\tANAT 12 16\ttoux\nT4\tPHYS 0 11\tfièvre la\n"
    write(tmp_path / "data", "a", text, ann)
    first, second = brat(make_task, tmp_path, ", segment: line, group: unit", unit="line")
    assert [(first.group, *s) for s in first.spans] == [("a:1", 0, 6, "DISO")]
    assert [(second.group, *s) for s in second.spans] == [("a:2", 0, 7, "DISO"), ("a:2", 3, 7, "ANAT")]
    # The same places as annotated units, in the order of the lines of the .ann.
    write(tmp_path / "data", "a", text, ann.replace("DISO", "SECTION"))
    options = ", segment: annotation, segment_type: SECTION"
    one, two = brat(make_task, tmp_path, options, unit="line")
    assert [(d.id, d.group, d.text, surfaces(d)) for d in (one, two)] == [
        ("a:T9", "a", "fièvre", []),
        ("a:T2", "a", "la toux", [("toux", "ANAT")]),
    ]
    # The mention that a unit's border cuts is counted where it begins.
    assert (one.unexpressed, two.unexpressed) == (("PHYS",), ())
    assert (first.unexpressed, second.unexpressed) == (("PHYS",), ())
    lines = ann.replace("DISO", "SECTION").splitlines(keepends=True)
    write(tmp_path / "data", "a", text, "".join(reversed(lines)))
    assert [d.id for d in brat(make_task, tmp_path, options, unit="line")] == ["a:T2", "a:T9"]


def test_types_are_mapped_dropped_or_refused(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    write(tmp_path / "data", "a", "une fièvre", "T1\tSIGN 4 10\tfièvre\n")
    with pytest.raises(DataFormatError, match="'SIGN' is not a label"):
        brat(make_task, tmp_path, "")
    assert surfaces(brat(make_task, tmp_path, ", types: {SIGN: DISO}")[0]) == [("fièvre", "DISO")]
    assert brat(make_task, tmp_path, ", types: {SIGN: null}")[0].spans == ()
    assert brat(make_task, tmp_path, ", other_types: drop")[0].spans == ()


@pytest.mark.parametrize(
    ("ann", "words"),
    [
        ("T1\tDISO 4 10\tfievre\n", "are not 'fievre'"),
        ("T1\tDISO 4 99\tfièvre\n", "leave the text"),
        ("T1\tDISO four ten\tfièvre\n", "not a text-bound line"),
        ("T1 DISO 4 10 fièvre\n", "not a text-bound line"),
        ("T1\tDISO 4 10\tfièvre\nT1\tDISO 4 10\tfièvre\n", "stands twice"),
        ("?\tDISO 4 10\tfièvre\n", "not an annotation line"),
        (None, "no .ann file"),
    ],
)
def test_damaged_annotations_are_refused(
    ann: str | None, words: str, make_task: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    write(tmp_path / "data", "a", "une fièvre", ann)
    with pytest.raises(DataFormatError, match=words) as caught:
        brat(make_task, tmp_path, "")
    assert caught.value.line is not None or ann is None


def test_tokens_and_overlap_policies(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    text = "drinks alcohol, daily now"
    ann = "T1\tDISO 0 21\tdrinks alcohol, daily\nT2\tANAT 7 14\talcohol\nT3\tPHYS 16 25\tdaily now\n"
    write(tmp_path / "data", "a", text, ann)
    spec = {"type": "token_ner"}
    (last,) = brat(make_task, tmp_path, ", tokens: whitespace, overlap: last, decode: lenient", **spec)
    assert last.tags == ("B-DISO", "I-DISO", "B-PHYS", "I-PHYS")
    assert last.unexpressed == ("ANAT",)  # `alcohol` is no whole token beside its comma
    (words,) = brat(make_task, tmp_path, ", tokens: words, overlap: last, decode: lenient", **spec)
    assert words.tags == ("B-DISO", "B-ANAT", "I-DISO", "B-PHYS", "I-PHYS")
    assert surfaces(words) == [("drinks", "DISO"), ("alcohol", "ANAT"), (",", "DISO"), ("daily now", "PHYS")]
    (longest,) = brat(make_task, tmp_path, ", tokens: words, overlap: longest", **spec)
    assert surfaces(longest) == [("drinks alcohol, daily", "DISO")]
    assert (words.unexpressed, longest.unexpressed) == ((), ("ANAT", "PHYS"))
    with pytest.raises(DataFormatError, match="overlaps"):
        brat(make_task, tmp_path, ", tokens: words", **spec)


def test_segment_type_goes_with_annotation_segments(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="segment_type"):
        brat(make_task, tmp_path, ", segment: annotation")


PUBTATOR = (
    "\n101|t|Copper toxicosis in dogs\n101|a|A disorder of copper.\n"
    "101\t0\t16\tCopper toxicosis\tModifier\tD1\n101\t27\t35\tdisorder  \tDiseaseClass\tD2\tpart|whole\n"
    "101\tCID\tD1\tD2\n\n102|t|Nothing\n102|a|\n\n"
)


def pubtator(make_task: Callable[..., LoadedTask], folder: Path, text: str, options: str = "") -> list[Document]:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "x.txt").write_text(text, encoding="utf-8")
    task = make_task(
        type="span_ner",
        labels="[Modifier, DiseaseClass]",
        files="{all: x.txt}",
        reader=f"{{format: pubtator{options}}}",
        splits="{validation_from_train_tail: 1}",
    )
    return documents_of(task, folder)


def test_pubtator_quirks(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    first, second = pubtator(make_task, tmp_path, PUBTATOR)
    assert surfaces(first) == [("Copper toxicosis", "Modifier"), ("disorder", "DiseaseClass")]
    assert (second.id, second.text, second.spans) == ("102", "Nothing ", ())
    twice = pubtator(make_task, tmp_path, PUBTATOR + PUBTATOR)
    assert [d.id for d in twice] == ["101", "102"]
    merged = pubtator(make_task, tmp_path, PUBTATOR, ", types: {DiseaseClass: Modifier}")
    assert {s.label for s in merged[0].spans} == {"Modifier"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Copper toxicosis\tM", "Copper toxicity\tM", "are not 'Copper toxicity'"),
        ("101|a|", "101|b|", "must begin with"),
        ("101\t0\t16", "101\tzero\t16", "not a mention row"),
        ("101\t0", "999\t0", "not a row of this document"),
    ],
)
def test_damaged_pubtator(old: str, new: str, words: str, make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    with pytest.raises(DataFormatError, match=words) as caught:
        pubtator(make_task, tmp_path, PUBTATOR.replace(old, new))
    assert caught.value.line is not None


def test_pubtator_twice_with_other_content(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    with pytest.raises(DataFormatError, match="stands twice with different"):
        pubtator(make_task, tmp_path, PUBTATOR + PUBTATOR.replace("DiseaseClass", "Modifier"))


def projected(make_task: Callable[..., LoadedTask], folder: Path, iob: str, take: str) -> list[Document]:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for split in ("train", "devel", "test"):
        (data / f"{split}.tsv").write_text(iob, encoding="utf-8")
        (data / f"{split}.txt").write_text(PUBTATOR.replace("Nothing", "Nothing here"), encoding="utf-8")
    task = make_task(
        type="token_ner",
        labels="[Modifier, DiseaseClass]" if take == "ids_and_types" else "[Disease]",
        files="{train: train.tsv, validation: devel.tsv, test: test.tsv}\n  original:\n    folder: data\n"
        "    files: {train: train.txt, validation: devel.txt, test: test.txt}",
        reader=f"{{format: projected, original: pubtator, take: {take}}}",
    )
    return [d for d in documents_of(task, folder) if d.split == "train"]


IOB = (
    "Nothing\tO\nhere\tO\n\nCopper\tB-Disease\ntoxicosis\tI-Disease\nin\tO\ndogs\tO\n\n"
    "A\tO\ndis\tB-Disease\norder\tI-Disease\nof\tO\ncopper\tO\n.\tO\n"
)


def test_projection_gives_ids_and_types(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    found = projected(make_task, tmp_path, IOB, "ids_and_types")
    assert [(d.id, d.group) for d in found] == [("102/1", "102"), ("101/1", "101"), ("101/2", "101")]
    assert found[1].tags == ("B-Modifier", "I-Modifier", "O", "O")
    assert surfaces(found[2]) == [("dis order", "DiseaseClass")]
    ids = projected(make_task, tmp_path, IOB, "ids")
    assert [d.group for d in ids] == ["102", "101", "101"]
    assert ids[1].tags[0] == "B-Disease"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("toxicosis\t", "toxicoses\t", "no document of the original release begins here"),
        ("Nothing\tO\nhere\tO\n\n", "", "'102' of the original release is not in the token files"),
        ("dogs\tO", "dogs\tB-Disease", "has no mention at its place"),
    ],
)
def test_projection_refuses_what_does_not_agree(
    old: str, new: str, words: str, make_task: Callable[..., LoadedTask], tmp_path: Path
) -> None:
    with pytest.raises(DataFormatError, match=words):
        projected(make_task, tmp_path, IOB.replace(old, new), "ids_and_types")


def _read(make_task: Callable[..., LoadedTask], folder: Path, name: str, reader: str, **spec: str) -> list[Document]:
    task = make_task(
        **({"type": "span_ner", "labels": "[Disease, Chemical]", "files": f"{{all: {name}}}"} | spec),
        reader=reader,
        splits="{validation_from_train_tail: 1}",
    )
    return documents_of(task, folder)


def test_xmi_offsets_are_utf16(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    xml = (
        '<xmi:XMI xmlns:xmi="http://x" xmlns:cas="http://c" xmlns:custom="http://u" xmlns:t="http://t">'
        '<cas:Sofa sofaString="\U0001f600 toux.&#10;Rien."/>'
        '<t:Sentence begin="9" end="14"/><t:Sentence begin="0" end="8"/>'
        '<custom:CLINENTITY begin="3" end="7"/><custom:EVENT begin="3" end="7"/></xmi:XMI>'
    )
    (tmp_path / "data" / "FR1.xml").write_text(xml, encoding="utf-8")
    (d,) = _read(make_task, tmp_path, "FR1.xml", "{format: xmi, types: {CLINENTITY: Disease}}")
    assert surfaces(d) == [("toux", "Disease")]
    found = _read(make_task, tmp_path, "FR1.xml", "{format: xmi, types: {CLINENTITY: Disease}, sentences: true}")
    assert [(s.id, s.text, surfaces(s)) for s in found] == [
        ("FR1/1", "Rien.", []),
        ("FR1/2", "\U0001f600 toux.", [("toux", "Disease")]),
    ], "in the order of the elements"


def test_json_lines_and_lists(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    spec = {"type": "single_label", "labels": "[UP, DOWN]"}
    reader = "{format: json, layout: lines, text: text, label: label, label_map: {ACTIVATOR: UP}}"
    (tmp_path / "data" / "x.jsonl").write_text(
        '{"text": "a", "label": "ACTIVATOR"}\n\n{"text": "b", "label": "DOWN"}\n'
    )
    assert [d.labels for d in _read(make_task, tmp_path, "x.jsonl", reader, **spec)] == [("UP",), ("DOWN",)]
    (tmp_path / "data" / "x.jsonl").write_text('{"text": "a", "label": "UP"}\n{"text": "b"\n')
    with pytest.raises(DataFormatError, match="not valid JSON") as caught:
        _read(make_task, tmp_path, "x.jsonl", reader, **spec)
    assert caught.value.line == 2
    (tmp_path / "data" / "x.jsonl").write_text('{"text": "a", "labels": "UP"}\n')
    with pytest.raises(DataFormatError, match="no field 'label'"):
        _read(make_task, tmp_path, "x.jsonl", reader, **spec)
    (tmp_path / "data" / "x.jsonl").write_text('{"text": "a", "label": NaN}\n')
    with pytest.raises(DataFormatError, match="the object has no label"):
        _read(make_task, tmp_path, "x.jsonl", reader, **spec)


def test_codes_of_mentions_and_where_they_end(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    write(tmp_path / "data", "a", "gout today", "T1\tD 0 4\tgout\n#1\tICD T1\tM10\n")
    spec = {"type": "multi_label", "labels": "[M10, M11]"}
    (document,) = _read(make_task, tmp_path, "a.txt", "{format: brat_codes, note: ICD}", **spec)
    assert (document.labels, document.evidence) == (("M10",), (("M10", 4),))
    write(tmp_path / "data", "a", "gout today", "T1\tD 90 94\tgout\n#1\tICD T1\tM10\n")
    with pytest.raises(DataFormatError, match="leave the text"):
        _read(make_task, tmp_path, "a.txt", "{format: brat_codes, note: ICD}", **spec)


@pytest.mark.parametrize("match", ["(", "no group", "(a)(b)"])
def test_a_match_that_gives_no_single_group_is_refused(match: str) -> None:
    with pytest.raises(ValidationError, match=r"regular expression|groups"):
        BratOptions(format="brat", label_match=match)
