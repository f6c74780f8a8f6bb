"""Probes on frozen encoders: states once for all seeds, lengths beyond the window without a score."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import biobench
from biobench.errors import SpecError, UsageError
from biobench.finetune import engine
from biobench.models.heads import ProbeHead
from biobench.schema.needle import cell_of
from biobench.schema.training import Probe
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder

SPEC = """
id: needle_tiny
version: 1
name: Made by a test
language: fr
type: needle
source: {id: made, generated: true}
reader: {format: needle, lengths: [128, 256], notes: 300, examples: {train: 192, validation: 48, test: 96}}
labels: [absent, present]
unit: document
protocol: {max_length: 8192}
training: {encoder: frozen, epochs: 1, learning_rate: 5e-5}
head: {kind: sequence}
probe: {pooling: POOLING, learning_rates: [1e-3, 1e-2], epochs: 2, segments: 8}
metric: {primary: accuracy, paper: accuracy}
gate: {expect: chance}
access: open
licence: none
homepage: https://example.org
citation: none
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("model"))


def spec(folder: Path, pooling: str = "attention") -> str:
    path = folder / "needle_tiny.yaml"
    path.write_text(SPEC.replace("POOLING", pooling), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("pooling", ["cls", "mean", "attention"])
def test_a_short_window_scores_the_lengths_it_reads_and_nothing_else(
    model: Path, tmp_path: Path, pooling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    extract = engine.extract
    monkeypatch.setattr(engine, "extract", lambda *a, **k: calls.append(1) or extract(*a, **k))
    results = biobench.run(
        str(model), spec(tmp_path, pooling), seeds="42-43", results_dir=tmp_path / "out", device="cpu"
    )
    assert [(r.status, r.reason) for r in results] == [("done", None)] * 2
    assert len(calls) == 1, "the states are computed once for all seeds"
    record = Store(tmp_path / "out").get("needle_tiny", results[0].key or "")
    assert record is not None
    gold, predictions = Store(tmp_path / "out").load_predictions(record, None)
    cells = [cell_of(d.id) for d in gold]
    assert {c.length for c in cells if c} == {128}
    assert len(predictions) == len(gold) == 48
    assert record.task.test_documents == 96
    assert record.windows.max_length == 128
    assert record.windows.truncated_documents == 0
    assert record.scores["accuracy.128"] == record.scores["accuracy"]
    assert not [name for name in record.scores if "256" in name]
    rescored = [name for name in record.scores if name.startswith("accuracy.")]
    assert {"accuracy.128.start", "accuracy.middle", "accuracy.drug"} <= set(rescored)


def test_the_same_seed_gives_the_same_probe(model: Path, tmp_path: Path) -> None:
    said = []
    for name in ("one", "two"):
        biobench.run(str(model), spec(tmp_path), seeds=7, results_dir=tmp_path / name, device="cpu")
        store = Store(tmp_path / name)
        records, _ = store.scan()
        said.append(store.load_predictions(records[0], None)[1])
    assert said[0] == said[1]


def test_a_model_that_reads_no_length_fails_with_the_reason(model: Path, tmp_path: Path) -> None:
    path = Path(spec(tmp_path))
    path.write_text(path.read_text().replace("[128, 256]", "[256]"), encoding="utf-8")
    (result,) = biobench.run(str(model), str(path), seeds=1, results_dir=tmp_path / "out", device="cpu")
    assert result.status == "failed"
    assert "no document of train fits a window of 128 tokens" in (result.reason or "")


def test_a_frozen_encoder_needs_a_probe(tmp_path: Path) -> None:
    path = Path(spec(tmp_path))
    path.write_text("\n".join(x for x in path.read_text().splitlines() if not x.startswith("probe")), encoding="utf-8")
    with pytest.raises(SpecError, match="a frozen encoder needs a probe"):
        biobench.load_task(str(path))


def test_attention_finds_the_vector_that_matters_and_ignores_padding() -> None:
    torch.manual_seed(0)
    probe = Probe(pooling="attention", kind="linear", dropout=0.0)
    head = ProbeHead(8, 2, probe)
    states = torch.randn(400, 6, 8)
    labels = torch.randint(0, 2, (400,))
    # One vector in six carries the answer; which one is said by its first dimension.
    where = torch.randint(0, 6, (400,))
    states[torch.arange(400), where, 0] = 6.0
    states[torch.arange(400), where, 1] = 4.0 * (labels * 2 - 1)
    real = torch.ones(400, 6, dtype=torch.bool)
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(head(states, real), labels).backward()
        optimizer.step()
    assert (head(states, real).argmax(-1) == labels).float().mean() > 0.97
    longer = torch.cat([states, torch.full((400, 2, 8), 50.0)], dim=1)
    known = torch.cat([real, torch.zeros(400, 2, dtype=torch.bool)], dim=1)
    assert torch.allclose(head(longer, known), head(states, real), atol=1e-6)


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


def test_the_paper_s_probe() -> None:
    head = ProbeHead(32, 2, Probe(pooling="cls", dropout=0.1, standardise=False))
    kinds = [type(layer).__name__ for layer in head.layers]
    assert kinds == ["Dropout", "Linear", "GELU", "Dropout", "Linear"]
    assert (head.layers[1].in_features, head.layers[1].out_features) == (32, 32)
    assert head.layers[0].p == head.layers[3].p == 0.1
    assert head.direction is None


def test_a_probe_that_would_not_be_used_is_refused(model: Path, tmp_path: Path) -> None:
    trained = ["training.encoder=trained"]
    for setting in ("probe={kind: linear, pooling: mean}", "probe.epochs=4"):
        with pytest.raises(UsageError, match="is fine-tuned, so no probe is used"):
            biobench.run(
                str(model), spec(tmp_path), overrides=[*trained, setting], results_dir=tmp_path / "out", device="cpu"
            )
    assert not (tmp_path / "out").exists()
