"""Scaffolds of BRAT folders: sub-folders, labels in notes and normalisations, concept ids, counts and findings."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.data.readers.brat import BratOptions
from biobench.data.scaffold import scaffold
from biobench.data.sniff import looks_like_ids
from biobench.data.verify import verify

PARTS = ("EMEA_ec22-cui-best_man", "Medline_EN_FR_ec22-cui-best_man", "Patents_ec22-cui-best_man")
TEXT = "maladie du coeur {}\n"


def mantra(folder: Path, note: str = "#", broken: bool = False) -> Path:
    """Three sub-collections as Mantra GSC has them: the type is the concept, the group is the note's last word; files
    of the same names in each, annotations not in the order of the text."""
    number = 0
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        for i in range(8):
            number += 1
            lines = []
            for own, (start, end, words, group) in enumerate([(11, 16, "coeur", "ANAT"), (0, 7, "maladie", "DISO")]):
                concept = f"C{1000000 + 2 * number + own}"
                lines.append(f"T{own}\t{concept} {start} {end}\t{words}")
                if broken and number == 1 and own == 0:
                    lines.append(f"#{own}\tAnnotatorNotes T{own}\t")
                elif note == "#":
                    lines.append(f"#{own}\tAnnotatorNotes T{own}\t['{concept}', 'Name, of it', 'Some Type', '{group}']")
                else:
                    lines.append(f"N{own}\tReference T{own} UMLS:{group}\t{words}")
            (folder / part / f"d{i}.txt").write_text(TEXT.format(number), encoding="utf-8")
            (folder / part / f"d{i}.ann").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def loaded(text: str, folder: Path) -> LoadedTask:
    (folder / "made.yaml").write_text(text, encoding="utf-8")
    return load_task(folder / "made.yaml")


NOTES = (
    "label_note: AnnotatorNotes, label_match: '(\\w+)\\W*$'",
    "label_note: Reference, label_match: '^[^\\s:]+:(\\w+)$'",
)


@pytest.mark.parametrize(("note", "options"), [("#", NOTES[0]), ("N", NOTES[1])])
def test_sub_collections_with_the_group_beside_the_concept(note: str, options: str, tmp_path: Path) -> None:
    text = scaffold(mantra(tmp_path / "French", note), "made")
    assert 'files: {all: "*/*.txt"}' in text
    kind = options.split(":")[1].split(",")[0].strip()
    assert "# check: 48 types that look like concept ids: map them by reader.types, or take the label from" in text
    assert f"a note ({kind}) by reader.label_note" in text
    assert "ids: split_and_name" in text
    lines = ["labels: [ANAT, DISO]" if line.startswith("labels:") else line for line in text.splitlines()]
    task = loaded("\n".join(lines).replace("{format: brat", f"{{format: brat, {options}"), tmp_path)
    data = load_data(task, tmp_path)
    documents = [*data.train, *data.validation, *data.test]
    assert len({d.id for d in documents}) == 24
    assert {d.id.split("/")[0] for d in documents} == set(PARTS)
    assert {(d.text[s.start : s.end], s.label) for d in documents for s in d.spans} == {
        ("maladie", "DISO"),
        ("coeur", "ANAT"),
    }


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        ({"C0018787", "D003920"}, True),
        ({"UMLS:C0018787", "8500/3"}, True),
        ({"DISO", "CHEM", "T1"}, False),
        ({"B1", "Grade2", "HbA1c"}, False),
        ({f"kind{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120)}, True),
        (set[str](), False),
    ],
)
def test_what_looks_like_concept_ids(labels: set[str], ids: bool) -> None:
    assert looks_like_ids(labels) is ids


@pytest.mark.parametrize("name", ["d0.txt", "d0.ann"])
def test_one_file_of_a_folder_means_the_folder(name: str, tmp_path: Path) -> None:
    folder = mantra(tmp_path / "French") / PARTS[0]
    assert scaffold(folder / name, "made") == scaffold(folder, "made")
    for split in ("train", "dev", "test"):
        (tmp_path / "three" / split).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "three" / split / f"{split}{i}.txt").write_text("gout here\n", encoding="utf-8")
            (tmp_path / "three" / split / f"{split}{i}.ann").write_text("T1\tD 0 4\tgout\n", encoding="utf-8")
    text = scaffold(tmp_path / "three" / "train" / "train1.ann", "made")
    assert 'files: {train: "train/*.txt", validation: "dev/*.txt", test: "test/*.txt"}' in text
    assert "folder: three" in text


def test_counts_and_findings_are_those_of_the_data(tmp_path: Path) -> None:
    folder = mantra(tmp_path / "French")
    for i in range(8):
        (folder / PARTS[1] / f"d{i}.txt").write_text(TEXT.format("same"), encoding="utf-8")
    text = scaffold(folder, "made")
    assert "counts:" in text
    assert "twice.train" in text
    task = loaded(text, tmp_path)
    assert sum(c["mentions"] for c in task.spec.counts.values()) == 48
    assert verify(task, tmp_path).clean
    (folder / PARTS[0] / "d0.ann").write_text("T1\tC1000002 0 7\tmaladie\n", encoding="utf-8")
    assert not verify(task, tmp_path).clean


def test_a_spec_whose_data_cannot_be_read_says_so_instead_of_counts(tmp_path: Path) -> None:
    folder = mantra(tmp_path / "French")
    ann = folder / PARTS[0] / "d3.ann"
    ann.write_text(ann.read_text("utf-8").replace(" 0 7\t", " 1 8\t"), encoding="utf-8")
    text = scaffold(folder, "made")
    assert "counts and findings: not made" in text
    assert "d3.ann:3: characters 1 8 are not" in text
    loaded(text, tmp_path)


@pytest.mark.parametrize("match", ["(", "no group", "(a)(b)"])
def test_a_match_that_gives_no_single_group_is_refused(match: str) -> None:
    with pytest.raises(ValidationError, match=r"regular expression|groups"):
        BratOptions(format="brat", label_match=match)
