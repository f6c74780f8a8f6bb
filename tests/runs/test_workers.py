"""Worker processes share a plan without doubling it; a dead one costs nothing but its own run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from biobench.runs import workers
from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.runs.workers import worker_count
from biobench.store import Store
from biobench.store.claims import read_heartbeat
from tests.helpers.cli_make import SCRIPT

Request = Callable[..., RunRequest]


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
        assert 0 < done <= total if total else what in ("loading model", "encoding texts")
        if total:
            assert "loss" in what or what in ("validation", "test")
            self.stepped.add(run.key)

    def finish(self, result: RunResult) -> None:
        self.finished.append((result.key, result.status))


def test_how_many_workers(request_of: Request) -> None:
    for parallel, at_once, count in (("auto", "1", 1), ("3", "1", 3), ("2", 2, 4)):
        assert (
            worker_count(make_plan(request_of(parallel=parallel, seeds_at_once=at_once))) == count
        )


@pytest.mark.parametrize(
    ("free", "threads", "count"), [(0, 8, 1), (5 << 30, 8, 2), (64 << 30, 8, 3), (64 << 30, 2, 2)]
)
def test_auto_counts_memory_seeds_and_threads(
    request_of: Request, free: int, threads: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "free_memory_bytes", lambda device: free)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert worker_count(make_plan(request_of(seeds="1-3", seeds_at_once="auto"))) == count
    if free == 64 << 30 and threads == 8:
        run_plan(make_plan(request_of(seeds="1")), Reporter())
        (record,) = Store(request_of().results_dir).records()
        monkeypatch.setattr(
            workers, "free_memory_bytes", lambda device: 2.3 * record.cost.peak_memory_bytes
        )
        assert worker_count(make_plan(request_of(seeds="1-3", seeds_at_once="auto"))) == 2, (
            "the measured peak"
        )


@pytest.mark.parametrize(
    ("longest", "window", "least", "most"), [(200_000, 4096, 44, 50), (200, 512, 5, 8)]
)
def test_five_long_document_runs_of_a_base_model_are_not_planned_on_one_card(
    longest: int, window: int, least: int, most: int
) -> None:
    base = SimpleNamespace(hidden_size=768, intermediate_size=1152, num_hidden_layers=22)
    spec = SimpleNamespace(
        training=SimpleNamespace(encoder="trained", batch_size=16),
        protocol=SimpleNamespace(max_length=window),
    )
    documents = [SimpleNamespace(reading="x" * size) for size in (longest, 10)]
    data = SimpleNamespace(train=documents)
    task = SimpleNamespace(spec=spec, data=data, precision="bf16")
    checkpoint = SimpleNamespace(parameters=149_000_000, config=base)
    item = SimpleNamespace(is_frozen=False, task=task, checkpoint=checkpoint)
    planned = workers._planned_bytes(item, torch.device("cuda"))  # type: ignore[arg-type]
    assert least < planned / 2**30 < most
    assert (5 * planned > 0.9 * 78 * 2**30) == (longest > 200)
    item.is_frozen = True
    frozen = workers._planned_bytes(item, torch.device("cuda"))  # type: ignore[arg-type]
    assert frozen == workers.planned_memory_bytes(149_000_000)


def test_the_peak_of_one_task_does_not_speak_for_another(
    request_of: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(workers, "_planned_bytes", lambda item, device: 10 << 30)
    monkeypatch.setattr(workers, "free_memory_bytes", lambda device: 25 << 30)
    run_plan(make_plan(request_of(tasks=("demo_topic",), seeds="1")), Reporter())
    seeds = {"seeds": "1-3", "seeds_at_once": "auto"}
    assert worker_count(make_plan(request_of(tasks=("demo_topic",), **seeds))) == 3
    both = make_plan(request_of(tasks=("demo_topic", "demo_ner"), **seeds))
    assert worker_count(both) == 2


def test_two_workers_make_each_run_once_and_as_one_process_does(
    request_of: Request, tmp_path: Path
) -> None:
    """Dropout on; each run with one thread, so that not even rounding differs. Two kinds of
    task."""

    def request(folder: str, **more: int) -> RunRequest:
        return request_of(
            tasks=("demo_topic", "demo_ner"),
            started=time.time(),
            results_dir=tmp_path / folder,
            **more,
        )

    heard = Notes()
    results = run_plan(make_plan(request("shared", seeds_at_once=2, threads=2)), heard)
    assert [r.status for r in results] == ["done"] * 4
    keys = {r.key for r in results}
    assert {key for key, _, _ in heard.started} == heard.stepped == keys
    assert [(position, total) for _, position, total in heard.started] == [
        (n, 4) for n in (1, 2, 3, 4)
    ]
    assert sorted(heard.finished) == sorted((key, "done") for key in keys), "each run ends once"
    again = make_plan(request("shared", parallel=2))
    assert again.undone() == []
    assert [r.status for r in run_plan(again, Reporter())] == ["skipped"] * 4
    before = torch.get_num_threads()
    run_plan(make_plan(request("alone", threads=1)), Reporter())
    assert torch.get_num_threads() == before
    alone, shared = (
        {r.key: r for r in Store(tmp_path / name).records()} for name in ("alone", "shared")
    )
    assert alone.keys() == shared.keys() == keys
    for key, record in alone.items():
        assert record.provenance.threads == shared[key].provenance.threads == 1
        assert record.training == shared[key].training
        assert (record.scores, record.predictions_sha256) == (
            shared[key].scores,
            shared[key].predictions_sha256,
        )


def test_what_fails_in_a_worker_is_not_tried_again_and_no_script_runs_twice(
    request_of: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Called from a script without a guard around its call, as users write it."""
    script = ModuleType("__main__")
    script.__file__ = str(tmp_path / "script.py")
    (tmp_path / "script.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.setitem(sys.modules, "__main__", script)
    wild = ("training.epochs=1", "training.learning_rate=1e10", "training.max_grad_norm=1e30")
    heard = Notes()
    results = run_plan(make_plan(request_of(overrides=wild, parallel=2)), heard)
    assert [r.status for r in results] == ["failed"] * 2
    assert all("not finite" in (r.reason or "") for r in results), results
    assert len(heard.started) == len(heard.finished) == 2
    assert not (tmp_path / "ran").exists()


def test_what_two_workers_warn_of_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    pipes = []
    for _ in range(2):
        here, there = multiprocessing.Pipe(duplex=False)
        workers._Wire(there).warn("demo_topic fails its gate")
        there.close()
        pipes.append(here)
    assert workers._listen(pipes, 0, 2, Reporter(), []) == {}
    assert caplog.messages == ["demo_topic fails its gate"]


def test_workers_that_end_early_are_reported(
    request_of: Request, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "work", os._exit)
    results = run_plan(make_plan(request_of(seeds_at_once=2)), Reporter())
    assert [r.status for r in results] == ["done"] * 2
    assert "2 of 2 workers ended early; their runs are made here" in caplog.text


def _gone(pid: int) -> bool:
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="needs /proc, to look at the workers from outside"
)
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_workers_end_with_their_parent(tiny: Path, tmp_path: Path, how: signal.Signals) -> None:
    options = "--task demo_topic --seeds 1-2 --set training.epochs=2000 --device cpu --parallel 2"
    words = ["run", tiny, *options.split(), "--results-dir", tmp_path / "results"]
    with (tmp_path / "err").open("w") as err:
        # What a shell puts into the background ignores SIGINT, and so would all that it starts.
        heard = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
        streams = {
            "stdout": subprocess.DEVNULL,
            "stderr": err,
            "env": {**os.environ, "OMP_NUM_THREADS": "1"},
        }
        parent = subprocess.Popen([SCRIPT, *words], cwd=tmp_path, preexec_fn=heard, **streams)
    until = time.monotonic() + 240
    try:
        while (tmp_path / "err").read_text().count(": started") < 2:
            assert parent.poll() is None, (tmp_path / "err").read_text()
            assert time.monotonic() < until, "the workers did not start"
            time.sleep(0.1)
        beats = [read_heartbeat(path) for path in tmp_path.glob("results/locks/*/*.running")]
        children = {beat.pid for beat in beats if beat is not None} - {parent.pid}
        assert len(children) == 2
        parent.send_signal(how)
        assert parent.wait(timeout=60) != 0
        while not all(_gone(pid) for pid in children):
            assert time.monotonic() < until, "a worker outlived its parent"
            time.sleep(0.1)
    finally:
        parent.kill()
        parent.wait()
    assert "Traceback" not in (tmp_path / "err").read_text()
    assert Store(tmp_path / "results").scan() == ([], [])
