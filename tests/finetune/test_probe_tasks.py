"""Linear probes on the frozen states of token, one-label and several-label tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, load_encoder
from biobench.finetune.features import extract
from biobench.finetune.prepare import Prepared, prepare
from biobench.finetune.tuning import tuned
from biobench.models.loading import find_checkpoint, load_tokenizer
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


def test_the_tuned_track_has_no_probe(ready: Ready) -> None:
    with pytest.raises(TrainingError, match="a probe chooses its rate itself"):
        tuned(*ready("demo_topic"), 42, "fp32", quiet)
