"""Runs handed out to workers on nodes, with threads in place of Ray: each once, whatever ends a worker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import ClusterError, UsageError
from biobench.finetune.loop import MemoryShortError
from biobench.runs.api import run_plan
from biobench.runs.cluster import dispatch, entry, worker
from biobench.runs.cluster.worker import Orders, fingerprints, planned_here, scratch_folder
from biobench.runs.execute import Silent
from biobench.runs.jobs.status import progress
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import RunName, RunResult
from biobench.store import Store
from tests.helpers.ray_stand_in import RayStandIn
from tests.helpers.tiny import make_tiny_encoder


class Heard:
    """A reporter that counts, and does something as a run begins."""

    def __init__(self, at_start: Any = None) -> None:
        self.at_start = at_start
        self.starts: list[tuple[int, int, int]] = []
        self.stepped: set[int] = set()
        self.ends: Counter[int] = Counter()

    def start(self, run: RunName, position: int, total: int) -> None:
        self.starts.append((run.seed, position, total))
        if self.at_start is not None:
            self.at_start(run)

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        self.stepped.add(run.seed)

    def finish(self, result: RunResult) -> None:
        assert result.seed is not None
        self.ends[result.seed] += 1


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> RayStandIn:
    """Two nodes of one CPU each, which the command has joined."""
    module = RayStandIn({"CPU": 1.0}, {"CPU": 1.0})
    joined = SimpleNamespace(is_initialized=lambda: True)
    for name in ("nodes", "remote", "wait", "get", "kill", "exceptions"):
        setattr(joined, name, getattr(module, name))
    execute, turn = worker.execute, threading.Lock()

    def one_by_one(plan: Any, reporter: Any, workshop: Any) -> Iterator[RunResult]:
        """Two runs of one process would share what a network's forward pass keeps; real workers are processes."""
        with turn:
            results = list(execute(plan, reporter, workshop=workshop))
        yield from results

    monkeypatch.setattr(worker, "execute", one_by_one)
    monkeypatch.setattr(entry, "find_spec", lambda name: object())
    monkeypatch.setattr(entry, "import_module", lambda name: joined)
    return module


@pytest.fixture
def request_of(tiny: Path, tmp_path: Path) -> RunRequest:
    return RunRequest(
        str(tiny),
        "demo_topic",
        seeds="1-3",
        results_dir=tmp_path / "results",
        device="cpu",
        parallel=2,
        executor="ray",
        overrides="training.epochs=1",
        limit=20,
        gate=False,
        started=time.time(),
    )


def made(request: RunRequest, heard: Heard | Silent) -> dict[int, RunResult]:
    """By seed."""
    return {result.seed or 0: result for result in run_plan(make_plan(request), heard)}


def dying(monkeypatch: pytest.MonkeyPatch, ray: RayStandIn, seed: int, times: int) -> Any:
    """Workers that begin this run die, so often; what kills them, for `Heard`."""
    execute, deaths = worker.execute, Counter[int]()

    def fatal(plan: Any, reporter: Any, workshop: Any) -> Iterator[RunResult]:
        (item,) = plan.items
        if item.seed == seed and deaths[seed] < times:
            reporter.start(RunName(item.key, "tiny", item.task.id, seed), 1, 1)
            threading.Event().wait()  # this thread says no more
        yield from execute(plan, reporter, workshop=workshop)

    def kill(run: RunName) -> None:
        if run.seed == seed and deaths[seed] < times:
            deaths[seed] += 1
            for actor in ray.actors:
                actor.dead = "The node is gone.\nMore of it."

    monkeypatch.setattr(worker, "execute", fatal)
    return kill


def test_each_run_once_and_as_on_one_machine(ray: RayStandIn, request_of: RunRequest, tmp_path: Path) -> None:
    heard = Heard()
    results = made(request_of, heard)
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert sorted(heard.starts) == sorted({(seed, place, 3) for seed, place, _ in heard.starts})
    assert sorted(place for _, place, _ in heard.starts) == [1, 2, 3]
    assert heard.stepped == {1, 2, 3}
    assert heard.ends == Counter({1: 1, 2: 1, 3: 1})
    assert len(ray.actors) == 2
    assert ray.reserved[0]["num_cpus"] == 1
    assert ray.reserved[0]["num_gpus"] == 0
    assert not list((tmp_path / "results" / "locks").glob(".seen*"))
    alone = made(replace(request_of, executor="local", parallel=1, results_dir=tmp_path / "alone"), Silent())
    assert {s: r.scores for s, r in results.items()} == {s: r.scores for s, r in alone.items()}
    assert {r.status for r in made(request_of, Silent()).values()} == {"skipped"}
    assert len(ray.actors) == 2, "nothing was left to start a worker for"


def test_a_run_whose_worker_died_is_made_by_another(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard(dying(monkeypatch, ray, 1, times=1))
    results = made(replace(request_of, parallel=1), heard)
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert [s for s in heard.starts if s[0] == 1] == [(1, 1, 3)] * 2, "it keeps its place"
    assert heard.ends == Counter({1: 1, 2: 1, 3: 1})
    assert len(ray.actors) == 2
    assert "demo_topic, seed 1: the worker on" in caplog.text
    assert "was lost (The node is gone.)" in caplog.text


def test_a_run_that_kills_every_worker_has_failed(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = made(replace(request_of, parallel=1), Heard(dying(monkeypatch, ray, 1, times=9)))
    assert results[1].status == "failed"
    assert results[1].reason == "3 workers died of it; the last: The node is gone."
    assert [results[2].status, results[3].status] == ["done", "done"]
    assert [run.state for run in progress(request_of.results_dir).runs].count("failed") == 1


def test_nodes_without_the_program(ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(orders: Orders) -> None:
        raise ModuleNotFoundError("No module named 'biobench'")

    monkeypatch.setattr(dispatch, "NodeWorker", missing)
    with pytest.raises(ClusterError, match="3 workers in a row ended before their first run: No module named"):
        made(request_of, Silent())


def test_nodes_that_do_not_see_the_folder(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "sees", lambda folder, token: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "node"))
    (tmp_path / "node").mkdir()
    states = set()
    heard = Heard(lambda run: states.update(r.state for r in progress(request_of.results_dir).runs))
    results = made(request_of, heard)
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert "running" in states, "`biobench status` knows of them where the command runs"
    store = Store(request_of.results_dir)
    assert {r.seed for r in store.records()} == {1, 2, 3}
    for record in store.records():
        store.load_predictions(record)  # proved by their hash
        assert results[record.seed].predictions == str(store.path_of(record))
    node = scratch_folder(str(Path(request_of.results_dir).resolve()))
    assert node.is_relative_to(tmp_path / "node")
    assert Store(node).records() == [], "a node keeps no results"
    assert progress(request_of.results_dir).count("running") == 0
    with pytest.raises(UsageError, match=r"--keep-model: node .* does not see"):
        made(replace(request_of, seeds="4", keep_model=tmp_path / "kept"), Silent())


def test_a_failure_on_a_node_that_does_not_see_the_folder(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(worker, "sees", lambda folder, token: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wild = ("training.epochs=1", "training.learning_rate=1e30", "training.max_grad_norm=1e30")
    results = made(replace(request_of, seeds="1", overrides=wild), Silent())
    assert results[1].status == "failed"
    (run,) = progress(request_of.results_dir).runs
    assert run.state == "failed"
    assert "not finite" in (run.reason or "")


def test_a_run_that_does_not_fit_beside_others_is_made_alone(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = worker.execute

    def narrow(plan: Any, reporter: Any, workshop: Any) -> Iterator[RunResult]:
        if plan.sharing > 1 and plan.items[0].seed == 1:
            raise MemoryShortError("memory does not suffice beside other runs", hint="run it alone")
        yield from execute(plan, reporter, workshop=workshop)

    monkeypatch.setattr(worker, "execute", narrow)
    ray.resources[:] = [{"CPU": 2.0, "GPU": 1.0}]
    results = made(replace(request_of, worker_gpus=0.5), Silent())
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert [(r["num_cpus"], r["num_gpus"]) for r in ray.reserved] == [(1, 0.5), (1, 0.5), (2, 1.0)]


def test_no_node_is_left(ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "PATIENCE", 0.0)
    start = dispatch.Dispatch._start_worker

    def gone(self: dispatch.Dispatch) -> None:
        start(self)
        ray.resources.clear()
        ray.is_silent = True

    monkeypatch.setattr(dispatch.Dispatch, "_start_worker", gone)
    with pytest.raises(ClusterError, match=r"no node of the cluster is left .*; 3 runs are not made"):
        made(request_of, Silent())


def test_a_signal_ends_the_runs_at_savepoints(
    ray: RayStandIn, request_of: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STOP, "set", False)
    stop = Heard(lambda run: setattr(STOP, "set", True))
    long = replace(request_of, seeds="1", overrides=("training.epochs=200",))
    with pytest.raises(RunStoppedError):
        made(long, stop)
    (run,) = progress(long.results_dir).runs
    assert run.state == "stopped"


def test_a_node_that_would_make_other_runs(request_of: RunRequest, tmp_path: Path) -> None:
    plan = make_plan(replace(request_of, executor="local", parallel=1))
    runs = fingerprints(plan.items)
    key, first = next(iter(runs.items()))

    def orders(**changed: Any) -> Orders:
        other = {key: first} if not changed else {"0" * 32: first._replace(**changed)}
        request = replace(plan.request, results_dir=tmp_path)
        return Orders(request, str(Path.cwd()), "no such token", other, 1, 1)

    assert planned_here(orders())[1] is False
    with pytest.raises(ClusterError, match=r"precision .*, not bf17; engine 2, not 1"):
        planned_here(orders(precision="bf17", engine=1))
    with pytest.raises(ClusterError, match=r"node .* demo_topic with tiny has data [0-9a-f]{12}, not ffff"):
        planned_here(orders(data="ffff"))
    with pytest.raises(ClusterError, match="seed 77 is not among them"):
        planned_here(orders(seed=77))


def test_a_share_of_a_gpu(request_of: RunRequest) -> None:
    with pytest.raises(UsageError, match=r"--worker-gpus 1\.5 is no share"):
        make_plan(replace(request_of, worker_gpus=1.5))
    with pytest.raises(UsageError, match="--worker-gpus goes with --executor ray"):
        make_plan(replace(request_of, executor="local", worker_gpus=0.5))
