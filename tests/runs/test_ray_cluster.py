"""A real Ray cluster of several nodes on this machine: a node removed, shares of a GPU, `ray://`, no shared disk.

pip install 'ray[client]' -c constraints.txt
pytest -m slow tests/runs/test_ray_cluster.py      # some three minutes on two cores
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import Reporter, RunResult
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder

pytestmark = pytest.mark.slow
ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[client]'")
services: Any = pytest.importorskip("ray._private.services")
get_node = services.get_node
ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(1, 7)


class Heard(Reporter):
    """A reporter that counts. at_end: what is done when a run has ended."""

    def __init__(self, at_end: Callable[[], None] | None = None) -> None:
        self.at_end = at_end
        self.ends: Counter[int] = Counter()

    def finish(self, result: RunResult) -> None:
        self.ends[result.seed or 0] += 1
        if self.at_end is not None:
            self.at_end()


@contextmanager
def watching(folder: Path, look: Callable[[list[int]], None]) -> Iterator[None]:
    """Meanwhile `look` is given the processes that are at runs of the results folder, fifty times a second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            pids = []
            for path in (folder / "results" / "locks").glob("*/*.running"):
                with suppress(OSError, ValueError):
                    pids.append(int(json.loads(path.read_text())["pid"]))
            with suppress(OSError):  # of a process that has just ended
                look(pids)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> RunRequest:
    """Six runs, a second each on a quiet machine."""
    folder = tmp_path_factory.mktemp("ray")
    return RunRequest(
        str(make_tiny_encoder(folder / "tiny")),
        "demo_topic",
        seeds=SEEDS,
        results_dir=folder / "results",
        device="cpu",
        parallel=2,
        overrides="training.epochs=6",
        limit=40,
        gate=False,
    )


@pytest.fixture(scope="module")
def local(request_of: RunRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, float]]:
    """What the local executor gives, by seed."""
    folder = tmp_path_factory.mktemp("local")
    results = run_plan(make_plan(replace(request_of, results_dir=folder, parallel=1)), Reporter())
    return {r.seed or 0: r.scores for r in results}


def patient(*address: Any) -> Any:
    """A node's entry; Ray gives up after 30 seconds, in which a machine with other work starts none."""
    until = time.monotonic() + 240
    while True:
        try:
            return get_node(*address)
        except RuntimeError:
            assert time.monotonic() < until, "the node did not start"
            time.sleep(0.2)


@contextmanager
def head(**more: Any) -> Iterator[Any]:
    """A cluster whose first node has no CPU for workers, and this process beside it."""
    from ray.cluster_utils import Cluster

    # what the nodes start finds the program as this process does
    os.environ["PYTHONPATH"] = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    services.get_node = patient
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **more})
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def joined(cluster: Any) -> None:
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")


def ray_request(request: RunRequest, folder: Path, **changed: Any) -> RunRequest:
    return replace(request, started=time.time(), results_dir=folder / "results", executor="ray", **changed)


def once_and_equal(results: list[RunResult], folder: Path, local: dict[int, dict[str, float]], heard: Heard) -> None:
    """Every run has ended once, is stored once, and has the local executor's scores."""
    assert [r.status for r in results] == ["done"] * len(SEEDS)
    assert heard.ends == Counter(dict.fromkeys(SEEDS, 1))
    records = Store(folder / "results").records()
    assert sorted(r.seed for r in records) == sorted(SEEDS)
    assert {r.seed: r.scores for r in results} == local
    assert {r.seed: r.scores for r in records} == local
    assert not list((folder / "results" / "locks").glob("*/*.running"))


def parents(pid: int) -> set[int]:
    """The process and those above it."""
    above = set()
    while pid > 1:
        above.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return above


def test_a_node_is_removed_in_the_middle(
    request_of: RunRequest, local: dict[int, dict[str, float]], tmp_path: Path
) -> None:
    with head() as cluster:
        cluster.add_node(num_cpus=1)
        second = cluster.add_node(num_cpus=1)
        joined(cluster)
        raylet = second.all_processes["raylet"][0].process.pid
        lost: list[int] = []

        def remove(pids: list[int]) -> None:
            """The second node, while a run is made on it and another on the first."""
            below = [pid for pid in pids if raylet in parents(pid)]
            if not lost and below and len(pids) == 2:
                lost.extend(below)
                cluster.remove_node(second, allow_graceful=False)

        heard = Heard()
        with watching(tmp_path, remove):
            results = run_plan(make_plan(ray_request(request_of, tmp_path)), heard)
        assert len(lost) == 1
        once_and_equal(results, tmp_path, local, heard)


@pytest.mark.parametrize(("share", "at_once"), [(0.5, 2), (1.0, 1)])
def test_shares_of_a_gpu(
    request_of: RunRequest, local: dict[int, dict[str, float]], tmp_path: Path, share: float, at_once: int
) -> None:
    """One logical GPU on a node without any: Ray counts what each worker reserves."""
    with head() as cluster:
        cluster.add_node(num_cpus=2, num_gpus=1)
        joined(cluster)
        heard, most = Heard(), [0]
        request = ray_request(request_of, tmp_path, worker_gpus=share, parallel="auto")
        with watching(tmp_path, lambda pids: most.append(len(pids))):
            once_and_equal(run_plan(make_plan(request), heard), tmp_path, local, heard)
        assert max(most) == at_once
