"""The needle task's other forms: the paper's variant as shipped, a trained encoder; the rate that validation picks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import biobench
from biobench.data.load import load_data
from biobench.finetune.loop import NonFiniteLossError
from biobench.finetune.probe import ProbeRun
from biobench.schema.needle import PRESENT, cell_of
from biobench.schema.record import RunRecord
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder

SPEC = """
id: needle_forms
version: 1
name: Made by a test
language: fr
type: needle
source: {id: made, generated: true}
reader: {format: needle, lengths: [128, 256], notes: 300, examples: {train: 96, validation: 48, test: 96}}
labels: [absent, present]
unit: document
protocol: {max_length: 8192}
training: {encoder: frozen, epochs: 1, learning_rate: 5e-5, batch_size: 8}
head: {kind: sequence}
probe: {pooling: mean, learning_rates: [1e-9, 1e-2, 3e-2], epochs: 3, segments: 8}
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


def spec(folder: Path) -> str:
    path = folder / "needle_forms.yaml"
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def only(results: Path) -> RunRecord:
    (record,), findings = Store(results).scan()
    assert not findings
    return record


def test_the_paper_s_variant_has_its_counts_split_and_probe() -> None:
    task = biobench.load_task("needle_fr_paper")
    data = load_data(task, None)
    sizes = [len(data.documents[s]) for s in ("train", "validation", "test")]
    assert sizes == [1050, 225, 225]
    assert [round(n / sum(sizes), 2) for n in sizes] == [0.7, 0.15, 0.15]
    lengths = Counter(c.length for d in data.test if (c := cell_of(d.id)))
    assert set(lengths) == {512, 1024, 2048, 4096, 8192}
    assert max(lengths.values()) - min(lengths.values()) <= 2
    assert abs(sum(d.labels == (PRESENT,) for d in data.test) - 112.5) == 0.5
    probe = task.spec.probe
    assert probe is not None
    assert (probe.kind, probe.pooling, probe.hidden, probe.dropout) == ("mlp", "cls", None, 0.1)
    assert (probe.learning_rates, probe.epochs, probe.batch_size) == ([2e-5], 3, 4)
    assert not probe.standardise
    assert task.spec.selection == "accuracy"
    assert any("Assumed" in note for note in task.spec.notes)


def test_the_paper_s_variant_runs_as_shipped(tmp_path: Path) -> None:
    short = make_tiny_encoder(tmp_path / "short", 512)
    (result,) = biobench.run(
        str(short), "needle_fr_paper", seeds=42, results_dir=tmp_path / "out", device="cpu", gate=False
    )
    assert (result.status, result.reason) == ("done", None)
    record = only(tmp_path / "out")
    assert record.task.test_documents == 225
    assert record.training.batch_size == 4
    read = 1050 // 5
    assert record.training.steps == 3 * -(-read // 4)
    assert [round(p.epoch) for p in record.training.curve] == [1, 2, 3]
    assert 0 < record.training.curve[0].learning_rate < 2e-5
    gold, _ = Store(tmp_path / "out").load_predictions(record, None)
    assert {c.length for d in gold if (c := cell_of(d.id))} == {512}
    assert 44 <= len(gold) <= 46


def test_a_trained_encoder_learns_with_the_task_and_scores_the_same_cells(model: Path, tmp_path: Path) -> None:
    (result,) = biobench.run(
        str(model),
        spec(tmp_path),
        seeds=42,
        results_dir=tmp_path / "out",
        device="cpu",
        gate=False,
        limit=32,
        overrides=["training.encoder=trained"],
    )
    assert (result.status, result.reason) == ("done", None)
    record = only(tmp_path / "out")
    assert record.limit == 32
    assert "training.encoder=trained" in record.overrides
    # Half of the 32 examples are longer than the window of 128 tokens; one epoch in batches of 8.
    gold, said = Store(tmp_path / "out").load_predictions(record, None)
    assert {c.length for d in gold if (c := cell_of(d.id))} == {128}
    assert len(said) == len(gold)
    assert 1 <= record.training.steps <= 4
    assert record.scores["accuracy.128"] == record.scores["accuracy"]


def test_the_learning_rate_is_the_one_with_the_best_validation_score(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: dict[float, ProbeRun] = {}
    fit = ProbeRun.fit

    def noted(run: ProbeRun) -> bool:
        tried[run.recipe.learning_rate] = run
        return fit(run)

    monkeypatch.setattr(ProbeRun, "fit", noted)
    biobench.run(str(model), spec(tmp_path), seeds=42, results_dir=tmp_path / "out", device="cpu", gate=False)
    assert list(tried) == [1e-9, 1e-2, 3e-2]
    best = max(run.state.best_score for run in tried.values())
    chosen = next(rate for rate, run in tried.items() if run.state.best_score == best)
    record = only(tmp_path / "out")
    assert record.training.best_step == tried[chosen].state.best_step
    assert [point.model_dump() for point in record.training.curve] == tried[chosen].state.curve
    assert max(p.validation["micro_f1"] for p in record.training.curve) == pytest.approx(best)
    assert record.training.steps == sum(run.state.step for run in tried.values()), "all that was tried is counted"


def test_a_rate_whose_loss_is_not_finite_is_left_out(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = ProbeRun.fit

    def fails(run: ProbeRun) -> bool:
        raise NonFiniteLossError("step 1")

    monkeypatch.setattr(ProbeRun, "fit", lambda run: (fit if run.recipe.learning_rate == 1e-2 else fails)(run))
    biobench.run(str(model), spec(tmp_path), seeds=42, results_dir=tmp_path / "out", device="cpu", gate=False)
    left = [text for text in only(tmp_path / "out").training.backoffs if "left out" in text]
    assert [text.split(":")[0].split()[-1] for text in left] == ["1e-09", "0.03"]
    monkeypatch.setattr(ProbeRun, "fit", fails)
    (result,) = biobench.run(
        str(model), spec(tmp_path), seeds=43, results_dir=tmp_path / "out", device="cpu", gate=False
    )
    assert result.status == "failed"
    assert "no learning rate gives a finite loss" in (result.reason or "")
