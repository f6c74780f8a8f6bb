"""Corpora that are not at hand, in their native layout: reader, label rule and split on generated files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.verify import verify
from biobench.schema.document import Document, TaskData
from tests.helpers.generators import (
    GENERATORS,
    chemprot,
    cos,
    deid,
    diamed,
    fracco_release,
    frasimed,
    jnlpba_release,
    jnlpba_standoff,
    meddialog,
    phenotype,
)


def surfaces(d: Document) -> list[tuple[str, str]]:
    return [(d.text[s.start : s.end], s.label) for s in d.spans]


def load(name: str, data: Path) -> TaskData:
    return load_data(load_task(name), data)


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_gives_a_task_that_loads(name: str, tmp_path: Path) -> None:
    GENERATORS[name](tmp_path)
    data = load(name, tmp_path)
    assert data.train
    assert data.validation
    assert data.test
    assert data.gold_labels


def expected_top(written: dict[str, set[str]], k: int) -> list[str]:
    """The label rule written once more, by hand: frequency, then first document, then code."""
    first: dict[str, tuple[str, str]] = {}
    frequency: Counter[str] = Counter()
    for stem in sorted(written):
        for code in sorted(written[stem]):
            frequency[code] += 1
            first.setdefault(code, (stem, code))
    return sorted(sorted(frequency, key=lambda c: (-frequency[c], first[c]))[:k])


def test_frasimed_codes_and_rule(tmp_path: Path) -> None:
    written = frasimed(tmp_path)
    data = load("cantemist", tmp_path)
    assert list(data.labels) == expected_top(written, 100)
    kept = {stem for stem, codes in written.items() if codes & set(data.labels)}
    documents = [d for split in data.documents.values() for d in split]
    assert {d.id for d in documents} == kept
    for d in documents:
        assert set(d.labels) == written[d.id] & set(data.labels)
    n, sizes = len(kept), [len(data.documents[s]) for s in ("train", "validation", "test")]
    assert sizes == [int(0.8 * n), int(0.1 * n), n - int(0.8 * n) - int(0.1 * n)]


def test_fracco_table_keeps_cells_whole(tmp_path: Path) -> None:
    written = fracco_release(tmp_path)
    data = load("fracco_30", tmp_path)
    assert data.source == "release"
    assert list(data.labels) == expected_top(written, 30)
    assert any(";" in label for label in data.labels)


def test_meddialog_texts_and_labels(tmp_path: Path) -> None:
    kept = meddialog(tmp_path)
    data = load("meddialog_fr", tmp_path)
    assert len(data.labels) == 22
    assert sum(len(v) for v in data.documents.values()) == kept
    with_answer = next(d for d in data.train if d.id == "hm1_1_q")
    question, answer = with_answer.text.split("\n\n")
    assert question.startswith("Question: J'ai une question 1")
    assert answer.startswith("Réponse: ")
    alone = next(d for d in data.train if d.id == "hm4_1_q")
    assert "Réponse" not in alone.text
    assert [len(data.documents[s]) for s in ("validation", "test")] == [10, 10]


def test_diamed_drops_and_chapter_keys(tmp_path: Path) -> None:
    sizes = diamed(tmp_path)
    data = load("diamed", tmp_path)
    assert {s: len(v) for s, v in data.documents.items()} == sizes
    assert data.gold_labels == ("A00-B99", "C00-D49", "I00-I99")
    assert not data.train[0].text.startswith(" ")


def test_phenotype_joins_in_the_tables_order(tmp_path: Path) -> None:
    rows = phenotype(tmp_path)
    data = load("phenotype", tmp_path)
    documents = [d for split in data.documents.values() for d in split]
    assert len(documents) == rows
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [56, 8, 16]
    assert {d.id for d in documents} == {f"{1000 + i}-{k}" for i in range(40) for k in (1, 2)}
    assert all("\n" in d.text for d in documents)
    groups = {s: {d.group for d in v} for s, v in load("phenotype_grouped", tmp_path).documents.items()}
    assert not groups["train"] & groups["test"]
    assert not groups["train"] & groups["validation"]


def test_cos_snippets_split_vector_and_lost_mentions(tmp_path: Path) -> None:
    snippets = cos(tmp_path)
    assert len(snippets) == 1008
    data = load("cos", tmp_path)
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [705, 151, 152]
    assert [d.text for d in data.test[:2]] == [snippets[480], snippets[285]]
    d = data.train[0]
    assert surfaces(d) == [("opacity", "Attr"), ("left lobe", "Loc"), ("larger", "Cos")]
    # `large` of `larger-sized` holds no whole token; a snippet whose number is a multiple of 50 has it.
    numbers = {s: [int(d.text.split()[1].rstrip(":")) for d in own] for s, own in data.documents.items()}
    wanted = {s: {"Val": sum(n % 50 == 0 for n in own)} for s, own in numbers.items()}
    assert sum(own["Val"] for own in wanted.values()) > 15
    assert data.unexpressed == wanted
    assert {d.unexpressed for d in data.train} == {(), ("Val",)}


def test_the_release_of_jnlpba_with_repeated_abstracts(tmp_path: Path) -> None:
    jnlpba_release(tmp_path)
    data = load("jnlpba", tmp_path)
    assert data.source == "release"
    ids = {s: [d.id for d in own] for s, own in data.documents.items()}
    assert ids["test"] == [
        *("test/21000001/1", "test/21000001/2", "test/21000002/1", "test/21000002/2"),
        *("test/21000001#2/1", "test/21000001#2/2", "test/90000014/1", "test/90000014/2"),
        *("test/21000003/1", "test/21000003/2"),
    ]
    assert [d.group for d in data.test[:6]] == ["21000001"] * 2 + ["21000002"] * 2 + ["21000001"] * 2
    # The last 200 of 230 abstracts, in the order of the file and not of their ids.
    assert ids["train"][:4] == ["train/90000000/1", "train/90000000/2", "train/90000007/1", "train/90000007/2"]
    assert [len(data.documents[s]) for s in ("train", "validation")] == [60, 400]
    assert len({d.group for d in data.validation}) == 200
    assert not {d.group for d in data.train} & {d.group for d in data.validation}
    assert {d.group for d in data.train} & {d.group for d in data.test} == {"90000014"}
    assert data.unexpressed == {}
    found = {f.name: f.number for f in verify(load_task("jnlpba"), tmp_path).findings}
    assert found["groups.test-train"] == 1


def test_the_standoff_form_of_jnlpba(tmp_path: Path) -> None:
    jnlpba_standoff(tmp_path)
    data = load("jnlpba", tmp_path)
    assert data.source == "standoff"
    groups = {s: " ".join(dict.fromkeys(d.group for d in own)) for s, own in data.documents.items()}
    assert groups == {"train": "9001 9002 9003 9004", "validation": "9005 9006", "test": "9001 9007 9008"}
    assert data.test[0].id == "test/9001:1"
    wanted = [("IL-1", "protein"), ("T cells", "cell_type"), ("kinase 1", "DNA")]
    assert [mention for d in data.test[:2] for mention in surfaces(d)] == wanted
    assert data.unexpressed == {"train": {"protein": 1}, "validation": {"protein": 1}, "test": {"protein": 1}}


def test_deid_masks_split_vector_and_alignment(tmp_path: Path) -> None:
    deid(tmp_path)
    data = load("deid", tmp_path)
    assert [len(data.documents[s]) for s in ("train", "validation", "test")] == [1703, 365, 366]
    note = {d.id.split("-")[1]: d for split in data.documents.values() for d in split}
    assert [int(d.id.split("-")[1]) - 1 for d in data.test[:6]] == [1146, 471, 1813, 1790, 1014, 374]
    assert surfaces(note["1"]) == [("Smith", "name")]
    assert note["1"].text == "Seen by Dr. Smith , stable. Plan: rest"
    assert note["2"].spans == ()
    assert surfaces(note["3"]) == [("Ward 7", "location"), ("12-3", "date")]
    # The blank between the two masks is found inside the first name: the value is cut there.
    assert note["4"].text == "call John Smith then rest"
    assert surfaces(note["4"]) == [("John", "name"), ("Smith", "name")]
    assert [s.label for n in "56" for s in note[n].spans] == ["phone_nb", "age"]
    joined = load("deid_joined", tmp_path)
    other = {d.id.split("-")[1]: d for split in joined.documents.values() for d in split}
    assert surfaces(other["4"]) == [("John Smith", "name")]


def test_deid_masks_side_by_side(tmp_path: Path) -> None:
    deid(tmp_path, records=60)
    for name, old, new in (
        ("id.text", "call John Smith then", "call JohnSmith then"),
        ("id.res", "12**] [**", "12**][**"),
    ):
        path = tmp_path / "deid" / name
        path.write_text(path.read_text().replace(old, new))
    reference = {d.id: d for split in load("deid", tmp_path).documents.values() for d in split}["1-4"]
    # As the reference aligns it: the first mask swallows the rest, which then stands again as plain text.
    assert reference.text == "call JohnSmith then rest then rest"
    assert reference.text[slice(*reference.spans[0][:2])] == "JohnSmith then rest"
    joined = {d.id: d for split in load("deid_joined", tmp_path).documents.values() for d in split}["1-4"]
    assert joined.text == "call JohnSmith then rest"


def test_chemprot_rows(tmp_path: Path) -> None:
    rows = chemprot(tmp_path)
    data = load("chemprot", tmp_path)
    assert sum(len(v) for v in data.documents.values()) == rows
    assert data.train[0].group == "1000"
    assert '"acts"' in data.train[0].text
    assert data.gold_labels == ("CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9", "false")
