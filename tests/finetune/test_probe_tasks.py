"""Linear probes on the frozen states of token, one-label and several-label tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune, load_encoder
from biobench.finetune.features import extract
from biobench.finetune.loop import Outcome
from biobench.finetune.prepare import Prepared, prepare
from biobench.finetune.tuning import tuned
from biobench.models.loading import find_checkpoint, load_tokenizer
from biobench.schema.document import Document, TaskData
from tests.benchmarks.labels_make import multi_label_spec
from tests.helpers.tiny import make_tiny_encoder

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

    spec = multi_label_spec(
        labels=list(SIGNS),
        source={"id": "s", "generated": True, "reader": {"format": "synthetic", "content": "topic"}},
        training={"epochs": 1, "learning_rate": 1e-3, "encoder": "frozen", "positive_weights": weights},
        head={"kind": "sequence", "threshold": threshold},
        probe={"kind": "linear", "pooling": "mean", "dropout": 0.0, "learning_rates": [1e-3, 1e-2], "epochs": 20},
        metric={"paper": "macro_f1"},
    )
    sizes = {"train": 160, "validation": 48, "test": 48}
    data = TaskData({s: [document(s, n) for n in range(size)] for s, size in sizes.items()}, SIGNS, SIGNS, "s", "h")
    return prepare(spec, data, load_tokenizer(find_checkpoint(str(model))), 128)


def test_threshold_and_weights_of_the_task_hold_for_the_probe(ready: Ready, model: Path) -> None:
    loaded, _ = ready("demo_topic")
    prepared = several(ready, model)
    plain = finetune(loaded, prepared, 42, "fp32", quiet)
    assert plain.record.threshold == 0.5
    assert scores(prepared, plain)["macro_f1"] > 0.7
    chosen = finetune(loaded, several(ready, model, "tuned"), 42, "fp32", quiet)
    assert chosen.threshold == chosen.record.threshold
    assert chosen.best_score >= plain.best_score
    weighted = finetune(loaded, several(ready, model, weights="ratio"), 42, "fp32", quiet)
    said = [sum(len(p.labels) for p in outcome.predictions) for outcome in (plain, weighted)]
    assert said[1] > said[0], "rare positives weigh more, so more labels are said"


def test_the_tuned_track_has_no_probe(ready: Ready) -> None:
    with pytest.raises(TrainingError, match="a probe chooses its rate itself"):
        tuned(*ready("demo_topic"), 42, "fp32", quiet)
