"""Honest runs on the real corpora: nothing that verification asks of a record contradicts what the engine writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.store import Store
from biobench.submission.records import check_record
from biobench.submission.verify import Rescoring
from tests.helpers.cli_make import process
from tests.helpers.tiny import make_tiny_encoder

FEW_STEPS = (
    "training.epochs=null",
    "training.max_steps=20",
    "training.patience=null",
    "training.evaluate_every=10",
    "training.train_documents=300",
    "training.validation_documents=100",
)
STRIDE = ("protocol.long_documents=stride", "protocol.stride=32")
THE_RECIPE = {"R04"}
"""That few steps are not the shipped recipe; every other finding would contradict a run that was made as it says."""


def honest(tmp_path: Path, data_dir: Path, task: str, overrides: tuple[str, ...]) -> set[str]:
    """Codes of the findings in runs of two windows."""
    models = [make_tiny_encoder(tmp_path / f"tiny{window}", window) for window in (128, 512)]
    options = [part for text in overrides for part in ("--set", text)]
    run = ("run", *models, "--task", task, "--seeds", "42", *options, "--device", "cpu", "--json")
    said = process(*run, "--results-dir", "results", cwd=tmp_path, BIOBENCH_DATA_DIR=str(data_dir))
    assert said.status == 0, said.err
    assert {row["status"] for row in json.loads(said.out)} == {"done"}
    store = Store(tmp_path / "results")
    rescoring, findings = Rescoring(store, data_dir), []
    for record in store.records():
        problem, rescored = rescoring.check(record)
        assert rescored, problem
        findings += check_record(record, record.model.id)
    assert len(list(store.records())) >= 2
    return {check.code for check in findings}


@pytest.mark.real
@pytest.mark.slow
def test_a_run_with_strides_of_long_documents(tmp_path: Path, data_dir: Path) -> None:
    assert honest(tmp_path, data_dir, "social_history", (*FEW_STEPS, *STRIDE)) == THE_RECIPE


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        "gad_folds",
        "gad",
        "pubmedqa",
        "ddi",
        "hoc",
        "hoc_documents",
        "frenchmedmcqa_t1",
        "frenchmedmcqa_t2",
        "chemprot_rebuilt",
        "anatem",
        "ncbi_disease_single",
        "quaero_emea",
        "fracco_30",
        "biosses",
    ],
)
def test_short_runs_contradict_nothing_but_their_recipe(tmp_path: Path, data_dir: Path, task: str) -> None:
    assert honest(tmp_path, data_dir, task, FEW_STEPS) == THE_RECIPE
