"""Corpora that take long to build: many processes, a build that is told to stop, processes that wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from biobench.errors import DataUnavailableError, StoreError, TrainingError
from trainer import api
from trainer.corpus import parts
from trainer.corpus.builder import build, corpus_folder, excluded_documents
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.parts import Encoding, tokenise
from trainer.corpus.shards import train_tokenizer
from trainer.corpus.sources import ReadMeter
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
    monkeypatch.setattr(parts, "DOCUMENTS", 9)
    monkeypatch.setattr(parts, "ALONE", 2)
    here: list[Path] = []
    make = Encoding.make
    monkeypatch.setattr(Encoding, "make", lambda *a: (here.append(a[1]), make(*a)))
    many = build(SPEC, tokenizer, tmp_path / "many", exclude=kept_out)
    assert len(here) == 2, "the other twelve were made elsewhere"
    assert many.hash == alone.hash


def test_a_full_disk_is_told_by_the_process_that_met_it(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "DOCUMENTS", 30)
    monkeypatch.setattr(parts, "ALONE", 0)
    folder = corpus_folder(SPEC, tokenizer, tmp_path, excluded_documents(SPEC, []))
    work = folder.with_name(f"{folder.name}.parts")
    work.mkdir()
    full = work / "e-000002.bin"
    full.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="the disk is full") as caught:
        build(SPEC, tokenizer, tmp_path)
    assert caught.value.file == str(full)
    assert "--resume" in caught.value.hint


class Deadly(Excluded):
    """The system takes the process away while it compares a document."""

    def why(self, text: str) -> str | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def test_a_killed_process_is_one_line(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "DOCUMENTS", 30)
    monkeypatch.setattr(parts, "ALONE", 0)
    encoding = Encoding(tokenizer, (), 3, "uint16", Deadly([]))
    with pytest.raises(TrainingError, match="was killed") as caught:
        tokenise(SOURCE, iter(TEXTS), ReadMeter(), encoding, tmp_path, nothing)
    assert "LOKY_MAX_CPU_COUNT" in caught.value.hint


def test_errors_of_every_kind_pass_between_processes() -> None:
    import pickle

    for error in (
        StoreError("what", hint="do", file="a.txt", line=3),
        DataUnavailableError("missing", hint="fetch", access="agreement"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args, vars(again)) == (
            type(error),
            str(error),
            error.args,
            vars(error),
        )


def test_a_build_that_is_told_to_stop_goes_on_later(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "DOCUMENTS", 10)
    overrides = [*small, f"corpus.cache={tmp_path / 'corpora'}"]
    monkeypatch.setattr(parts, "ALONE", 100)
    made: list[str] = []
    make = Encoding.make
    monkeypatch.setattr(Encoding, "make", lambda *a: (made.append(a[1].name), make(*a)))
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


def test_processes_wait_longer_than_a_collective_for_the_first(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("together") == 2
