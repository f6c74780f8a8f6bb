"""`--track frozen`: probes on an encoder that is not trained, never mixed with fine-tuning."""

from __future__ import annotations

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
from biobench.report.frame import build
from biobench.report.sheets import sheets
from biobench.store import Store
from tests.helpers.sts_make import STS, write_sts
from tests.helpers.tiny import make_tiny_encoder

FAST: dict[str, Any] = {"device": "cpu", "parallel": 1, "gate": False, "results_dir": "results", "data_dir": "data"}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_tiny_encoder(tmp_path / "tiny")


def test_a_probe_stands_apart_from_fine_tuning(encoder: Path) -> None:
    frozen = biobench.run(encoder, tasks="demo_topic", track="frozen", seeds="42-43", **FAST)
    tuned = biobench.run(encoder, tasks="demo_topic", seeds="42-43", overrides="training.epochs=1", **FAST)
    assert [r.status for r in (*frozen, *tuned)] == ["done"] * 4
    record = next(r for r in Store("results").records() if r.track == "frozen")
    assert (record.protocol["training"]["encoder"], record.protocol["probe"]["kind"]) == ("frozen", "linear")
    report = build("results", "macro", sources=("run", "frozen"))
    assert {(row.source, row.variant) for row in report.rows} == {("run", "training.epochs=1"), ("frozen", "frozen")}
    assert [source for _, source, *_ in sheets(report)[0].rows] == ["run", "frozen"]
    with pytest.raises(UsageError, match="not the same"):
        compare("tiny", "tiny [frozen]", results_dir="results")
    assert compare("tiny", "tiny", results_dir="results").tasks == ("demo_topic",)


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

    expected = [float(torch.cosine_similarity(pooled(d.query), pooled(d.text), dim=0)) for d in gold]
    stored = {p.document: p.label_scores[0] for p in predictions}
    numbers = np.array([stored[d.id] for d in gold])
    assert np.abs(numbers - 2.5 * (np.array(expected) + 1)).max() < 5e-3
    truth = [float(d.labels[0]) for d in gold]
    assert result.scores["pearson"] == pytest.approx(stats.pearsonr(truth, numbers).statistic)
    assert result.scores["spearman"] == pytest.approx(stats.spearmanr(truth, numbers).statistic)
    assert record.training.trained_parameters is None
    assert record.cost.train_seconds == 0


@pytest.mark.parametrize(
    ("task", "choice", "error", "words"),
    [
        ("demo_topic", {"overrides": "probe.kind=similarity"}, SpecError, "does not fit type 'single_label'"),
        ("demo_topic", {"overrides": ["probe={kind: similarity}"]}, SpecError, "pooling 'attention' is learned"),
        ("needle_en", {}, UsageError, "frozen by its own spec"),
        ("quaero_emea", {}, SpecError, "does not fit type 'span_ner'"),
    ],
)
def test_what_does_not_fit_is_refused(
    encoder: Path, task: str, choice: dict[str, Any], error: type[BioBenchError], words: str
) -> None:
    with pytest.raises(error, match=words):
        biobench.run(encoder, tasks=task, track="frozen", **choice, **FAST)
