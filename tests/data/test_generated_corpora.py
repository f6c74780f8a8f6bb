"""Corpora that are not at hand, in their native layout: reader, label rule and split on generated
files.
"""

from collections import Counter
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.readers.relations import Replacement, masked
from biobench.data.splits import assign_splits, shuffled_order
from biobench.data.verify import verify
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document, TaskData
from biobench.schema.source import SplitShuffled
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
from tests.helpers.reading import documents_of


def surfaces(d: Document) -> list[tuple[str, str]]:
    return [(d.text[s.start : s.end], s.label) for s in d.spans]


def load(name: str, data: Path) -> TaskData:
    return load_data(load_task(name), data)


def sizes(data: TaskData) -> list[int]:
    """Of train, validation and test."""
    return [len(documents) for documents in data.documents.values()]


def all_documents(data: TaskData) -> list[Document]:
    return [document for split in data.documents.values() for document in split]


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_gives_a_task_that_loads(name, tmp_path):
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


def test_frasimed_codes_and_rule(tmp_path):
    written = frasimed(tmp_path)
    data = load("cantemist", tmp_path)
    assert list(data.labels) == expected_top(written, 100)
    kept = {stem for stem, codes in written.items() if codes & set(data.labels)}
    labels = {d.id: set(d.labels) for d in all_documents(data)}
    assert labels == {stem: written[stem] & set(data.labels) for stem in kept}
    n = len(kept)
    assert sizes(data) == [int(0.8 * n), int(0.1 * n), n - int(0.8 * n) - int(0.1 * n)]


def test_fracco_table_keeps_cells_whole(tmp_path):
    written = fracco_release(tmp_path)
    data = load("fracco_30", tmp_path)
    assert data.source == "release"
    assert list(data.labels) == expected_top(written, 30)
    assert any(";" in label for label in data.labels)


def test_meddialog_texts_and_labels(tmp_path):
    kept = meddialog(tmp_path)
    data = load("meddialog_fr", tmp_path)
    assert len(data.labels) == 22
    assert sizes(data) == [kept - 20, 10, 10]
    texts = {d.id: d.text for d in data.train}
    question, answer = texts["hm1_1_q"].split("\n\n")
    assert question.startswith("Question: J'ai une question 1")
    assert answer.startswith("Réponse: ")
    assert "Réponse" not in texts["hm4_1_q"]


def test_diamed_drops_and_chapter_keys(tmp_path):
    written = diamed(tmp_path)
    data = load("diamed", tmp_path)
    assert {s: len(v) for s, v in data.documents.items()} == written
    assert data.gold_labels == ("A00-B99", "C00-D49", "I00-I99")
    assert not data.train[0].text.startswith(" ")


def test_phenotype_joins_in_the_tables_order(tmp_path):
    rows = phenotype(tmp_path)
    data = load("phenotype", tmp_path)
    documents = all_documents(data)
    assert len(documents) == rows
    assert sizes(data) == [56, 8, 16]
    assert {d.id for d in documents} == {f"{1000 + i}-{k}" for i in range(40) for k in (1, 2)}
    assert all("\n" in d.text for d in documents)
    groups = {
        s: {d.group for d in v} for s, v in load("phenotype_grouped", tmp_path).documents.items()
    }
    assert not groups["train"] & groups["test"]
    assert not groups["train"] & groups["validation"]


def test_cos_snippets_split_vector_and_lost_mentions(tmp_path):
    snippets = cos(tmp_path)
    assert len(snippets) == 1008
    data = load("cos", tmp_path)
    assert sizes(data) == [705, 151, 152]
    assert [d.text for d in data.test[:2]] == [snippets[480], snippets[285]]
    d = data.train[0]
    assert surfaces(d) == [("opacity", "Attr"), ("left lobe", "Loc"), ("larger", "Cos")]
    # `large` of `larger-sized` holds no whole token; a snippet whose number is a multiple of 50 has
    # it.
    wanted: dict[str, dict[str, int]] = {}
    for split, documents in data.documents.items():
        numbers = [int(document.text.split()[1].rstrip(":")) for document in documents]
        wanted[split] = {"Val": sum(number % 50 == 0 for number in numbers)}
    assert sum(lost["Val"] for lost in wanted.values()) > 15
    assert data.unexpressed == wanted
    assert {d.unexpressed for d in data.train} == {(), ("Val",)}


def test_the_release_of_jnlpba_with_repeated_abstracts(tmp_path):
    jnlpba_release(tmp_path)
    data = load("jnlpba", tmp_path)
    assert data.source == "release"
    ids = {s: [d.id for d in documents] for s, documents in data.documents.items()}
    assert ids["test"] == [
        *("test/21000001/1", "test/21000001/2", "test/21000002/1", "test/21000002/2"),
        *("test/21000001#2/1", "test/21000001#2/2", "test/90000014/1", "test/90000014/2"),
        *("test/21000003/1", "test/21000003/2"),
    ]
    assert [d.group for d in data.test[:6]] == ["21000001"] * 2 + ["21000002"] * 2 + [
        "21000001"
    ] * 2
    # The last 200 of 230 abstracts, in the order of the file and not of their ids.
    assert ids["train"][:4] == [
        "train/90000000/1",
        "train/90000000/2",
        "train/90000007/1",
        "train/90000007/2",
    ]
    assert sizes(data)[:2] == [60, 400]
    assert len({d.group for d in data.validation}) == 200
    assert not {d.group for d in data.train} & {d.group for d in data.validation}
    assert {d.group for d in data.train} & {d.group for d in data.test} == {"90000014"}
    assert data.unexpressed == {}
    found = {f.name: f.number for f in verify(load_task("jnlpba"), tmp_path).findings}
    assert found["groups.test-train"] == 1


def test_the_standoff_form_of_jnlpba(tmp_path):
    jnlpba_standoff(tmp_path)
    data = load("jnlpba", tmp_path)
    assert data.source == "standoff"
    groups = {
        s: " ".join(dict.fromkeys(d.group for d in documents))
        for s, documents in data.documents.items()
    }
    assert groups == {
        "train": "9001 9002 9003 9004",
        "validation": "9005 9006",
        "test": "9001 9007 9008",
    }
    assert data.test[0].id == "test/9001:1"
    wanted = [("IL-1", "protein"), ("T cells", "cell_type"), ("kinase 1", "DNA")]
    assert [mention for d in data.test[:2] for mention in surfaces(d)] == wanted
    assert data.unexpressed == {
        "train": {"protein": 1},
        "validation": {"protein": 1},
        "test": {"protein": 1},
    }


def test_deid_masks_split_vector_and_alignment(tmp_path):
    deid(tmp_path)
    data = load("deid", tmp_path)
    assert sizes(data) == [1703, 365, 366]
    note = {d.id.split("-")[1]: d for d in all_documents(data)}
    drawn = " ".join(d.id.split("-")[1] for d in data.test[:6])
    assert drawn == "1147 472 1814 1791 1015 375", "the vector of the sheet, from 0"
    assert surfaces(note["1"]) == [("Smith", "name")]
    assert note["1"].text == "Seen by Dr. Smith , stable. Plan: rest"
    assert note["2"].spans == ()
    assert surfaces(note["3"]) == [("Ward 7", "location"), ("12-3", "date")]
    # The blank between the two masks is found inside the first name: the value is cut there.
    assert note["4"].text == "call John Smith then rest"
    assert surfaces(note["4"]) == [("John", "name"), ("Smith", "name")]
    assert [s.label for n in "56" for s in note[n].spans] == ["phone_nb", "age"]
    joined = {d.id.split("-")[1]: d for d in all_documents(load("deid_joined", tmp_path))}
    assert surfaces(joined["4"]) == [("John Smith", "name")]


def test_deid_masks_side_by_side(tmp_path):
    deid(tmp_path, records=60)
    for name, old, new in (
        ("id.text", "call John Smith then", "call JohnSmith then"),
        ("id.res", "12**] [**", "12**][**"),
    ):
        path = tmp_path / "deid" / name
        path.write_text(path.read_text().replace(old, new))
    (reference,) = (d for d in all_documents(load("deid", tmp_path)) if d.id == "1-4")
    # As the reference aligns it: the first mask swallows the rest, which then stands again as plain
    # text.
    assert reference.text == "call JohnSmith then rest then rest"
    assert reference.text[slice(*reference.spans[0][:2])] == "JohnSmith then rest"
    (joined,) = (d for d in all_documents(load("deid_joined", tmp_path)) if d.id == "1-4")
    assert joined.text == "call JohnSmith then rest"


def test_chemprot_rows(tmp_path):
    rows = chemprot(tmp_path)
    data = load("chemprot", tmp_path)
    assert sum(sizes(data)) == rows
    assert data.train[0].group == "1000"
    assert '"acts"' in data.train[0].text
    assert data.gold_labels == ("CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9", "false")


DDI = """<?xml version="1.0" encoding="UTF-8"?>
<document id="DDI-Made.d1">
  <sentence id="DDI-Made.d1.s0" text="Aspirin and oral heparin or warfarin raise the risk.">
    <entity id="e0" charOffset="0-6" type="drug" text="Aspirin"/>
    <entity id="e1" charOffset="12-15;17-23" type="drug" text="oral heparin"/>
    <entity id="e2" charOffset="17-23" type="drug" text="heparin"/>
    <pair id="p0" e1="e0" e2="e1" ddi="true" type="effect"/>
    <pair id="p1" e1="e1" e2="e2" ddi="false"/>
    <pair id="p2" e1="e0" e2="e2" ddi="true"/>
  </sentence>
</document>
"""


@pytest.mark.parametrize(
    ("n", "first", "last", "cuts", "sizes"),
    [
        (100, [58, 30, 59, 13, 62, 27], [51, 83, 28], (0.7, 0.8), (70, 10, 20)),
        (600, [549, 218, 458, 398, 251, 546], [77, 264, 23], (0.8333,), (499, 101)),
        (572, [198, 123, 60, 291, 441, 374], [423, 11, 165], (0.8059,), (460, 112)),
        (
            1981,
            [231, 1627, 1503, 1182, 1282, 1347],
            [1691, 424, 1121],
            (0.7, 0.8),
            (1386, 198, 397),
        ),
    ],
)
def test_three_shuffles_with_seed_4_give_the_known_orders(n, first, last, cuts, sizes):
    splits = SplitShuffled(seed=4, shuffles=3, cuts=cuts)
    order = shuffled_order(n, splits)
    assert (order[:6], order[-3:]) == (first, last)
    of_all = len(cuts) == 2
    documents = [Document(str(i), str(i), "x", "" if of_all else "train") for i in range(n)]
    if not of_all:
        documents.append(Document("t", "t", "x", "test"))
    parts = assign_splits(documents, splits, None)
    assert tuple(map(len, parts.values()))[: len(sizes)] == sizes
    train = [int(d.id) for d in parts["train"]]
    assert train == sorted(order[: sizes[0]]), "parts keep the order of the file"


def test_shuffled_splits_say_which_files_they_need():
    with pytest.raises(
        DataFormatError, match=r"splits\.cuts has 2 shares and the files name train split"
    ):
        assign_splits(
            [Document("a", "a", "x", "train")],
            SplitShuffled(seed=4, shuffles=3, cuts=(0.7, 0.8)),
            None,
        )


def ddi_folder(folder: Path, text: str = DDI) -> None:
    """Three files, one for each split, in a folder whose name holds blanks."""
    names = (
        "ddi_2013/DDICorpus/Train/DrugBank/One drug_ddi",
        "ddi_2013/DDICorpus/Train/MedLine/11",
        "ddi_2013/DDICorpus/Test/Test for DDI Extraction task/MedLine/12",
    )
    content = {name: text.replace('id="p', f'id="{number}.p') for number, name in enumerate(names)}
    nothing = '<document id="d9"><sentence id="s" text="Nothing."/></document>'
    content["ddi_2013/DDICorpus/Test/Test for DDI Extraction task/DrugBank/x"] = nothing
    for name, xml in content.items():
        path = folder / f"{name}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(xml, encoding="utf-8")


def ddi_documents(folder: Path, *overrides: str) -> list[Document]:
    """The pairs as read, before they are split."""
    return documents_of(load_task("ddi", overrides), folder)


def test_ddi_pairs_are_masked_by_the_declared_rule(tmp_path):
    ddi_folder(tmp_path)
    pairs = ddi_documents(tmp_path)
    texts = {d.id: (d.text, *d.labels) for d in pairs}
    assert texts["0.p0"] == ("@DRUG$ and @DRUG$ or warfarin raise the risk.", "effect")
    assert texts["0.p1"] == ("Aspirin and @DRUG-DRUG$ or warfarin raise the risk.", "false")
    assert texts["0.p2"] == ("@DRUG$ and oral @DRUG$ or warfarin raise the risk.", "int"), (
        "true without a type"
    )
    assert {d.group for d in pairs} == {"One drug_ddi", "11", "12"}
    left = ddi_documents(tmp_path, "source.reader.untyped=null")
    assert "0.p2" not in {d.id for d in left}


def test_masks_do_not_depend_on_which_mention_comes_first():
    a, b = Replacement(0, 4, "@G$"), Replacement(10, 14, "@D$")
    text = "gene and  dise end"
    assert masked(text, a, b, "@B$") == masked(text, b, a, "@B$") == "@G$ and  @D$ end"
    assert masked(text, a, Replacement(2, 6, "@D$"), "@B$") == "@B$nd  dise end"
    assert masked(text, a, Replacement(4, 6, "@D$"), "@B$") == "@G$@D$nd  dise end"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('charOffset="0-6"', 'charOffset="0-60"', "'0-60' leaves the sentence"),
        ('charOffset="0-6"', 'charOffset="x"', "charOffset 'x' is not"),
        ('e1="e0"', 'e1="e7"', "pair '0.p0' names no entity"),
        ('ddi="false"', 'ddi="maybe"', "does not say whether it interacts"),
        ('type="effect"', 'type="affect"', "'affect' is not a label"),
        ("</document>", "", "not valid XML"),
    ],
)
def test_a_damaged_ddi_file_is_named(old, new, message, tmp_path):
    ddi_folder(tmp_path, DDI.replace(old, new))
    with pytest.raises(DataFormatError) as caught:
        ddi_documents(tmp_path)
    assert message in str(caught.value)
    assert "One drug_ddi.xml" in str(caught.value)


def test_deft_2020_opens_as_it_is_laid_out(tmp_path):
    (tmp_path / "deft2020").mkdir()
    for name, size in (("train", 572), ("test", 530)):
        rows = ""
        for i in range(-1, size):
            choices = "".join(f'<cible num="{k}">Choix {k} de {i}</cible>' for k in (1, 2, 3))
            row = f"<source>Phrase {i}</source>{choices}"
            rows += f'<ensemble id="{i}" cible="{1 + i % 3}">{row}</ensemble>'
        xml = f"<?xml version='1.0' encoding='utf-8'?><corpus>{rows}</corpus>"
        (tmp_path / "deft2020" / f"t2-{name}.xml").write_text(xml, encoding="utf-8")
    data = load("deft2020_t2", tmp_path)
    assert sizes(data) == [460, 112, 530]
    pair = data.test[1]
    choices = [pair.text[start:end] for start, end in pair.pieces]
    assert choices == ["(1) Choix 1 de 1", "(2) Choix 2 de 1", "(3) Choix 3 de 1"]
    assert pair.labels == ("2",)


def test_cuts_must_rise(tmp_path):
    with pytest.raises(SpecError, match="not one or two rising shares"):
        load_task("mantra_emea", ["splits.cuts=[0.8, 0.7]"])


UNIT = "douleur du genou, gauche et droit"
MANTRA_XML = f"""<document id="u@"><unit id="u@"><text>{UNIT} @</text>
<e offset="0" len="16" grp="DISO"/><e offset="0" len="16" grp="DISO"/>
<e offset="11;18" len="5;6" grp="ANAT"/><e offset="18" len="15" grp="PHYS"/></unit></document>
"""
MANTRA_BRAT = """T0	C0000 0 16	douleur du genou
#0	AnnotatorNotes T0	['C0000', 'x', 'DISO']
T1	C0001 0 16	douleur du genou
#1	AnnotatorNotes T1	['C0001', 'x', 'DISO']
T2	C0002 11 16;18 24	genou gauche
#2	AnnotatorNotes T2	['C0002', 'x', 'ANAT']
T3	C0003 18 33	gauche et droit
#3	AnnotatorNotes T3	['C0003', 'x', 'PHYS']
T4	C0004 25 27	et
#4	AnnotatorNotes T4	['C0004', 'x', '']
"""


def test_mantra_reads_the_same_units_from_both_forms(tmp_path):
    """Two concepts on one span, a mention in two pieces, one that shares a token with an earlier
    one, a broken note.
    """
    folder = tmp_path / "brat" / "mantra_gsc" / "Mantra-GSC/French/EMEA_ec22-cui-best_man"
    folder.mkdir(parents=True)
    (tmp_path / "xml" / "mantra_gsc").mkdir(parents=True)
    for unit in range(10):
        (folder / f"u{unit}.txt").write_text(f"{UNIT} {unit}\n", encoding="utf-8")
        (folder / f"u{unit}.ann").write_text(MANTRA_BRAT, encoding="utf-8")
    units = "".join(MANTRA_XML.replace("@", str(unit)) for unit in range(10))
    corpus = tmp_path / "xml" / "mantra_gsc" / "EMEA_GSC_fr_man.xml"
    corpus.write_text(f"<Corpus>{units}</Corpus>", encoding="utf-8")
    xml, brat = (load_data(load_task("mantra_emea"), tmp_path / form) for form in ("xml", "brat"))
    assert (xml.source, brat.source) == ("release", "brat")
    for document in (xml.test[0], brat.test[0]):
        assert document.text == xml.test[0].text
        assert document.tokens == xml.test[0].tokens
        assert document.tags == ("B-DISO", "I-DISO", "I-DISO", "B-ANAT", "O", "O", "O")
        assert document.unexpressed == ("ANAT", "PHYS")
    assert brat.test[0].id == f"{brat.test[0].group}:1"
