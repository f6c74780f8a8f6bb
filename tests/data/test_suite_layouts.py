"""Corpora of the suites in the layout that is stated of them, written by the test; and the suites' split rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.locate import choose
from biobench.data.readers.relations import Replacement, masked
from biobench.data.splits import assign_splits, shuffled_order
from biobench.errors import DataFormatError, SpecError
from biobench.schema.document import Document
from biobench.schema.source import SplitShuffled

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
        (1981, [231, 1627, 1503, 1182, 1282, 1347], [1691, 424, 1121], (0.7, 0.8), (1386, 198, 397)),
    ],
)
def test_three_shuffles_with_seed_4_give_the_known_orders(
    n: int, first: list[int], last: list[int], cuts: tuple[float, ...], sizes: tuple[int, ...]
) -> None:
    splits = SplitShuffled(seed=4, shuffles=3, cuts=cuts)
    order = shuffled_order(n, splits)
    assert (order[:6], order[-3:]) == (first, last)
    documents = [Document(str(i), str(i), "x", "" if len(cuts) == 2 else "train") for i in range(n)]
    documents += [] if len(cuts) == 2 else [Document("t", "t", "x", "test")]
    parts = assign_splits(documents, splits, None)
    assert [len(parts[name]) for name in ("train", "validation", "test")][: len(sizes)] == list(sizes)
    train = [int(d.id) for d in parts["train"]]
    assert train == sorted(order[: sizes[0]]), "parts keep the order of the file"


def test_shuffled_splits_say_which_files_they_need() -> None:
    with pytest.raises(DataFormatError, match=r"splits\.cuts has 2 shares and the files name train split"):
        assign_splits([Document("a", "a", "x", "train")], SplitShuffled(seed=4, shuffles=3, cuts=(0.7, 0.8)), None)


def ddi_folder(folder: Path, text: str = DDI) -> None:
    """Three files, one for each split, in a folder whose name holds blanks."""
    names = ("ddi_2013/DDICorpus/Train/DrugBank/One drug_ddi", "ddi_2013/DDICorpus/Train/MedLine/11",
             "ddi_2013/DDICorpus/Test/Test for DDI Extraction task/MedLine/12")  # fmt: skip
    content = {name: text.replace('id="p', f'id="{number}.p') for number, name in enumerate(names)}
    nothing = '<document id="d9"><sentence id="s" text="Nothing."/></document>'
    content["ddi_2013/DDICorpus/Test/Test for DDI Extraction task/DrugBank/x"] = nothing
    for name, xml in content.items():
        path = folder / f"{name}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(xml, encoding="utf-8")


def ddi_documents(folder: Path, *overrides: str) -> list[Document]:
    """The pairs as read, before they are split."""
    from biobench.data.readers import Request, get_reader

    task = load_task("ddi", overrides)
    place = choose(task, folder)
    options = task.options[place.source.id]
    return list(get_reader("ddi").read(Request(options, place.files, task.spec)))


def test_ddi_pairs_are_masked_by_the_declared_rule(tmp_path: Path) -> None:
    ddi_folder(tmp_path)
    texts = {d.id: (d.text, d.labels) for d in ddi_documents(tmp_path)}
    assert texts["0.p0"] == ("@DRUG$ and @DRUG$ or warfarin raise the risk.", ("effect",))
    assert texts["0.p1"] == ("Aspirin and @DRUG-DRUG$ or warfarin raise the risk.", ("false",))
    assert texts["0.p2"] == ("@DRUG$ and oral @DRUG$ or warfarin raise the risk.", ("int",)), "true without a type"
    assert {d.group for d in ddi_documents(tmp_path)} == {"One drug_ddi", "11", "12"}
    left = ddi_documents(tmp_path, "source.reader.untyped=null")
    assert "0.p2" not in {d.id for d in left}


def test_masks_do_not_depend_on_which_mention_comes_first() -> None:
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
def test_a_damaged_ddi_file_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    ddi_folder(tmp_path, DDI.replace(old, new))
    with pytest.raises(DataFormatError) as caught:
        ddi_documents(tmp_path)
    assert message in str(caught.value)
    assert "One drug_ddi.xml" in str(caught.value)


def test_deft_2020_opens_as_it_is_laid_out(tmp_path: Path) -> None:
    (tmp_path / "deft2020").mkdir()
    for name, size in (("train", 572), ("test", 530)):
        rows = []
        for i in range(-1, size):
            targets = "".join(f'<cible num="{k}">Choix {k} de {i}</cible>' for k in (1, 2, 3))
            rows.append(f'<ensemble id="{i}" cible="{1 + i % 3}"><source>Phrase {i}</source>{targets}</ensemble>')
        xml = f"<?xml version='1.0' encoding='utf-8'?><corpus>{''.join(rows)}</corpus>"
        (tmp_path / "deft2020" / f"t2-{name}.xml").write_text(xml, encoding="utf-8")
    data = load_data(load_task("deft2020_t2"), tmp_path)
    assert (len(data.train), len(data.validation), len(data.test)) == (460, 112, 530)
    first = data.test[1]
    assert [first.text[a:b] for a, b in first.pieces] == [f"({k}) Choix {k} de 1" for k in (1, 2, 3)]
    assert first.labels == ("2",)


def test_cuts_must_rise(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="not one or two rising shares"):
        load_task("mantra_emea", ["splits.cuts=[0.8, 0.7]"])


def test_mantra_reads_the_same_units_from_both_forms(tmp_path: Path) -> None:
    """Two concepts on one span, a mention in two pieces, one that shares a token with an earlier one, a broken note."""
    text = "douleur du genou, gauche et droit"
    mentions = [("0 16", "DISO"), ("0 16", "DISO"), ("11 16;18 24", "ANAT"), ("18 33", "PHYS"), ("25 27", "")]
    xml, parts = [], ("Mantra-GSC/French/EMEA_ec22-cui-best_man", "mantra_gsc")
    folder = tmp_path / "brat" / "mantra_gsc" / parts[0]
    folder.mkdir(parents=True)
    (tmp_path / "xml" / "mantra_gsc").mkdir(parents=True)
    for unit in range(10):
        rows, entities = [], []
        for n, (place, group) in enumerate(mentions):
            pieces = [tuple(map(int, piece.split())) for piece in place.split(";")]
            surface = " ".join(text[a:b] for a, b in pieces)
            rows.append(f"T{n}\tC000{n} {place}\t{surface}\n#{n}\tAnnotatorNotes T{n}\t['C000{n}', 'x', '{group}']\n")
            offsets, sizes = (";".join(str(v) for v in vs) for vs in zip(*[(a, b - a) for a, b in pieces], strict=True))
            entities += [f'<e offset="{offsets}" len="{sizes}" grp="{group}"/>'] if group else []
        (folder / f"u{unit}.txt").write_text(f"{text} {unit}\n", encoding="utf-8")
        (folder / f"u{unit}.ann").write_text("".join(rows), encoding="utf-8")
        xml.append(
            f'<document id="u{unit}"><unit id="u{unit}"><text>{text} {unit}</text>{"".join(entities)}</unit></document>'
        )
    whole = f"<Corpus>{''.join(xml)}</Corpus>"
    (tmp_path / "xml" / "mantra_gsc" / "EMEA_GSC_fr_man.xml").write_text(whole, encoding="utf-8")
    one, two = (load_data(load_task("mantra_emea"), tmp_path / form) for form in ("xml", "brat"))
    assert (one.source, two.source) == ("release", "brat")
    first, second = one.test[0], two.test[0]
    assert (first.text, first.tokens, first.tags, first.spans) == (
        second.text,
        second.tokens,
        second.tags,
        second.spans,
    )
    assert first.tags == ("B-DISO", "I-DISO", "I-DISO", "B-ANAT", "O", "O", "O")
    assert first.unexpressed == second.unexpressed == ("ANAT", "PHYS")
    assert second.id == f"{second.group}:1"
