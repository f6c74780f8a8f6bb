"""Standoff formats: offsets, nesting, discontinuous mentions, units, tokens, and what is
refused."""

import pytest
from pydantic import ValidationError

from biobench.data.readers.brat import BratOptions
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from tests.helpers.reading import Parsed

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


def brat(
    parsed: Parsed, text: str, ann: str | None, options: str = "", **spec_fields: str
) -> list[Document]:
    """Of one text, `a`; its .ann is written anew, or not at all."""
    content: dict[str, str | bytes] = {"a.txt": text} | ({} if ann is None else {"a.ann": ann})
    spec = {"labels": "[ANAT, DISO, PHYS]"} | spec_fields
    return parsed(f"{{format: brat{options}}}", "{all: a.txt}", content, **spec)


def surfaces(d: Document) -> list[tuple[str, str]]:
    return [(d.text[s.start : s.end], s.label) for s in d.spans]


def test_whole_documents_nested_and_discontinuous(parsed):
    (d,) = brat(parsed, TEXT, ANN, ", discontinuous: hull")
    assert d.id == d.group == "a"
    assert d.text == TEXT
    knees = [("genou\r\ngauche", "ANAT"), ("genou\r\ngauche et droit", "ANAT")]
    assert surfaces(d) == [
        ("Douleur du genou\r\ngauche", "DISO"),
        *knees,
        ("fièvre", "DISO"),
        ("fièvre", "PHYS"),
    ]
    (dropped,) = brat(parsed, TEXT, ANN, ", discontinuous: drop")
    assert len(dropped.spans) == 4
    with pytest.raises(DataFormatError, match="discontinuous") as caught:
        brat(parsed, TEXT, ANN)
    assert caught.value.line == 3


def test_lines_as_units(parsed):
    found = brat(parsed, TEXT, ANN, ", segment: line, discontinuous: hull", unit="line")
    lines = [("a:1", "Douleur du genou"), ("a:2", "gauche et droit ."), ("a:4", "Pas de fièvre .")]
    assert [(d.id, d.text) for d in found] == lines
    assert [surfaces(d) for d in found] == [[], [], [("fièvre", "DISO"), ("fièvre", "PHYS")]]


def test_mentions_at_the_very_ends_of_a_unit_belong_to_it(parsed):
    """Lines `fièvre`, `la toux` (with blanks around), and a mention that crosses from one to the
    other.
    """
    text = "fièvre\n  la toux \n"
    ann = (
        "T9\tDISO 0 6\tfièvre\nT2\tDISO 9 16\tla toux\nT3\tANAT 12 16\ttoux\nT4\tPHYS 0 "
        "11\tfièvre la\n"
    )
    document, next_document = brat(parsed, text, ann, ", segment: line, group: unit", unit="line")
    assert [(document.group, *s) for s in document.spans] == [("a:1", 0, 6, "DISO")]
    assert [(next_document.group, *s) for s in next_document.spans] == [
        ("a:2", 0, 7, "DISO"),
        ("a:2", 3, 7, "ANAT"),
    ]
    # The same places as annotated units, in the order of the lines of the .ann.
    options = ", segment: annotation, segment_type: SECTION"
    fever, cough = brat(parsed, text, ann.replace("DISO", "SECTION"), options, unit="line")
    assert [(d.id, d.group, d.text) for d in (fever, cough)] == [
        ("a:T9", "a", "fièvre"),
        ("a:T2", "a", "la toux"),
    ]
    assert (surfaces(fever), surfaces(cough)) == ([], [("toux", "ANAT")])
    # The mention that a unit's border cuts is counted where it begins.
    assert (fever.unexpressed, cough.unexpressed) == (("PHYS",), ())
    assert (document.unexpressed, next_document.unexpressed) == (("PHYS",), ())
    lines = ann.replace("DISO", "SECTION").splitlines(keepends=True)
    assert [d.id for d in brat(parsed, text, "".join(reversed(lines)), options, unit="line")] == [
        "a:T2",
        "a:T9",
    ]


def test_concepts_travel_with_their_mentions(parsed):
    """Notes and normalisations that hold identifiers alone name concepts, at the mention's place in
    its unit; remarks, and -1 for none, do not. Dropped mentions have no concept.
    """
    notes = (
        "#2\tAnnotatorNotes T4\tC0015967 C0424755\n#3\tAnnotatorNotes T5\tsee T4\n"
        "N1\tReference T1 UMLS:C0030193\tpain\n#4\tAnnotatorNotes T2\t-1\n"
    )
    ann = ANN.replace("#1\tAnnotatorNotes T4\tC0015967\n", notes)
    (complete,) = brat(parsed, TEXT, ann, ", discontinuous: hull")
    fever = [(44, 50, "C0015967"), (44, 50, "C0424755")]
    assert sorted(complete.concepts) == [(0, 24, "UMLS:C0030193"), *fever]
    *_, line = brat(parsed, TEXT, ann, ", segment: line, discontinuous: hull", unit="line")
    assert line.concepts == ((7, 13, "C0015967"), (7, 13, "C0424755"))
    unmapped = ", discontinuous: hull, types: {DISO: null}"
    assert brat(parsed, TEXT, ann, unmapped)[0].concepts == ()
    composite = PUBTATOR.replace("D2\tpart", "D2|OMIM:3\tpart").replace(
        "Modifier\tD1", "Modifier\t-1"
    )
    assert pubtator(parsed, composite)[0].concepts == ((27, 35, "D2"), (27, 35, "OMIM:3"))
    _, document, next_document = projected(parsed, IOB, "ids")
    assert (document.concepts, next_document.concepts) == (((0, 16, "D1"),), ((2, 11, "D2"),))


def test_types_are_mapped_dropped_or_refused(parsed):
    text, ann = "une fièvre", "T1\tSIGN 4 10\tfièvre\n"
    with pytest.raises(DataFormatError, match="'SIGN' is not a label"):
        brat(parsed, text, ann)
    assert surfaces(brat(parsed, text, ann, ", types: {SIGN: DISO}")[0]) == [("fièvre", "DISO")]
    for dropped in ("types: {SIGN: null}", "other_types: drop"):
        assert brat(parsed, text, ann, f", {dropped}")[0].spans == ()


@pytest.mark.parametrize(
    ("ann", "words"),
    [
        ("T1\tDISO 4 10\tfievre\n", "are not 'fievre'"),
        ("T1\tDISO 4 99\tfièvre\n", "leave the text"),
        ("T1\tDISO four ten\tfièvre\n", "not a text-bound line"),
        ("T1 DISO 4 10 fièvre\n", "not a text-bound line"),
        ("T1\tDISO 4 10\tfièvre\nT1\tDISO 4 10\tfièvre\n", "occurs twice"),
        ("?\tDISO 4 10\tfièvre\n", "not an annotation line"),
        (None, "no .ann file"),
    ],
)
def test_damaged_annotations_are_refused(ann, words, parsed):
    with pytest.raises(DataFormatError, match=words) as caught:
        brat(parsed, "une fièvre", ann)
    assert caught.value.line is not None or ann is None


def test_tokens_and_overlap_policies(parsed):
    text = "drinks alcohol, daily now"
    ann = (
        "T1\tDISO 0 21\tdrinks alcohol, daily\nT2\tANAT 7 14\talcohol\nT3\tPHYS 16 25\tdaily now\n"
    )
    spec = {"type": "token_ner"}
    (last_wins,) = brat(
        parsed, text, ann, ", tokens: whitespace, overlap: last, decode: lenient", **spec
    )
    assert last_wins.tags == ("B-DISO", "I-DISO", "B-PHYS", "I-PHYS")
    assert last_wins.unexpressed == ("ANAT",)  # `alcohol` is no whole token beside its comma
    (words,) = brat(parsed, text, ann, ", tokens: words, overlap: last, decode: lenient", **spec)
    assert words.tags == ("B-DISO", "B-ANAT", "I-DISO", "B-PHYS", "I-PHYS")
    assert surfaces(words) == [
        ("drinks", "DISO"),
        ("alcohol", "ANAT"),
        (",", "DISO"),
        ("daily now", "PHYS"),
    ]
    (longest,) = brat(parsed, text, ann, ", tokens: words, overlap: longest", **spec)
    assert surfaces(longest) == [("drinks alcohol, daily", "DISO")]
    assert (words.unexpressed, longest.unexpressed) == ((), ("ANAT", "PHYS"))
    with pytest.raises(DataFormatError, match="overlaps"):
        brat(parsed, text, ann, ", tokens: words", **spec)


def test_segment_type_goes_with_annotation_segments(parsed):
    with pytest.raises(SpecError, match="segment_type"):
        brat(parsed, "", "", ", segment: annotation")


PUBTATOR = (
    "\n101|t|Copper toxicosis in dogs\n101|a|A disorder of copper.\n"
    "101\t0\t16\tCopper toxicosis\tModifier\tD1\n101\t27\t35\tdisorder  "
    "\tDiseaseClass\tD2\tpart|whole\n"
    "101\tCID\tD1\tD2\n\n102|t|Nothing\n102|a|\n\n"
)


def pubtator(parsed: Parsed, text: str, options: str = "") -> list[Document]:
    labels = "[Modifier, DiseaseClass]"
    return parsed(f"{{format: pubtator{options}}}", "{all: x.txt}", {"x.txt": text}, labels=labels)


def test_pubtator_quirks(parsed):
    document, next_document = pubtator(parsed, PUBTATOR)
    assert surfaces(document) == [("Copper toxicosis", "Modifier"), ("disorder", "DiseaseClass")]
    assert (next_document.id, next_document.text, next_document.spans) == ("102", "Nothing ", ())
    twice = pubtator(parsed, PUBTATOR + PUBTATOR)
    assert [d.id for d in twice] == ["101", "102"]
    remarks = [remark for document in twice for remark in document.remarks]
    assert [remark.finding for remark in remarks] == ["repeated", "repeated"]
    assert remarks[0].about.startswith("101, ")
    merged = pubtator(parsed, PUBTATOR, ", types: {DiseaseClass: Modifier}")
    assert {s.label for s in merged[0].spans} == {"Modifier"}


def test_relation_rows_of_pubtator_may_have_a_remark(parsed):
    """BioRED's rows; concepts may be numbers. A mention row with a wrong start is no relation."""
    rows = PUBTATOR.replace("D1\n", "D1,3175\n").replace("D1\tD2\n", "D1\tD2\tNovel\n")
    relation = "101\tAssociation\t3175\tD2\tNo\n\n102"
    document, _ = pubtator(parsed, rows.replace("\n102", relation, 1))
    assert len(document.spans) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Copper toxicosis\tM", "Copper toxicity\tM", "are not 'Copper toxicity'"),
        ("101|a|", "101|b|", "must begin with"),
        ("101\t0\t16", "101\tzero\t16", "not a mention row"),
        ("101\tCID\tD1\tD2", "101\tzero\t16\tCopper toxicosis\tModifier", "not a mention row"),
        ("102|", "101|", "occurs twice with different"),
        ("101\t0", "999\t0", "not a row of this document"),
    ],
)
def test_damaged_pubtator(old, new, words, parsed):
    with pytest.raises(DataFormatError, match=words) as caught:
        pubtator(parsed, PUBTATOR.replace(old, new))
    assert caught.value.line is not None


def projected(parsed: Parsed, iob: str, take: str) -> list[Document]:
    texts, content = PUBTATOR.replace("Nothing", "Nothing here"), dict[str, str]()
    for split in ("train", "devel", "test"):
        content |= {f"{split}.tsv": iob, f"{split}.txt": texts}
    files = "{{train: train.{0}, validation: devel.{0}, test: test.{0}}}"
    source = (
        f"{files.format('tsv')}\n  original:\n    folder: data\n    files: {files.format('txt')}"
    )
    labels = "[Modifier, DiseaseClass]" if take == "ids_and_types" else "[Disease]"
    reader = f"{{format: projected, original: pubtator, take: {take}}}"
    spec = {"type": "token_ner", "splits": "official"}
    return [d for d in parsed(reader, source, content, labels=labels, **spec) if d.split == "train"]


IOB = (
    "Nothing\tO\nhere\tO\n\nCopper\tB-Disease\ntoxicosis\tI-Disease\nin\tO\ndogs\tO\n\n"
    "A\tO\ndis\tB-Disease\norder\tI-Disease\nof\tO\ncopper\tO\n.\tO\n"
)


def test_projection_gives_ids_and_types(parsed):
    found = projected(parsed, IOB, "ids_and_types")
    assert [(d.id, d.group) for d in found] == [
        ("102/1", "102"),
        ("101/1", "101"),
        ("101/2", "101"),
    ]
    assert found[1].tags == ("B-Modifier", "I-Modifier", "O", "O")
    assert surfaces(found[2]) == [("dis order", "DiseaseClass")]
    ids = projected(parsed, IOB, "ids")
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
def test_projection_refuses_what_does_not_agree(old, new, words, parsed):
    with pytest.raises(DataFormatError, match=words):
        projected(parsed, IOB.replace(old, new), "ids_and_types")


def test_xmi_offsets_are_utf16(parsed):
    xml = (
        '<xmi:XMI xmlns:xmi="http://x" xmlns:cas="http://c" xmlns:custom="http://u" '
        'xmlns:t="http://t">'
        '<cas:Sofa sofaString="\U0001f600 toux.&#10;Rien."/>'
        '<t:Sentence begin="9" end="14"/><t:Sentence begin="0" end="8"/>'
        '<custom:CLINENTITY begin="3" end="7"/><custom:EVENT begin="3" end="7"/></xmi:XMI>'
    )
    reader, files = "{format: xmi, types: {CLINENTITY: Disease}}", "{all: FR1.xml}"
    (d,) = parsed(reader, files, {"FR1.xml": xml}, labels="[Disease]")
    assert surfaces(d) == [("toux", "Disease")]
    sentences = parsed(reader.replace("}}", "}, sentences: true}"), files, labels="[Disease]")
    assert [(s.id, s.text, surfaces(s)) for s in sentences] == [
        ("FR1/1", "Rien.", []),
        ("FR1/2", "\U0001f600 toux.", [("toux", "Disease")]),
    ], "in the order of the elements"


def test_codes_of_mentions_and_where_they_end(parsed):
    reader, files = "{format: brat_codes, note: ICD}", "{all: a.b.txt}"
    spec = {"type": "multi_label", "labels": "[M10, M11]"}
    ann = "T1\tD 0 4\tgout\n#1\tICD T1\tM10\n"
    (document,) = parsed(reader, files, {"a.b.txt": "gout today", "a.b.ann": ann}, **spec)
    assert (document.id, document.labels, document.evidence) == ("a.b", ("M10",), (("M10", 4),))
    with pytest.raises(DataFormatError, match="leave the text"):
        parsed(reader, files, {"a.b.ann": ann.replace("0 4", "90 94")}, **spec)


@pytest.mark.parametrize("match", ["(", "no group", "(a)(b)"])
def test_a_match_that_gives_no_single_group_is_refused(match):
    with pytest.raises(ValidationError, match=r"regular expression|groups"):
        BratOptions(format="brat", label_match=match)
