"""FRACCO's real files: how much a window of 512 tokens hides, and that stride hides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.prepare import Prepared, prepare
from tests.helpers.checkpoints import fast_tokenizer

pytestmark = pytest.mark.real


def _prepared(data_dir: Path, task: str, *overrides: str) -> Prepared:
    loaded = load_task(task, overrides)
    data = load_data(loaded, data_dir)
    # Only the test split is measured.
    data.documents["train"], data.documents["validation"] = data.train[:5], data.validation[:5]
    return prepare(loaded.spec, data, fast_tokenizer("wordpiece"), 512)


@pytest.mark.parametrize("task", ["fracco_30", "fracco_100"])
def test_the_ceiling_of_truncation_is_told_from_the_mentions(data_dir: Path, task: str) -> None:
    cut, strided = _prepared(data_dir, task), _prepared(data_dir, task, "protocol.long_documents=stride")
    assert len(cut.test.documents) == 129
    assert cut.windows.truncated_documents == strided.windows.strided_documents > 100
    assert strided.windows.truncated_documents == strided.windows.lost_gold == 0
    gold = sum(len(d.labels) for d in cut.test.documents)
    assert 0 < cut.windows.lost_gold < gold
    assert cut.windows.ceiling["micro_precision"] == 1.0
    assert cut.windows.ceiling["micro_recall"] == pytest.approx(1 - cut.windows.lost_gold / gold)
    assert cut.windows.ceiling["micro_f1"] < 0.9
