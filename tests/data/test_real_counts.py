"""Every count of the specs holds on the real files, and the counts of the release notes beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, list_tasks
from biobench.data.load import load_data
from biobench.data.locate import find

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
