"""Whole runs on a frozen encoder: `--track frozen`, similarity, needle tasks and their variants."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import biobench
from biobench.comparison.compare import compare
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import BioBenchError, SpecError, UsageError
from biobench.finetune import engine
from biobench.models.heads import ProbeHead
from biobench.reporting.entrants import find_entrants
from biobench.reporting.frame import build
from biobench.reporting.results import load
from biobench.reporting.sheets import sheets
from biobench.runs.result import RunResult
from biobench.schema.needle import cell_of
from biobench.schema.record import RunRecord
from biobench.schema.training import Probe
from biobench.store import Store
from tests.helpers.needle_make import needle_spec
from tests.helpers.sts_make import STS, write_sts
from tests.helpers.tiny import make_tiny_encoder

FAST: dict[str, Any] = {
    "device": "cpu",
    "parallel": 1,
    "gate": False,
    "results_dir": "results",
    "data_dir": "data",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def encoder(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return model


def test_a_probe_stands_apart_from_fine_tuning(encoder: Path) -> None:
    frozen = biobench.run(encoder, tasks="demo_topic", track="frozen", seeds="42-43", **FAST)
    tuned = biobench.run(
        encoder, tasks="demo_topic", seeds="42-43", overrides="training.epochs=1", **FAST
    )
    assert [r.status for r in (*frozen, *tuned)] == ["done"] * 4
    record = next(r for r in Store("results").records() if r.track == "frozen")
    assert (record.protocol["training"]["encoder"], record.protocol["probe"]["kind"]) == (
        "frozen",
        "linear",
    )
    report = build("results", "macro", sources=("run", "frozen"))
    assert {(row.source, row.variant) for row in report.rows} == {
        ("run", "training.epochs=1"),
        ("frozen", "frozen"),
    }
    assert [source for _, source, *_ in sheets(report)[0].rows] == ["run", "frozen"]
    with pytest.raises(UsageError, match="not the same"):
        compare("tiny", "tiny [frozen]", results_dir="results")
    (entrant,) = find_entrants(["tiny"], load("results"))
    assert entrant.source == "run", "a name means the runs that were trained"


def test_similarity_is_the_cosine_of_the_pooled_states(encoder: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    write_sts(tmp_path / "data" / "sts")
    path = tmp_path / "my_sts.yaml"
    path.write_text(STS)
    choice = {"track": "frozen", "overrides": "probe.kind=similarity", **FAST}
    (result,) = biobench.run(encoder, tasks=path, **choice)
    assert (result.status, result.seed) == ("done", 42), "what trains nothing needs one seed"
    assert [r.status for r in biobench.run(encoder, tasks=path, **choice)] == ["skipped"]
    (record,) = Store("results").records()
    predictions = Store("results").load_predictions(record, None)[1]
    gold = load_data(load_task(path), "data").test
    model = AutoModel.from_pretrained(encoder).eval()
    tokenizer = AutoTokenizer.from_pretrained(encoder)

    def pooled(text: str) -> torch.Tensor:
        with torch.inference_mode():
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            return model(input_ids=ids).last_hidden_state[0].mean(0)

    cosines = [torch.cosine_similarity(pooled(d.query), pooled(d.text), dim=0) for d in gold]
    stored = {p.document: p.label_scores[0] for p in predictions}
    numbers = np.array([stored[d.id] for d in gold])
    assert numbers == pytest.approx(2.5 * (np.array(cosines) + 1), abs=5e-3)
    truth = [float(d.labels[0]) for d in gold]
    assert result.scores["pearson"] == pytest.approx(stats.pearsonr(truth, numbers).statistic)
    assert result.scores["spearman"] == pytest.approx(stats.spearmanr(truth, numbers).statistic)
    assert record.training.trained_parameters is None
    assert record.cost.train_seconds == 0


@pytest.mark.parametrize(
    ("task", "choice", "error", "words"),
    [
        (
            "demo_topic",
            {"overrides": "probe.kind=similarity"},
            SpecError,
            "does not fit type 'single_label'",
        ),
        (
            "demo_topic",
            {"overrides": ["probe={kind: similarity}"]},
            SpecError,
            "pooling 'attention' is learned",
        ),
        ("needle_en", {}, UsageError, "frozen by its own spec"),
        ("quaero_emea", {}, SpecError, "does not fit type 'span_ner'"),
    ],
)
def test_what_does_not_fit_is_refused(
    encoder: Path, task: str, choice: dict[str, Any], error: type[BioBenchError], words: str
) -> None:
    with pytest.raises(error, match=words):
        biobench.run(encoder, tasks=task, track="frozen", **choice, **FAST)


READER = "lengths: [{}], notes: 300, examples: {{train: 96, validation: 48, test: 96}}"
PROBE = "pooling: attention, learning_rates: [1e-3, 1e-2], epochs: 2, segments: 8"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return needle_spec(tmp_path, READER.format("128, 256"), PROBE)


def made(
    model: Path, task: Path | str, folder: Path, **more: object
) -> tuple[list[RunResult], list[RunRecord]]:
    """The results, and what is stored of them."""
    results = biobench.run(model, str(task), results_dir=folder, device="cpu", gate=False, **more)  # type: ignore[arg-type]
    records, findings = Store(folder).scan()
    assert not findings
    return results, sorted(records, key=lambda r: r.seed)


def test_a_short_window_scores_the_lengths_it_reads_and_nothing_else(
    model: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_model_that_reads_no_length_fails_with_the_reason(
    model: Path, task: Path, tmp_path: Path
) -> None:
    needle_spec(tmp_path, READER.format("256"), PROBE)
    ((result,), _) = made(model, task, tmp_path / "out", seeds=1)
    assert result.status == "failed"
    assert "no document of train fits a window of 128 tokens" in (result.reason or "")


def test_a_probe_that_is_missing_or_would_not_be_used_is_refused(
    model: Path, task: Path, tmp_path: Path
) -> None:
    for setting in ("probe={kind: linear, pooling: mean}", "probe.epochs=4"):
        with pytest.raises(UsageError, match="is fine-tuned, so no probe is used"):
            made(model, task, tmp_path / "out", overrides=["training.encoder=trained", setting])
    assert not (tmp_path / "out").exists()
    task.write_text(re.sub("(?m)^probe.*$", "", task.read_text()), encoding="utf-8")
    with pytest.raises(SpecError, match="a frozen encoder needs a probe"):
        biobench.load_task(str(task))


def test_states_are_standardised_over_real_vectors_only() -> None:
    head = ProbeHead(4, 2, Probe(kind="linear"))
    states = torch.randn(300, 3, 4) * 5 + 7
    real = torch.ones(300, 3, dtype=torch.bool)
    real[:, 2] = False
    states[:, 2] = 1e3
    head.standardise(states, real)
    of_real = states[:, :2].reshape(-1, 4)
    torch.testing.assert_close(head.mean, of_real.mean(0))
    torch.testing.assert_close(head.scale, 1 / of_real.std(0, correction=0))
