"""Tasks of the suites from their native files to a row of the report: few documents, one epoch, two seeds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import biobench
from biobench.data.catalog import load_task
from biobench.report.frame import build
from biobench.report.rescore import rescore_all
from biobench.store import Store
from tests.helpers.generators import GENERATORS, cos, deid

GENERATED = ("cantemist", "meddialog_fr", "diamed", "phenotype", "cos", "deid", "jnlpba")
"""Corpora that are not at hand; the tests write their native files."""
REAL = ("fracco_30", "quaero_emea", "chemprot_rebuilt", "social_history", "hoc", "ncbi_disease")
"""Of the corpora at hand one of each reader and kind of task."""
SEEDS = (42, 43)
QUICK = ("training.epochs=1", "protocol.max_length=64")
STEPS = ("training.max_steps=4", "protocol.max_length=64")
"""For the specs that count steps (QUAERO, whose head scores spans)."""
LIMIT = 12
"""Training documents; validation and test in proportion."""


@pytest.mark.parametrize("task", GENERATED)
def test_generated_files_run_end_to_end(task: str, tiny: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    if task == "cos":
        cos(data, snippets=110, duplicates=5)
    elif task == "deid":
        deid(data, records=60)
    else:
        GENERATORS[task](data)
    from_files_to_report(task, tiny, data, tmp_path / "results")


@pytest.mark.real
@pytest.mark.parametrize("task", REAL)
def test_real_files_run_end_to_end(task: str, tiny: Path, data_dir: Path, tmp_path: Path) -> None:
    from_files_to_report(task, tiny, data_dir, tmp_path / "results")


def from_files_to_report(task: str, model: Path, data: Path, results: Path) -> None:
    """Train and score two seeds; records, predictions, scores computed again and the report agree."""
    counts_steps = load_task(task).spec.training.max_steps is not None
    made = biobench.run(
        str(model), tasks=[task], seeds="42-43", data_dir=data, results_dir=results, device="cpu",
        overrides=STEPS if counts_steps else QUICK, limit=LIMIT, gate=False, offline=True,
    )  # fmt: skip
    assert [(r.task, r.seed, r.status) for r in made] == [(task, seed, "done") for seed in SEEDS], made
    records = Store(results).records()
    assert [r.seed for r in records] == list(SEEDS)
    for record in records:
        assert record.training.steps >= 1
        assert all(math.isfinite(point.train_loss) for point in record.training.curve)
        assert all(0.0 <= value <= 1.0 for value in record.scores.values())
        assert set(record.per_label) == set(record.task.labels)
        assert record.redacted == (task in ("phenotype", "deid"))
    assert {row.outcome for row in rescore_all(results, data)} == {"unchanged"}
    (row,) = [r for r in build(results).rows if r.source == "run"]
    assert (row.task, row.n_seeds, row.metric) == (task, 2, "macro_f1")
    assert row.mean == pytest.approx(sum(r.scores["macro_f1"] for r in records) / 2)
