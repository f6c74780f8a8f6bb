"""Every count of the specs holds on the real files, and the counts of the release notes beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import list_tasks, load_task
from biobench.data.load import load_data
from biobench.data.readers import Request
from biobench.data.readers.base import FileLine
from biobench.data.readers.brat import parse_brat
from biobench.data.locate import find
from biobench.errors import DataFormatError
from biobench.schema.document import TaskData

pytestmark = pytest.mark.real


def test_every_task_with_data_declares_counts(data_dir: Path) -> None:
    for task in list_tasks():
        if find(task, data_dir) is not None:
            assert set(task.spec.counts) == {"train", "validation", "test"}, task.id


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
        raw = parse_brat(FileLine(request, "", path), "skip")
        if raw is None:
            assert path.stem == "cc_onco853"
            continue
        mentions += len(raw.mentions)
        split += sum(len(m.fragments) > 1 for m in raw.mentions)
    assert (mentions, split) == (71380, 846)


def test_a_part_of_hoc_is_refused(data_dir: Path, tmp_path: Path) -> None:
    for kind in ("text", "labels"):
        (tmp_path / "hallmarks_of_cancer" / kind).mkdir(parents=True)
        for path in sorted((data_dir / "hallmarks_of_cancer" / kind).glob("*.txt"))[:20]:
            (tmp_path / "hallmarks_of_cancer" / kind / path.name).write_bytes(path.read_bytes())
    with pytest.raises(DataFormatError, match="have no document"):
        load_data(load_task("hoc"), tmp_path)
