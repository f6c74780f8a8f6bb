"""A recipe that trains in about a second, on corpora that are built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.trainer_make import train


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built corpora, shared by all tests of a session."""
    return tmp_path_factory.mktemp("corpora")


@pytest.fixture(scope="session")
def small(corpora: Path) -> list[str]:
    """Overrides that shrink toy_detour: 8 windows of 48 tokens a step, 12 + 8 steps."""
    return [
        "base.config.hidden_size=32",
        "base.config.intermediate_size=32",
        "base.config.num_hidden_layers=3",
        "base.config.num_attention_heads=2",
        "base.config.local_attention=16",
        "base.tokenizer.vocabulary=500",
        "corpus.sources.0.embedded.documents=150",
        "corpus.sequence_length=48",
        f"corpus.cache={corpora}",
        "batch.sequences=8",
        "phases.0.tokens=4608",
        "phases.0.schedule.warmup=1000",
        "phases.1.tokens=3072",
        "logging.every=1",
    ]


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, small: list[str]) -> Path:
    """A finished run of that recipe, which no test changes."""
    out = tmp_path_factory.mktemp("runs") / "reference"
    assert train(out, small).status == "done"
    return out
