"""Corpora that take long to build: many processes, a build that is told to stop, processes that wait for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from biobench.errors import TrainingError
from trainer.corpus import tokenised
from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.corpus.sources import ReadMeter
from trainer.corpus.tokenised import Encoding, tokenise
from trainer.recipe.corpus import CorpusSource, CorpusSpec

TEXTS = list(documents(120, seed=3))
SOURCE = CorpusSource.model_validate({"id": "e", "embedded": {"documents": 120, "seed": 3}})
SPEC = CorpusSpec.model_validate({"sources": [SOURCE], "sequence_length": 32, "held_out": 0.1})


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return train_tokenizer(TEXTS, 400, 64)


def nothing(what: str, done: float) -> None:
    """A report that nobody reads."""


def test_many_processes_build_what_one_builds(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_out = [TEXTS[7], TEXTS[50][: len(TEXTS[50]) // 2], TEXTS[119]]
    alone = build(SPEC, tokenizer, tmp_path / "one", exclude=kept_out)
    assert sum(alone.manifest["sources"][0]["excluded"].values()) >= 3
    monkeypatch.setattr(tokenised, "DOCUMENTS", 9)
    monkeypatch.setattr(tokenised, "ALONE", 2)
    here: list[int] = []
    make = Encoding.make
    monkeypatch.setattr(Encoding, "make", lambda *a: (here.append(1), make(*a))[1])
    many = build(SPEC, tokenizer, tmp_path / "many", exclude=kept_out)
    assert len(here) == 2, "the other twelve were made elsewhere"
    assert many.hash == alone.hash


class Deadly(Excluded):
    """The system takes the process away while it compares a document."""

    def why(self, text: str) -> str | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def test_a_killed_process_is_one_line(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenised, "DOCUMENTS", 30)
    monkeypatch.setattr(tokenised, "ALONE", 0)
    monkeypatch.setattr("loky.cpu_count", lambda: 1)
    encoding = Encoding(tokenizer, 3, "uint16", Deadly([]))
    with pytest.raises(TrainingError, match="was killed") as caught:
        tokenise([("e", iter(TEXTS), ReadMeter())], encoding, tmp_path, nothing)
    assert "LOKY_MAX_CPU_COUNT" in caught.value.hint
