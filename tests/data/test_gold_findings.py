"""Gold that is dropped, cut, untrained or told apart by no eye: counted before any run, with its
cause.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.baselines.surface import dropped_gold, surface
from biobench.data.catalog import load_task
from biobench.data.checks import edges
from biobench.data.checks.findings import Finding, audit, audit_gold, looks_like
from biobench.data.describe import validate
from biobench.data.load import load_data
from biobench.data.scaffold import scaffold
from biobench.data.verify import verify
from biobench.errors import DataFormatError
from biobench.schema.document import Document, Span
from tests.helpers.drafts import brat, in_splits, rows, write
from tests.helpers.reading import Parsed

SPLITS = ("train", "validation", "test")


def findings_of(folder: Path, text: str = "") -> dict[str, Finding]:
    """What `verify` finds with this spec, else with the draft."""
    spec = write(folder.parent / "made.yaml", text or scaffold(folder, "made").text)
    return {finding.name: finding for finding in verify(load_task(spec), folder.parent).findings}


def test_mentions_that_decoding_drops_are_counted_with_their_cause(tmp_path):
    """The spec of a hand that took IOB1 for IOB2: 9 of 12 mentions are gone."""
    sentence = "gout\tI-X\nthen\tO\n\nflu\tB-X\nand\tO\nasthma\tI-X\nor\tO\nlupus\tI-X\n\n" * 3
    folder = in_splits(tmp_path / "tags", "{}.tsv", sentence)
    text = scaffold(folder, "made").text.replace("scheme: IOB1", "scheme: IOB2")
    text = text[: text.index("counts:")]
    found = findings_of(folder, text)
    dropped = found["dropped.train"]
    assert (dropped.number, found["dropped.test"].number) == (9, 9)
    assert "of 12 mentions in train begin with I-, which `decode: strict` drops" in dropped.what
    assert "is `reader.scheme` IOB1?" in dropped.what
    task = load_task(tmp_path / "made.yaml")
    checked = validate(task, tmp_path)
    assert checked.unexpressed == {name: {"X": 9} for name in SPLITS}
    assert "dropped.validation" in {finding.name for finding in checked.findings}
    (question,) = dropped_gold(load_data(task, tmp_path).train)
    assert (question.passed, "9 of 12 mentions" in question.words) == (False, True)


def labels_found(train: str, test: str, tmp_path: Path) -> dict[str, Finding]:
    for split, labels in (("train", train), ("dev", train), ("test", test)):
        size = 4 * len(labels.split())
        items = rows(size, text=f"a {split} text {{i}}", label=labels.split())
        write(tmp_path / "rows" / f"{split}.tsv", items)
    return findings_of(tmp_path / "rows")


def test_labels_that_training_lacks_are_found(tmp_path):
    found = labels_found("a b", "a b only_test", tmp_path)
    assert found["unsupported.train"].number == 1
    assert found["unsupported.train"].examples == ["only_test"]
    assert "alike" not in found
    assert found["unsupported.train"].alarms, "no fact of the corpus that a draft declares"


def test_labels_that_look_alike_are_told_apart(tmp_path):
    composed, decomposed = "b\xe9nin", "be\u0301nin"
    found = labels_found(f"{composed} x", f"{decomposed} x", tmp_path)
    assert found["alike"].number == 2
    assert found["alike"].examples == ["'be\\u0301nin'", "'b\\xe9nin'"]
    assert (found["unsupported.train"].number, found["unsupported.test"].number) == (1, 1)


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("stage I", "stage\xa0I"),
        ("stage I", "Stage i "),
        ("T-cell", "T\u2013cell"),
        ("CA", "\u0421\u0410"),
        ("benign", "benign\u200b"),
        ("\xb5g", "\u03bcg"),
    ],
)
def test_what_an_eye_takes_for_one_label(label, other):
    assert label != other
    assert looks_like(label) == looks_like(other)


@pytest.mark.parametrize("other", ["stage II", "stages", "stage 1"])
def test_what_an_eye_tells_apart(other):
    assert looks_like("stage I") != looks_like(other)


SENTENCE = "😀 Patient {} with lung cancer,\ntakes métformine daily."
SURFACES = (("lung cancer", "Disease"), ("métformine", "Drug"))


def notes(count: int = 40, sentence: str = SENTENCE) -> list[Document]:
    """Documents whose mentions are right."""
    documents = []
    for i in range(count):
        text = sentence.format(i)[i % 2 * 2 :]  # every other one without its first sign
        spans = tuple(
            Span(text.index(name), text.index(name) + len(name), label) for name, label in SURFACES
        )
        documents.append(Document(f"d{i}", f"d{i}", text, "train", spans=spans))
    return documents


def counted_otherwise(document: Document, way: str) -> Document:
    """The document with the offsets of a tool that counts otherwise."""
    text = document.text

    def offset(at: int) -> int:
        before = text[:at]
        return {
            "UTF-16 units": len(before.encode("utf-16-le")) // 2,
            "UTF-8 bytes": len(before.encode()),
            "a line end counts as two characters": at + before.count("\n"),
            "one character further": at - 1,
            "one character before": at + 1,
        }.get(way, at)

    step = {"ends are one short": -1, "ends are one too far": 1}.get(way, 0)
    spans = [Span(offset(s.start), offset(s.end) + step, s.label) for s in document.spans]
    return Document(document.id, document.group, text, "train", spans=tuple(spans))


@pytest.mark.parametrize(
    "way",
    [
        "UTF-16 units",
        "UTF-8 bytes",
        "ends are one short",
        "ends are one too far",
        "one character further",
        "one character before",
    ],
)
def test_the_cause_of_edges_inside_words_is_named_and_the_gate_says_no(way):
    right = notes()
    assert surface(right).passed
    assert edges.cause(right) is None
    wrong = [counted_otherwise(document, way) for document in right]
    assert way in (edges.cause(wrong) or "")
    question = surface(wrong)
    assert (question.passed, way in question.words) == (False, True)


def test_line_ends_of_two_characters_are_a_cause():
    lines = "Gout.\n" * 6 + "Patient {} with lung cancer,\ntakes métformine daily."
    way = "a line end counts as two characters"
    wrong = [counted_otherwise(document, way) for document in notes(sentence=lines)]
    assert way in (edges.cause(wrong) or "")


def test_some_documents_that_count_otherwise_are_enough():
    right = notes()
    wrong = [*right[:32], *(counted_otherwise(d, "UTF-16 units") for d in right[32:])]
    assert "UTF-16 units" in (edges.cause(wrong) or "")
    assert not surface(wrong).passed


def test_a_great_share_of_edges_that_no_model_predicts_fails_whatever_the_cause():
    blanks = []
    for i, document in enumerate(notes()):
        more = int(i % 5 == 0)
        spans = tuple(Span(start, end + more, label) for start, end, label in document.spans)
        blanks.append(replace(document, spans=spans))
    question = surface(blanks)
    assert not question.passed
    assert "begin or end inside a word or with white space" in question.words


def test_scripts_without_blanks_between_words_have_no_edges_inside_words():
    document = Document("d", "d", "患者は肺癌です", "train", spans=(Span(3, 5, "Disease"),))
    assert edges.unreachable(document) == ([], [])


def test_edges_are_a_finding_before_any_run(tmp_path):
    """Blanks at the end of a mention, as annotators mark them with the mouse."""
    for split in ("train", "dev", "test"):
        for i in range(8):
            surface = "Gout " if i % 4 == 0 else "Gout"
            mention = f"T1\tDisease 0 {len(surface)}\t{surface}\n"
            brat(tmp_path / "brat" / split, str(i), f"Gout and pain of {split}{i}.", mention)
    draft = scaffold(tmp_path / "brat", "made")
    (line,) = [line for line in draft.detected if "edges" in line]
    assert line.startswith("finding: edges: 6 of 24 mentions have edges that no model predicts")
    assert "0 begin or end inside a word, 6 with white space" in line
    found = findings_of(tmp_path / "brat", draft.text)
    assert (found["edges"].number, found["edges"].alarms) == (6, True)


@pytest.mark.parametrize(
    ("text", "offsets", "words"),
    [
        ("Gout.\r\nThen flu.", (12, 15), "CR LF counts as one"),
        ("Gout.\nThen flu.", (12, 15), "a line end counts as two characters"),
        ("Then flu.", (6, 9), "one character before (a byte order mark"),
        ("😀 flu.", (3, 6), "UTF-16 units"),
        ("é flu.", (3, 6), "UTF-8 bytes"),
        ("Then flu.", (5, 7), "ends are one short"),
        ("Then flu.", (0, 3), "is it the same text?"),
    ],
)
def test_the_cause_of_a_surface_that_is_not_there_is_tried(text, offsets, words, parsed: Parsed):
    if "\r" in text:
        offsets = (11, 14)
    content = {"a.txt": text, "a.ann": f"T1\tD {offsets[0]} {offsets[1]}\tflu\n"}
    with pytest.raises(DataFormatError) as caught:
        parsed("{format: brat}", "{all: a.txt}", content, labels="[D]")
    assert words in caught.value.hint


def test_a_pair_without_its_second_text_is_counted():
    document = Document("d", "d", "", "test", query="a text", labels=("2.5",))
    documents = {name: [document] for name in SPLITS}
    findings = audit(load_task("biosses").spec, documents, ("similarity",), {})
    found = {finding.name: finding.number for finding in findings}
    assert [found[f"empty.{name}"] for name in SPLITS] == [1, 1, 1]


def test_a_task_of_numbers_has_no_findings_on_labels():
    documents = {name: [Document(name, name, "a text", name, labels=("2.5",))] for name in SPLITS}
    assert audit_gold(load_task("biosses").spec, documents, ("similarity",), {}) == []


def test_offsets_past_the_end_of_a_text_are_not_called_ends_that_are_one_short() -> None:
    """The part that lies in the text is the same with either end."""
    assert edges.meant("fever and aspirin", [(10, 18)], "aspirin") == "ends are one too far"
    assert edges.meant("fever and aspirin", [(13, 20)], "irin") is None
