"""Runs as tasks of Ray, with threads in its place: each once, whatever ends a task."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import ClusterError, UsageError
from biobench.runs import ray as on_ray
from biobench.runs import selection
from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.ray import Orders, cpus_of_a_run, make_one, scratch_folder
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.runs.status import folder_state
from biobench.store import Store
from tests.helpers.ray_stand_in import LostError, RayStandIn


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> RayStandIn:
    """Two nodes of one CPU each, which the command has joined."""
    module = RayStandIn({"CPU": 1.0}, {"CPU": 1.0})
    turn = threading.Lock()

    execute = on_ray.execute

    def one_by_one(*arguments: Any, **more: Any) -> Iterator[RunResult]:
        """Two runs of one process would share what a network's forward pass keeps; real tasks have
        processes.
        """
        with turn:
            results = list(execute(*arguments, **more))
        yield from results

    monkeypatch.setattr(on_ray, "execute", one_by_one)
    monkeypatch.setattr(on_ray, "import_module", lambda name: module)
    monkeypatch.setattr(selection, "find_spec", lambda name: object())
    on_ray._context_here.cache_clear()
    return module


@pytest.fixture
def request_(request_of: Callable[..., RunRequest]) -> RunRequest:
    return request_of(seeds="1-3", parallel=2, executor="ray", started=1.0)


def made(request: RunRequest, heard: Reporter) -> dict[int, RunResult]:
    """By seed."""
    return {result.seed or 0: result for result in run_plan(make_plan(request), heard)}


def instead(monkeypatch: pytest.MonkeyPatch, before: Callable[[Any], Reporter | None]) -> None:
    """What a task does before its run; it may give another reporter."""
    execute = on_ray.execute

    def changed(context: Any, items: Any, reporter: Any, **more: Any) -> Iterator[RunResult]:
        yield from execute(context, items, before(items[0]) or reporter, **more)

    monkeypatch.setattr(on_ray, "execute", changed)


def test_each_run_once_and_as_on_one_machine(
    ray: RayStandIn, request_: RunRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[int | None] = []
    heard = Reporter()
    monkeypatch.setattr(heard, "finish", lambda result: ends.append(result.seed))
    results = made(request_, heard)
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert sorted(ends) == [1, 2, 3]
    assert [(r["num_cpus"], r["num_gpus"], r["max_retries"]) for r in ray.reserved] == [
        (1, 0.0, 2)
    ] * 3
    assert not list((tmp_path / "results" / "locks").glob(".seen*"))
    alone = made(
        replace(request_, executor="local", parallel=1, results_dir=tmp_path / "alone"), Reporter()
    )
    assert {s: r.scores for s, r in results.items()} == {s: r.scores for s, r in alone.items()}
    assert {r.status for r in made(request_, Reporter()).values()} == {"skipped"}
    assert len(ray.reserved) == 3, "nothing was left to hand out"


def test_a_run_that_kills_every_process_has_failed(
    ray: RayStandIn, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(item: Any) -> None:
        if item.seed == 1:
            raise LostError("The node is gone.\nMore of it.")

    instead(monkeypatch, die)
    results = made(request_, Reporter())
    assert results[1].status == "failed"
    assert results[1].reason == "3 processes died of it; the last: The node is gone."
    assert [results[2].status, results[3].status] == ["done", "done"]
    assert folder_state(request_.results_dir).counts() == {
        "done": 2,
        "running": 0,
        "failed": 1,
        "stopped": 0,
    }


def test_nodes_without_the_program(
    ray: RayStandIn, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise ModuleNotFoundError("No module named 'biobench'")

    monkeypatch.setattr(on_ray, "make_one", missing)
    with pytest.raises(
        ClusterError, match=r"demo_topic, seed ., failed on a node: .*No module named 'biobench'"
    ):
        made(request_, Reporter())


def test_nodes_that_do_not_see_the_folder(
    ray: RayStandIn, request_: RunRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(on_ray, "sees", lambda folder, token: False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "node"))
    (tmp_path / "node").mkdir()
    ray.resources[:] = [{"CPU": 2.0, "GPU": 1.0}]
    results = made(replace(request_, gate=True, worker_gpus=0.5), Reporter())
    assert {(r.status, r.reason) for r in results.values()} == {("done", None)}
    assert [(r["num_cpus"], r["num_gpus"]) for r in ray.reserved] == [(1, 0.5)] * 3
    store = Store(request_.results_dir)
    assert {r.seed for r in store.records()} == {1, 2, 3}
    for record in store.records():
        store.load_predictions(record)  # proved by their hash
        assert results[record.seed].predictions == str(store.path_of(record))
    assert len(list(Path(request_.results_dir).glob("floors/**/*.json"))) == 1, (
        "the gate is asked here"
    )
    node = scratch_folder(str(Path(request_.results_dir).resolve()))
    assert node.is_relative_to(tmp_path / "node")
    assert Store(node).records() == [], "a node keeps no results"
    on_ray._context_here.cache_clear()
    with pytest.raises(UsageError, match=r"--keep-model: node .* does not see"):
        made(replace(request_, seeds="4", keep_model=tmp_path / "kept"), Reporter())
    wild = ("training.epochs=1", "training.learning_rate=1e10", "training.max_grad_norm=1e30")
    on_ray._context_here.cache_clear()
    assert made(replace(request_, seeds="1", overrides=wild), Reporter())[1].status == "failed"
    (run,) = [run for run in folder_state(request_.results_dir).runs if run.state == "failed"]
    assert "not finite" in (run.reason or "")


def test_a_signal_ends_the_runs_at_savepoints(
    ray: RayStandIn, request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STOP, "set", False)

    class Stopper(Reporter):
        def step(self, run: RunName, done: int, total: int, what: str) -> None:
            STOP.set = total > 0  # not while the model is loaded

    instead(monkeypatch, lambda item: Stopper())
    long = replace(request_, seeds="1", overrides=("training.epochs=200",), save_every=0.0)
    with pytest.raises(RunStoppedError):
        made(long, Reporter())
    (run,) = folder_state(long.results_dir).runs
    assert run.state == "stopped"


def test_a_node_that_would_make_other_runs(request_: RunRequest, tmp_path: Path) -> None:
    plan = make_plan(replace(request_, executor="local", parallel=1))
    orders = Orders(
        replace(plan.request, results_dir=tmp_path), str(Path.cwd()), "no such token", 1
    )
    on_ray._context_here.cache_clear()
    before = signal.getsignal(signal.SIGINT)
    error, _ = make_one(orders, "0" * 32)
    signal.signal(signal.SIGINT, before)  # which a task takes for the request to stop
    assert "would make other runs than those that are planned" in str(error)
    assert on_ray._context_here(orders)[1] is False


def test_ray_is_asked_for_where_it_is_not_installed(
    request_: RunRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="ray is not installed"):
        make_plan(request_)


def node(cpus: int, gpus: int = 0) -> dict[str, float]:
    return {"CPU": float(cpus), "GPU": float(gpus)}


@pytest.mark.parametrize(
    ("nodes", "gpus", "cpus"),
    [
        ([node(8), node(8)], 0.0, 4),
        ([node(2), {"CPU": 2.0}], 0.0, 2),
        ([{}, node(4)], 0.0, 4),  # a head node without CPUs
        ([node(8, 2)], 1.0, 4),
        ([node(8, 1), node(8)], 0.5, 4),
        ([node(8, 2)], 0.4, 1),
        ([node(2, 4)], 1.0, 1),  # each needs a CPU
    ],
)
def test_what_a_run_reserves(nodes: list[dict[str, float]], gpus: float, cpus: int) -> None:
    assert cpus_of_a_run(nodes, gpus) == cpus


@pytest.mark.parametrize(("cpus", "gpus", "kind"), [(8, 1.0, "GPU"), (0, 0.0, "CPU")])
def test_nothing_has_room(cpus: int, gpus: float, kind: str) -> None:
    with pytest.raises(UsageError, match=f"the cluster has no {kind} for a run"):
        cpus_of_a_run([node(cpus)], gpus)
