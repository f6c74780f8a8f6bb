"""Every count of the specs holds on the real files, and the counts of the release notes beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, list_tasks, load_task
from biobench.data.load import load_data
from biobench.data.locate import find
from biobench.data.readers import Request
from biobench.data.readers.base import FileLine
from biobench.data.readers.brat import parse_brat
from biobench.errors import DataFormatError

pytestmark = pytest.mark.real


def test_every_task_with_data_declares_counts(data_dir: Path) -> None:
    for task in list_tasks():
        if find(task, data_dir) is not None:
            assert set(task.spec.counts) == {"train", "validation", "test"}, task.id


LABELS = (
    "[ACTIVATOR, AGONIST, AGONIST-ACTIVATOR, AGONIST-INHIBITOR, ANTAGONIST, DOWNREGULATOR, INDIRECT-DOWNREGULATOR, "
    "INDIRECT-UPREGULATOR, INHIBITOR, PRODUCT-OF, SUBSTRATE, SUBSTRATE_PRODUCT-OF, UPREGULATOR]"
)
SPLIT_FILES = "{{train: {}, validation: {}, test: {}}}"
RELEASES = {
    "scibert_bc5cdr": (
        "token_ner",
        SPLIT_FILES.format("train.txt", "dev.txt", "test.txt"),
        "{format: iob, columns: [token, pos, chunk, tag], separator: whitespace, scheme: IOB1}",
        "[Entity]",
        [(3942, 9270, 500), (3949, 9455, 500), (4139, 9662, 500)],
    ),
    "bc5cdr_pubtator": (
        "span_ner",
        SPLIT_FILES.format(*(f"CDR_{name}Set.PubTator.txt" for name in ("Training", "Development", "Test"))),
        "{format: pubtator}",
        "[Chemical, Disease]",
        [(500, 9385, 500), (500, 9591, 500), (500, 9809, 500)],
    ),
    "anatem_standoff": (
        "span_ner",
        SPLIT_FILES.format("train/*.txt", "devel/*.txt", "test/*.txt"),
        "{format: brat}",
        str(load_task("anatem").spec.labels),
        [(606, 6946, 606), (202, 2139, 202), (404, 4616, 404)],
    ),
    "scibert_chemprot": (
        "relation",
        SPLIT_FILES.format("train.txt", "dev.txt", "test.txt"),
        "{format: json, layout: lines, text: text, label: label}",
        LABELS,
        [(4169, 0, 4169), (2427, 0, 2427), (3469, 0, 3469)],
    ),
}


@pytest.mark.parametrize("folder", RELEASES)
def test_releases_that_no_shipped_task_reads(folder: str, make_task: Callable[..., LoadedTask], data_dir: Path) -> None:
    """(documents, mentions, groups) of each split."""
    type_, files, reader, labels, expected = RELEASES[folder]
    data = load_data(make_task(type=type_, folder=folder, files=files, reader=reader, labels=labels), data_dir)
    counted = [(len(v), sum(len(d.spans) for d in v), len({d.group for d in v})) for v in data.documents.values()]
    assert counted == expected


@pytest.mark.parametrize(("layer", "documents", "mentions"), [("layer1", 81, 1327), ("layer2", 168, 2033)])
def test_e3c_layers(
    layer: str, documents: int, mentions: int, make_task: Callable[..., LoadedTask], data_dir: Path
) -> None:
    task = make_task(
        type="span_ner",
        folder="e3c_french",
        files=f'{{all: "data_annotation/French/{layer}/*.xml"}}',
        reader="{format: xmi, types: {CLINENTITY: CLINENTITY}}",
        labels="[CLINENTITY]",
        splits="{ratios: [0.6, 0.2, 0.2], seed: 42, method: random}",
    )
    every = [d for part in load_data(task, data_dir).documents.values() for d in part]
    assert (len(every), sum(len(d.spans) for d in every)) == (documents, mentions)


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
