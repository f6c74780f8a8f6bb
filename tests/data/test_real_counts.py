"""Every count of the specs holds on the real files, and the counts of the release notes beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from biobench.data.catalog import list_tasks, load_task
from biobench.data.load import load_data
from biobench.data.readers import Request
from biobench.data.readers.base import Place
from biobench.data.readers.brat import parse_brat
from biobench.data.validate import find, validate_task
from biobench.errors import DataFormatError
from biobench.schema.document import TaskData

pytestmark = pytest.mark.real

AT_HAND = [
    "ncbi_disease",
    "ncbi_disease_single",
    "anatem",
    "anatem_single",
    "bc5cdr",
    "hoc",
    "gad",
    "chemprot_rebuilt",
    "social_history",
    "social_history_clean",
    "fracco_30",
    "fracco_100",
    "quaero_emea",
    "quaero_medline",
]


@pytest.mark.parametrize("name", AT_HAND)
def test_declared_counts_hold(name: str, data_dir: Path) -> None:
    found = validate_task(load_task(name), data_dir)
    assert found.state == "ready"
    assert found.problems == []


def test_every_task_with_data_declares_counts(data_dir: Path) -> None:
    for task in list_tasks():
        if find(task, data_dir) is not None:
            assert set(task.spec.counts) == {"train", "validation", "test"}, task.id


def test_surfaces_and_tags_agree_on_real_tokens(data_dir: Path) -> None:
    data = load_data(load_task("bc5cdr"), data_dir)
    for d in data.test:
        assert len(d.tokens) == len(d.tags)
        for (a, b), (c, _) in zip(d.tokens, d.tokens[1:], strict=False):
            assert d.text[b:c] == " "
            assert d.text[a:b].strip()
        for span in d.spans:
            assert any(span.start == a for a, _ in d.tokens)
            assert any(span.end == b for _, b in d.tokens)


def test_the_two_releases_of_ncbi_disease_agree(data_dir: Path) -> None:
    task = load_task("ncbi_disease_single")
    mtl = load_data(task, data_dir)
    only = load_task("ncbi_disease_single", ["sources.0.folder=not_there"])
    scibert = load_data(only, data_dir)
    assert scibert.source == "scibert"
    assert [len(scibert.documents[s]) for s in scibert.documents] == [len(mtl.documents[s]) for s in mtl.documents]
    assert sum(len(d.spans) for d in scibert.test) == sum(len(d.spans) for d in mtl.test) == 960


def test_types_without_gold_in_the_social_history_test_split_are_those_that_the_note_names(data_dir: Path) -> None:
    """As scored (a stray I- opens an entity) seven are absent; without their B- tag nine."""
    task = load_task("social_history")
    data = load_data(task, data_dir)
    scored = {span.label for d in data.test for span in d.spans}
    begun = {tag[2:] for d in data.test for tag in d.tags or () if tag.startswith("B-")}
    absent = [label for label in data.labels if label not in scored]
    assert (len(absent), len(set(data.labels) - begun), len(data.labels)) == (7, 9, 26)
    (note,) = [n for n in task.spec.notes if "absent" in n]
    assert note.startswith("As scored, seven of the 26")
    assert f"({', '.join(absent)})" in note
    assert task.spec.findings["unsupported.test"] == len(absent)


def spec_file(folder: Path, **lines: str) -> Path:
    """A spec for a corpus that no shipped task reads."""
    base = {
        "id": "extra",
        "version": "1",
        "name": "Extra",
        "language": "en",
        "type": "token_ner",
        "splits": "official",
        "unit": "sentence",
        "training": "{epochs: 1, learning_rate: 5e-5}",
        "head": "{kind: token}",
        "metric": "{primary: macro_f1, paper: micro_f1}",
        "access": "open",
        "licence": "see the release",
        "homepage": "https://example.org",
        "citation": "see the release",
    }
    path = folder / "extra.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in (base | lines).items()), encoding="utf-8")
    return path


def totals(data: TaskData) -> list[tuple[int, int, int]]:
    """(documents, mentions, groups) per split."""
    return [(len(v), sum(len(d.spans) for d in v), len({d.group for d in v})) for v in data.documents.values()]


def test_iob1_release_of_bc5cdr(data_dir: Path, tmp_path: Path) -> None:
    spec = spec_file(
        tmp_path,
        source="{id: s, folder: scibert_bc5cdr, files: {train: train.txt, validation: dev.txt, test: test.txt}}",
        reader="{format: iob, columns: [token, pos, chunk, tag], separator: whitespace, scheme: IOB1}",
        labels="[Entity]",
    )
    data = load_data(load_task(spec), data_dir)
    assert totals(data) == [(3942, 9270, 500), (3949, 9455, 500), (4139, 9662, 500)]


def test_chemical_only_tokens_of_bc5cdr(data_dir: Path, tmp_path: Path) -> None:
    spec = spec_file(
        tmp_path,
        source="{id: s, folder: mtl_bc5cdr_chem_iob, files: {train: train.tsv, validation: devel.tsv, test: test.tsv}}",
        reader="{format: iob}",
        labels="[Chemical]",
    )
    assert [m for _, m, _ in totals(load_data(load_task(spec), data_dir))] == [5203, 5347, 5385]


def test_pubtator_release_of_bc5cdr(data_dir: Path, tmp_path: Path) -> None:
    names = {"train": "Training", "validation": "Development", "test": "Test"}
    files = str({split: f"CDR_{name}Set.PubTator.txt" for split, name in names.items()})
    spec = spec_file(
        tmp_path,
        type="span_ner",
        unit="document",
        head="{kind: span}",
        source=f"{{id: s, folder: bc5cdr_pubtator, files: {files}}}",
        reader="{format: pubtator}",
        labels="[Chemical, Disease]",
    )
    assert totals(load_data(load_task(spec), data_dir)) == [(500, 9385, 500), (500, 9591, 500), (500, 9809, 500)]


def test_standoff_release_of_anatem(data_dir: Path, tmp_path: Path) -> None:
    spec = spec_file(
        tmp_path,
        type="span_ner",
        unit="document",
        head="{kind: span}",
        source="{id: s, folder: anatem_standoff, files: "
        "{train: train/*.txt, validation: devel/*.txt, test: test/*.txt}}",
        reader="{format: brat}",
        labels=str(load_task("anatem").spec.labels),
    )
    assert totals(load_data(load_task(spec), data_dir)) == [(606, 6946, 606), (202, 2139, 202), (404, 4616, 404)]


def test_fine_labels_of_chemprot_as_json_lines(data_dir: Path, tmp_path: Path) -> None:
    labels = [
        "ACTIVATOR", "AGONIST", "AGONIST-ACTIVATOR", "AGONIST-INHIBITOR", "ANTAGONIST", "DOWNREGULATOR",
        "INDIRECT-DOWNREGULATOR", "INDIRECT-UPREGULATOR", "INHIBITOR", "PRODUCT-OF", "SUBSTRATE",
        "SUBSTRATE_PRODUCT-OF", "UPREGULATOR",
    ]  # fmt: skip
    spec = spec_file(
        tmp_path,
        type="relation",
        head="{kind: sequence}",
        source="{id: s, folder: scibert_chemprot, files: {train: train.txt, validation: dev.txt, test: test.txt}}",
        reader="{format: json, layout: lines, text: text, label: label}",
        labels=str(labels),
    )
    data = load_data(load_task(spec), data_dir)
    assert [n for n, _, _ in totals(data)] == [4169, 2427, 3469]
    assert len(data.gold_labels) == 12


@pytest.mark.parametrize(("layer", "documents", "mentions"), [("layer1", 81, 1327), ("layer2", 168, 2033)])
def test_e3c_layers(layer: str, documents: int, mentions: int, data_dir: Path, tmp_path: Path) -> None:
    spec = spec_file(
        tmp_path,
        language="fr",
        type="span_ner",
        unit="document",
        head="{kind: span}",
        source=f'{{id: s, folder: e3c_french, files: {{all: "data_annotation/French/{layer}/*.xml"}}}}',
        reader="{format: xmi, types: {CLINENTITY: CLINENTITY}}",
        labels="[CLINENTITY]",
        splits="{ratios: [0.6, 0.2, 0.2], seed: 42, method: random}",
    )
    counted = totals(load_data(load_task(spec), data_dir))
    assert sum(n for n, _, _ in counted) == documents
    assert sum(m for _, m, _ in counted) == mentions


def test_fracco_mentions_hold_their_offsets(data_dir: Path) -> None:
    """71,380 mentions and 846 discontinuous ones; every surface is checked while reading."""
    task = load_task("fracco_30", ["sources.0.folder=not_there"])
    request = Request(task.options["pre_release"], {}, task.spec)
    mentions = split = 0
    for path in sorted((data_dir / "fracco" / "brat_raw").glob("*.txt")):
        raw = parse_brat(Place(request, "", path), "skip")
        if raw is None:
            assert path.stem == "cc_onco853"
            continue
        mentions += len(raw.mentions)
        split += sum(len(m.fragments) > 1 for m in raw.mentions)
    assert (mentions, split) == (71380, 846)


def test_fracco_labels_of_the_sheet(data_dir: Path) -> None:
    few, many = load_data(load_task("fracco_30"), data_dir), load_data(load_task("fracco_100"), data_dir)
    assert [len(v) for v in few.documents.values()] == [1030, 129, 129]
    assert [len(v) for v in many.documents.values()] == [1036, 130, 129]
    assert set(few.labels) < set(many.labels)
    assert {"8000/1", "C34.9 8000/1", "8010/3"} <= set(few.labels)
    assert len(few.gold_labels) == 30
    assert len(many.gold_labels) == 96
    assert sum(";" in label for label in many.labels) == 6


def test_flattened_social_history_has_the_reference_tags(data_dir: Path) -> None:
    data = load_data(load_task("social_history"), data_dir)
    begins = [sum(t.startswith("B-") for d in v for t in d.tags) for v in data.documents.values()]
    assert begins == [1698, 357, 270]
    tags = {t for v in data.documents.values() for d in v for t in d.tags}
    assert len(tags) == 51
    assert not {"B-LivingSituation", "I-PhysicalActivity"} & tags
    # 768 of the 3,793 mentions hold no whole token; 558 are taken over whole by a later one.
    lost = {split: sum(own.values()) for split, own in data.unexpressed.items()}
    assert lost == {"train": 914, "validation": 225, "test": 187}
    assert sum(lost.values()) == 768 + 558


def test_mentions_of_anatem_without_a_whole_token(data_dir: Path, tmp_path: Path) -> None:
    """Counted once more from the .ann themselves."""
    spec = spec_file(
        tmp_path,
        unit="document",
        source="{id: s, folder: anatem_standoff, files: "
        "{train: train/*.txt, validation: devel/*.txt, test: test/*.txt}}",
        reader="{format: brat, tokens: words}",
        labels=str(load_task("anatem").spec.labels),
    )
    wanted: dict[str, int] = {}
    for split, folder in (("train", "train"), ("validation", "devel"), ("test", "test")):
        for path in sorted((data_dir / "anatem_standoff" / folder).glob("*.ann")):
            text = path.with_suffix(".txt").read_text(encoding="utf-8")
            tokens = [m.span() for m in re.finditer(r"\w+|[^\w\s]", text)]
            rows = (line.split("\t")[1].split() for line in path.read_text(encoding="utf-8").splitlines())
            for start, end in ((int(row[1]), int(row[2])) for row in rows):
                if not any(a >= start and b <= end for a, b in tokens):
                    wanted[split] = wanted.get(split, 0) + 1
    found = load_data(load_task(spec), data_dir).unexpressed
    assert {split: sum(own.values()) for split, own in found.items()} == wanted
    assert wanted == {"train": 38, "validation": 11, "test": 29}


def test_rebuilt_chemprot_is_near_the_ready_files(data_dir: Path) -> None:
    """Gold pairs at least 99.5% of the ready files' per class, rows without a relation within 10%."""
    ready = load_task("chemprot").spec.counts
    counted = validate_task(load_task("chemprot_rebuilt"), data_dir).counts
    for split, expected in ready.items():
        for label, number in expected.items():
            if label.startswith("CPR"):
                assert 0.995 * number <= counted[split][label] <= 1.005 * number
        assert abs(counted[split]["false"] / expected["false"] - 1) < 0.1


def test_gad_fold_and_published_split_agree_on_the_rows(data_dir: Path) -> None:
    data = load_data(load_task("gad"), data_dir)
    assert all("@GENE$" in d.text and "@DISEASE$" in d.text for split in data.documents.values() for d in split)


def test_a_part_of_hoc_is_refused(data_dir: Path, tmp_path: Path) -> None:
    for kind in ("text", "labels"):
        (tmp_path / "hallmarks_of_cancer" / kind).mkdir(parents=True)
        for path in sorted((data_dir / "hallmarks_of_cancer" / kind).glob("*.txt"))[:20]:
            (tmp_path / "hallmarks_of_cancer" / kind / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataFormatError, match="have no document"):
        load_data(load_task("hoc"), tmp_path)
