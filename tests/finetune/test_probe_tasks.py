"""Linear probes on the frozen states of token, one-label and several-label tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import biobench
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import SpecError
from biobench.finetune.engine import LoadedEncoder, finetune, load_encoder
from biobench.finetune.features import extract
from biobench.finetune.loop import Outcome
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import find_checkpoint, load_tokenizer
from biobench.schema.document import Document, TaskData
from biobench.schema.task import TaskSpec
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder

PROBE: dict[str, Any] = {
    "kind": "linear",
    "pooling": "mean",
    "dropout": 0.0,
    "learning_rates": [1e-3, 1e-2],
    "epochs": 6,
}

LINEAR = ("training.encoder=frozen", "probe={kind: linear, pooling: mean, learning_rates: [1e-3, 1e-2], epochs: 6}")

Ready = Callable[..., tuple[LoadedEncoder, Prepared]]


def quiet(done: int, total: int, what: str) -> None:
    """No progress is shown."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random encoder."""
    return make_tiny_encoder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def ready(model: Path) -> Ready:
    """`ready(task, *overrides, window=)`: the encoder and the encoded task."""

    def make(task: str, *overrides: str, window: int = 128) -> tuple[LoadedEncoder, Prepared]:
        loaded = load_task(task, [*LINEAR, *overrides])
        checkpoint = find_checkpoint(str(model))
        tokenizer = load_tokenizer(checkpoint)
        return (
            load_encoder(checkpoint, torch.device("cpu")),
            prepare(loaded.spec, load_data(loaded, None, 160), tokenizer, window),
        )

    return make


def scores(prepared: Prepared, outcome: Outcome) -> dict[str, float]:
    """Test scores of an outcome."""
    return dict(prepared.score(prepared.test.documents, outcome.predictions).values)


def test_a_word_s_state_is_that_of_its_first_sub_token(ready: Ready) -> None:
    loaded, prepared = ready("demo_ner")
    kept = extract(loaded.encoder, prepared, "fp32", quiet)
    split = prepared.test
    assert kept.states["test"].shape == (sum(len(e.words) for e in split.encoded), 1, loaded.encoder.width)
    assert kept.real["test"].all()
    begin = 0
    for encoded in split.encoded[:5]:
        with torch.inference_mode():
            hidden = loaded.encoder([encoded.ids])
        rows = kept.states["test"][begin : begin + len(encoded.words), 0].float()
        torch.testing.assert_close(rows, hidden[torch.from_numpy(encoded.first)], rtol=1e-3, atol=2e-3)
        begin += len(encoded.words)


def test_a_linear_probe_learns_a_token_task(ready: Ready) -> None:
    loaded, prepared = ready("demo_ner", "probe.learning_rates=[1e-2, 3e-2]", "probe.epochs=15")
    outcome = finetune(loaded, prepared, 42, "fp32", quiet)
    untrained = finetune(*ready("demo_ner", "probe.learning_rates=[1e-9]"), 42, "fp32", quiet)
    assert len(outcome.predictions) == len(prepared.test.documents)
    assert scores(prepared, outcome)["micro_f1"] > 0.5 > scores(prepared, untrained)["micro_f1"] + 0.2
    again = finetune(loaded, prepared, 42, "fp32", quiet)
    assert again.predictions == outcome.predictions
    assert all(torch.equal(v, loaded.initial[k]) for k, v in loaded.encoder.state_dict().items())


def test_the_rate_is_chosen_on_validation(ready: Ready) -> None:
    alone = finetune(*ready("demo_topic", "probe.learning_rates=[1e-2]"), 42, "fp32", quiet)
    chosen = finetune(*ready("demo_topic", "probe.learning_rates=[1e-9, 1e-2, 2e-9]"), 42, "fp32", quiet)
    assert chosen.predictions == alone.predictions
    assert chosen.record.curve == alone.record.curve
    assert chosen.best_score == max(p.validation["macro_f1"] for p in chosen.record.curve)


def test_windows_of_a_long_document_are_merged(ready: Ready) -> None:
    loaded, prepared = ready("demo_topic", "protocol.long_documents=stride", "protocol.stride=2", window=12)
    assert len(prepared.train.encoded) > len(prepared.train.documents)
    outcome = finetune(loaded, prepared, 42, "fp32", quiet)
    assert [p.document for p in outcome.predictions] == [d.id for d in prepared.test.documents]
    assert scores(prepared, outcome)["macro_f1"] > 0.5


SIGNS = ("cardiology", "neurology", "pneumology")


def several(ready: Ready, model: Path, threshold: float | str = 0.5, weights: str = "none") -> Prepared:
    """Texts of up to three sentences of a topic each; the labels are their topics."""
    _, topics = ready("demo_topic")
    sentences = {s: [d.text for d in topics.train.documents if d.labels == (s,)] for s in SIGNS}
    rng = np.random.default_rng(0)

    def document(split: Any, number: int) -> Document:
        own = tuple(s for s in SIGNS if rng.random() < 0.4)
        text = " ".join(sentences[s][int(rng.integers(len(sentences[s])))] for s in own) or "."
        return Document(f"{split}{number}", f"{split}{number}", text, split, labels=own)

    spec = TaskSpec.model_validate(
        {
            "id": "signs",
            "version": 1,
            "name": "signs",
            "language": "en",
            "type": "multi_label",
            "labels": list(SIGNS),
            "source": {"id": "s", "generated": True, "reader": {"format": "synthetic", "content": "topic"}},
            "unit": "document",
            "training": {"epochs": 1, "learning_rate": 1e-3, "encoder": "frozen", "positive_weights": weights},
            "head": {"kind": "sequence", "threshold": threshold},
            "probe": {**PROBE, "epochs": 20},
            "metric": {"paper": "macro_f1"},
            "access": "open",
            "licence": "l",
            "homepage": "https://example.org",
            "citation": "c",
        }
    )
    sizes = {"train": 160, "validation": 48, "test": 48}
    data = TaskData({s: [document(s, n) for n in range(size)] for s, size in sizes.items()}, SIGNS, SIGNS, "s", "h")
    return prepare(spec, data, load_tokenizer(find_checkpoint(str(model))), 128)


def test_a_linear_probe_learns_a_task_of_several_labels(ready: Ready, model: Path) -> None:
    loaded, _ = ready("demo_topic")
    prepared = several(ready, model)
    outcome = finetune(loaded, prepared, 42, "fp32", quiet)
    assert scores(prepared, outcome)["macro_f1"] > 0.7
    assert outcome.record.threshold == 0.5
    assert {len(p.labels) for p in outcome.predictions} >= {0, 1, 2}


def test_threshold_and_weights_of_the_task_hold_for_the_probe(ready: Ready, model: Path) -> None:
    loaded, _ = ready("demo_topic")
    plain = finetune(loaded, several(ready, model), 42, "fp32", quiet)
    tuned = finetune(loaded, several(ready, model, "tuned"), 42, "fp32", quiet)
    assert tuned.threshold == tuned.record.threshold
    assert tuned.best_score >= plain.best_score
    weighted = finetune(loaded, several(ready, model, weights="ratio"), 42, "fp32", quiet)
    said = [sum(len(p.labels) for p in outcome.predictions) for outcome in (plain, weighted)]
    assert said[1] > said[0], "rare positives weigh more, so more labels are said"


def test_a_probe_is_stored_as_another_condition(model: Path, tmp_path: Path) -> None:
    for overrides in (LINEAR, ("training.epochs=1",)):
        (result,) = biobench.run(
            str(model), "demo_topic", seeds=42, results_dir=tmp_path, overrides=overrides, limit=64, gate=False
        )
        assert (result.status, result.reason) == ("done", None)
    records, _ = Store(tmp_path).scan()
    assert len(records) == 2
    assert len({r.key for r in records}) == 2


def test_what_a_probe_cannot_do_is_said(model: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'frozen' does not fit type 'span_ner'"):
        load_task("quaero_emea", list(LINEAR))
    (result,) = biobench.run(
        str(model), "demo_topic", seeds=42, results_dir=tmp_path, overrides=LINEAR, track="tuned", gate=False
    )
    assert result.status == "failed"
    assert "a probe chooses its rate itself" in (result.reason or "")
