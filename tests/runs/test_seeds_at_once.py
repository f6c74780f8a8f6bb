"""Runs that share a device are the runs made one by one; one that does not fit beside the others is made alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.errors import UsageError
from biobench.finetune.loop import MemoryShortError
from biobench.runs import execute as execution
from biobench.runs import workers
from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import Reporter
from biobench.runs.workers import runs_per_device
from biobench.store import Store
from tests.helpers.golden_make import write_checkpoint, write_tasks
from tests.helpers.tiny import make_tiny_encoder


def request_fields(folder: Path) -> dict[str, Any]:
    """Three seeds of a demo task, a matter of tenths of a second each."""
    return {
        "model": (str(make_tiny_encoder(folder / "tiny")),),
        "tasks": ("demo_topic",),
        "seeds": "1-3",
        "results_dir": str(folder / "results"),
        "device": "cpu",
        "overrides": ("training.epochs=1",),
        "limit": 20,
    }


def request(folder: Path, **changed: Any) -> RunRequest:
    """The same as a request."""
    return replace(RunRequest(**request_fields(folder)), **changed)


def test_side_by_side_they_are_the_same_runs(tmp_path: Path) -> None:
    """Every kind of task, dropout on; each run with one thread, so that not even rounding differs."""
    tasks = write_tasks(tmp_path / "data")
    del tasks["golden_names"]  # of the frozen track alone
    basis = RunRequest(
        model=write_checkpoint("modernbert", tmp_path / "modernbert"),
        tasks=["demo_ner", "demo_topic", *tasks.values()],
        seeds="1-2",
        device="cpu",
        data_dir=tmp_path / "data",
        overrides=("training.epochs=1", "protocol.max_length=224"),
        gate=False,
    )
    records = {}
    for name, changed in {"alone": {"threads": 1}, "shared": {"threads": 2, "seeds_at_once": "2"}}.items():
        folder = tmp_path / name
        results = run_plan(make_plan(replace(basis, results_dir=str(folder), **changed)), Reporter())
        assert [(r.model, r.task, r.reason) for r in results if r.status != "done"] == []
        records[name] = {r.key: r for r in Store(folder).records()}
    assert len(records["alone"]) == 2 * (2 + len(tasks))
    assert records["alone"].keys() == records["shared"].keys()
    for key, alone in records["alone"].items():
        shared = records["shared"][key]
        assert shared.provenance.threads == alone.provenance.threads == 1
        assert shared.training == alone.training
        assert shared.scores == alone.scores
        assert shared.predictions_sha256 == alone.predictions_sha256


def test_a_run_that_does_not_fit_beside_others_is_made_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = execution.finetune
    crowded = True

    def small(*arguments: Any) -> Any:
        if crowded:
            raise MemoryShortError("memory does not suffice for a single document", hint="a smaller model")
        return whole(*arguments)

    monkeypatch.setattr(execution, "finetune", small)
    basis = request(tmp_path)
    workers._work(basis, Reporter(), 2)
    assert Store(basis.results_dir).records() == []
    crowded = False
    results = run_plan(make_plan(basis), Reporter())
    assert [(r.status, r.reason) for r in results] == [("done", None)] * 3
    crowded = True
    again = replace(basis, results_dir=str(tmp_path / "again"), started=time.time())
    results = run_plan(make_plan(again), Reporter())
    assert [r.status for r in results] == ["failed"] * 3, "alone it is the run's own failure"
    assert all("memory does not suffice" in (r.reason or "") for r in results)


def test_workers_do_not_run_the_callers_script_again(tmp_path: Path) -> None:
    """A script without a guard around its call, as users write it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nprint('script')\nfrom biobench.runs.plan import RunRequest, make_plan\n"
        "from biobench.runs.api import run_plan\nfrom biobench.runs.result import Reporter\n"
        f"request = RunRequest(**{request_fields(tmp_path)!r}, seeds_at_once='2', threads=2)\n"
        "print(*(r.status for r in run_plan(make_plan(request), Reporter())))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["script", "done", "done", "done"]
    assert "ended early" not in done.stderr
    assert {r.provenance.threads for r in Store(tmp_path / "results").records()} == {1}, "made by the workers"


def test_workers_that_end_early_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "work", os._exit)
    results = run_plan(make_plan(request(tmp_path, seeds_at_once="2")), Reporter())
    assert [r.status for r in results] == ["done"] * 3
    assert "2 of 2 workers ended early; their runs are made here" in caplog.text


@pytest.mark.parametrize(("free", "threads", "count"), [(0, 8, 1), (5 << 30, 8, 2), (64 << 30, 8, 3), (64 << 30, 2, 2)])
def test_auto_counts_memory_seeds_and_threads(
    free: int, threads: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "free_memory_bytes", lambda device: free)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert runs_per_device(make_plan(request(tmp_path, seeds_at_once="auto"))) == count


def test_auto_takes_the_measured_peak_of_a_stored_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    basis = request(tmp_path)
    run_plan(make_plan(replace(basis, seeds="1")), Reporter())
    (record,) = Store(basis.results_dir).records()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(workers, "free_memory_bytes", lambda device: 2.3 * record.cost.peak_memory_bytes)
    assert runs_per_device(make_plan(replace(basis, seeds_at_once="auto"))) == 2


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_is_refused_before_anything_is_written(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--seeds-at-once"):
        make_plan(request(tmp_path, seeds_at_once=wrong))
    assert not (tmp_path / "results").exists()


def test_threads_are_those_of_all_workers_and_recorded(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    basis = request(tmp_path, seeds="1", threads=3)
    run_plan(make_plan(basis), Reporter())
    assert torch.get_num_threads() == before
    assert [r.provenance.threads for r in Store(basis.results_dir).records()] == [3]
