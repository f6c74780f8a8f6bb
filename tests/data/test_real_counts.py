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
