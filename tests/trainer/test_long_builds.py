"""Corpora that take long to build: many processes, a build that is told to stop, processes that wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from biobench.errors import TrainingError
from trainer import api
from trainer.corpus import tokenised
from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.corpus.sources import ReadMeter
from trainer.corpus.tokenised import Encoding, tokenise
from trainer.recipe.corpus import CorpusSource, CorpusSpec
from trainer.train.progress import Tick

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
    encoding = Encoding(tokenizer, (), 3, "uint16", Deadly([]))
    with pytest.raises(TrainingError, match="was killed") as caught:
        tokenise([("e", iter(TEXTS), ReadMeter())], encoding, tmp_path, nothing)
    assert "LOKY_MAX_CPU_COUNT" in caught.value.hint


def test_a_build_that_is_told_to_stop_goes_on_later(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenised, "DOCUMENTS", 10)
    overrides = [*small, f"corpus.cache={tmp_path / 'corpora'}"]
    monkeypatch.setattr(tokenised, "ALONE", 100)
    made: list[int] = []
    make = Encoding.make
    monkeypatch.setattr(Encoding, "make", lambda *a: (made.append(hash(tuple(a[1]))), make(*a))[1])
    seen: list[str] = []

    def listen(tick: Tick) -> None:
        seen.append(tick.what)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = api.pretrain("toy_detour", out=tmp_path / "run", overrides=overrides, progress=listen)
    assert (stopped.status, stopped.model) == ("preempted", None)
    assert seen[-1].startswith("tokenising")
    assert len(seen) < 15, "not all parts of the corpus"
    assert len(made) >= 2
    before = len(made)
    done = api.pretrain("toy_detour", out=tmp_path / "run", overrides=overrides, progress="none", resume=True)
    assert done.status == "done"
    assert len(made) == len(set(made)) == 15, "no part was made twice"
    assert before < 15


WAITING = """
import datetime, sys, time
import torch.distributed as dist
from trainer.train.distributed import world
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
with world("cpu") as here:
    if here.first:
        time.sleep(7)
    here.barrier()
    assert here.any(here.first)
    print("together", flush=True)
"""


@pytest.mark.slow
def test_processes_wait_longer_than_a_collective_for_the_first(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("together") == 2
