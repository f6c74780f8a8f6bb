"""Needle tasks through whole runs: frozen and trained, the paper's variant, lengths beyond the window."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import biobench
from biobench.errors import SpecError, UsageError
from biobench.finetune import engine
from biobench.models.heads import ProbeHead
from biobench.runs.result import RunResult
from biobench.schema.needle import cell_of
from biobench.schema.record import RunRecord
from biobench.schema.training import Probe
from biobench.store import Store
from tests.helpers.needle_make import needle_spec
from tests.helpers.tiny import make_tiny_encoder

READER = "lengths: [{}], notes: 300, examples: {{train: 96, validation: 48, test: 96}}"
PROBE = "pooling: attention, learning_rates: [1e-3, 1e-2], epochs: 2, segments: 8"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_encoder(tmp_path_factory.mktemp("model")))


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return needle_spec(tmp_path, READER.format("128, 256"), PROBE)


def made(model: str, task: Path | str, folder: Path, **more: object) -> tuple[list[RunResult], list[RunRecord]]:
    """The results, and what is stored of them."""
    results = biobench.run(model, str(task), results_dir=folder, device="cpu", gate=False, **more)  # type: ignore[arg-type]
    records, findings = Store(folder).scan()
    assert not findings
    return results, sorted(records, key=lambda r: r.seed)


def test_a_short_window_scores_the_lengths_it_reads_and_nothing_else(
    model: str, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    extract = engine.extract
    monkeypatch.setattr(engine, "extract", lambda *a, **k: calls.append(1) or extract(*a, **k))
    results, (record, _) = made(model, task, tmp_path / "out", seeds="42-43")
    assert [(r.status, r.reason) for r in results] == [("done", None)] * 2
    assert len(calls) == 1, "the states are computed once for all seeds"
    gold, predictions = Store(tmp_path / "out").load_predictions(record, None)
    assert {c.length for d in gold if (c := cell_of(d.id))} == {128}
    assert len(predictions) == len(gold) == 48
    assert record.task.test_documents == 96
    assert (record.windows.max_length, record.windows.truncated_documents) == (128, 0)
    assert record.scores["accuracy.128"] == record.scores["accuracy"]
    assert not [name for name in record.scores if "256" in name]
    assert {"accuracy.128.start", "accuracy.middle", "accuracy.drug"} <= set(record.scores)


def test_a_model_that_reads_no_length_fails_with_the_reason(model: str, task: Path, tmp_path: Path) -> None:
    needle_spec(tmp_path, READER.format("256"), PROBE)
    ((result,), _) = made(model, task, tmp_path / "out", seeds=1)
    assert result.status == "failed"
    assert "no document of train fits a window of 128 tokens" in (result.reason or "")


def test_a_probe_that_is_missing_or_would_not_be_used_is_refused(model: str, task: Path, tmp_path: Path) -> None:
    for setting in ("probe={kind: linear, pooling: mean}", "probe.epochs=4"):
        with pytest.raises(UsageError, match="is fine-tuned, so no probe is used"):
            made(model, task, tmp_path / "out", overrides=["training.encoder=trained", setting])
    assert not (tmp_path / "out").exists()
    task.write_text("\n".join(x for x in task.read_text().splitlines() if not x.startswith("probe")), encoding="utf-8")
    with pytest.raises(SpecError, match="a frozen encoder needs a probe"):
        biobench.load_task(str(task))


def test_states_are_standardised_over_real_vectors_only() -> None:
    head = ProbeHead(4, 2, Probe(kind="linear"))
    states = torch.randn(300, 3, 4) * 5 + 7
    real = torch.ones(300, 3, dtype=torch.bool)
    real[:, 2] = False
    states[:, 2] = 1e3
    head.standardise(states, real)
    rows = ((states[:, :2] - head.mean) * head.scale).reshape(-1, 4)
    assert torch.allclose(rows.mean(0), torch.zeros(4), atol=1e-4)
    assert torch.allclose(rows.std(0), torch.ones(4), atol=1e-2)
