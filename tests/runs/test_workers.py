"""Worker processes share a plan without doubling it; a dead one costs nothing but its own run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.errors import UsageError
from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.runs.workers import worker_count
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder


class Notes(Reporter):
    """A reporter that writes down what it hears."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int, int]] = []
        self.stepped: set[str] = set()
        self.finished: list[tuple[str | None, str]] = []

    def start(self, run: RunName, position: int, total: int) -> None:
        assert run.key not in self.stepped
        self.started.append((run.key, position, total))

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        if total:
            assert 0 < done <= total
            assert "loss" in what or what in ("validation", "test")
            self.stepped.add(run.key)
        else:
            assert what in ("loading model", "encoding texts")

    def finish(self, result: RunResult) -> None:
        self.finished.append((result.key, result.status))


def _request(folder: Path, *overrides: str) -> RunRequest:
    """Two seeds of a demo task by two workers, a matter of tenths of a second each."""
    return RunRequest(
        model=(str(make_tiny_encoder(folder / "tiny")),),
        tasks=("demo_topic",),
        seeds="1-2",
        results_dir=str(folder / "results"),
        device="cpu",
        parallel="2",
        overrides=("training.epochs=1", *overrides),
        limit=20,
    )


def test_how_many_workers(tmp_path: Path) -> None:
    request = _request(tmp_path)
    for parallel, at_once, count in (("auto", "1", 1), ("3", "1", 3), ("2", "2", 4)):
        assert worker_count(make_plan(replace(request, parallel=parallel, seeds_at_once=at_once))) == count
    for wrong in ("0", "-1", "many"):
        with pytest.raises(UsageError, match="not a number of workers"):
            make_plan(replace(request, parallel=wrong))


def test_two_workers_make_each_run_once(tmp_path: Path) -> None:
    base = _request(tmp_path)

    def request(folder: str, parallel: str) -> RunRequest:
        return replace(base, started=time.time(), seeds="1-3", results_dir=str(tmp_path / folder), parallel=parallel)

    heard = Notes()
    results = run_plan(make_plan(request("shared", "2")), heard)
    assert [r.status for r in results] == ["done"] * 3
    keys = {r.key for r in results}
    assert {key for key, _, _ in heard.started} == heard.stepped == keys
    assert [(position, total) for _, position, total in heard.started] == [(1, 3), (2, 3), (3, 3)]
    assert sorted(heard.finished) == sorted((key, "done") for key in keys), "each run ends once"
    records = Store(tmp_path / "shared").records()
    assert sorted(r.key for r in records) == sorted(r.key or "" for r in results)
    again = make_plan(request("shared", "2"))
    assert again.undone() == []
    assert [r.status for r in run_plan(again, Reporter())] == ["skipped"] * 3
    alone = run_plan(make_plan(request("alone", "1")), Reporter())
    assert {r.seed: r.scores for r in alone} == {r.seed: r.scores for r in results}


def test_what_fails_in_a_worker_is_not_tried_again(tmp_path: Path) -> None:
    wild = ("training.learning_rate=1e30", "training.max_grad_norm=1e30")
    heard = Notes()
    results = run_plan(make_plan(_request(tmp_path, *wild)), heard)
    assert [r.status for r in results] == ["failed"] * 2
    assert all("not finite" in (r.reason or "") for r in results), results
    assert len(heard.started) == len(heard.finished) == 2


def _children(pid: int) -> set[int]:
    """Processes below `pid` that run Python code of ours (not the bookkeeper of shared memory)."""
    found = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            found.add(int(child))
    return found


def _gone(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc, to look at the workers from outside")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    model = make_tiny_encoder(tmp_path / "tiny")
    words = ["run", str(model), "--task", "demo_topic", "--seeds", "1-2", "--set", "training.epochs=2000"]
    words += ["--device", "cpu", "--parallel", "2", "--results-dir", str(tmp_path / "results")]
    with (tmp_path / "err").open("w") as err:
        parent = subprocess.Popen(
            [Path(sys.executable).parent / "biobench", *words],
            stdout=subprocess.DEVNULL,
            stderr=err,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            # What a shell puts into the background ignores SIGINT, and so would all that it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        until = time.monotonic() + 240
        while (tmp_path / "err").read_text(encoding="utf-8").count(": started") < 2:
            assert parent.poll() is None, (tmp_path / "err").read_text(encoding="utf-8")
            assert time.monotonic() < until, "the workers did not start"
            time.sleep(0.1)
        workers = _children(parent.pid)
        assert len(workers) == 2
        parent.send_signal(how)
        assert parent.wait(timeout=60) != 0
        while not all(_gone(pid) for pid in workers):
            assert time.monotonic() < until, "a worker outlived its parent"
            time.sleep(0.1)
    finally:
        parent.kill()
        parent.wait()
    assert "Traceback" not in (tmp_path / "err").read_text(encoding="utf-8")
    assert Store(tmp_path / "results").scan() == ([], [])
