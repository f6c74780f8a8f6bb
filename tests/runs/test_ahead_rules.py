"""When the next task is tokenised ahead, which one, of which text, and with how much memory."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from biobench.core import threads
from biobench.finetune import ahead, token_cache
from biobench.finetune.ahead import NextTask, tokenise, tokenise_all
from biobench.runs.api import run_plan
from biobench.runs.execute import Silent
from biobench.runs.plan import make_plan
from biobench.runs.workshop import Workshop, has_spare_cpu
from tests.helpers.ahead_make import AtOnce, Failing, records, request, use
from tests.helpers.private_make import private_tasks
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(autouse=True)
def _small_tasks_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "WORTH_CHARACTERS", 0)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("model") / "tiny")


def test_text_under_an_agreement_is_not_tokenised_ahead(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, _ = private_tasks(tmp_path)
    basis = replace(
        request(tiny, tmp_path / "results"),
        tasks=("demo_topic", str(notes)),
        data_dir=str(tmp_path / "data"),
        seeds="1",
    )
    tasks = use(monkeypatch, AtOnce)
    assert len(records(basis)) == 2
    assert tasks == []
    kept = sorted((tmp_path / "results" / "cache" / "tokens").iterdir())
    assert len(kept) == 3, "of the open task alone"
    # a spec that came under an agreement after the plan was made
    (open_,) = private_tasks(tmp_path / "open", access="open")[:1]
    cache = token_cache.TokenCache(tmp_path / "cache")
    for spec, entries in ((notes, 0), (open_, 3)):
        tokenise(NextTask(spec, (), 0, str(spec.parent / "data"), None, False, tiny, False, 64, cache))
        assert len(list(cache.folder.glob("*"))) == entries


def test_one_task_ahead_and_none_that_is_stored_or_small(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    basis = replace(request(tiny, tmp_path), seeds="1", tasks=("demo_topic", "demo_ner", "demo_names"))
    tasks = use(monkeypatch, Failing)
    records(replace(basis, tasks=("demo_ner",)))
    assert tasks == [], "there is no other task"
    run_plan(make_plan(basis), Silent())
    assert [t.spec.stem for t in tasks] == ["demo_names"], "the one between has its run"
    monkeypatch.setattr(token_cache, "WORTH_CHARACTERS", 10**6)
    tasks.clear()
    run_plan(make_plan(replace(basis, force=True, started=time.time())), Silent())
    assert tasks == []


@pytest.mark.parametrize(
    ("device", "usable", "busy", "sharing", "spare"),
    [
        ("cpu", 2, 2, 1, False),
        ("cpu", 3, 2, 1, True),
        ("cpu", 4, 2, 2, False),
        ("cpu", 5, 2, 2, True),
        ("cuda", 1, 1, 1, False),
        ("cuda", 2, 2, 1, True),
        ("cuda", 4, 1, 4, False),
        ("cuda", 5, 1, 4, True),
    ],
)
def test_only_with_a_cpu_to_spare(
    device: str, usable: int, busy: int, sharing: int, spare: bool, tiny: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    plan = make_plan(request(tiny, tmp_path))
    plan.device, plan.sharing = torch.device(device), sharing
    torch.set_num_threads(busy)
    monkeypatch.setattr(threads, "cpu_quota", lambda: float(usable))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "getloadavg", lambda: (2.5, 0.0, 0.0))
    assert has_spare_cpu(plan) is spare
    monkeypatch.setattr(os, "getloadavg", lambda: (64.0, 0.0, 0.0))
    assert not has_spare_cpu(plan), "the machine is crowded"
    assert Workshop(plan, alone=False)._ahead is None, "other workers may be on the same node"


def test_memory_beyond_the_bound_is_refused_to_the_process_alone() -> None:
    """Measured in a process of its own: the bound is the process's."""
    script = (
        "from biobench.finetune.ahead import _at_most\n"
        "import resource\nbefore = resource.getrlimit(resource.RLIMIT_DATA)\n"
        "try:\n    with _at_most(64 << 20):\n        bytearray(16 << 20)\n        print('fits')\n"
        "        bytearray(256 << 20)\nexcept MemoryError:\n    print('refused')\n"
        "assert resource.getrlimit(resource.RLIMIT_DATA) == before\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["fits", "refused"]


def test_the_last_task_received_is_the_one_that_is_tokenised(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = multiprocessing.Pipe(duplex=False)
    seen: list[object] = []

    def fails(task: object) -> None:
        seen.append(task)
        there.close()
        raise ValueError("is not reported")

    monkeypatch.setattr(ahead, "_stand_back", lambda: None)
    monkeypatch.setattr(ahead, "tokenise", fails)
    for name in ("first", "second", "third"):
        there.send(name)
    tokenise_all(here)
    assert seen == ["third"]
