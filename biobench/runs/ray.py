"""`--executor ray`: each run is one Ray task. Ray finds it a place, and tries it again where its process or node dies.

Every node needs the models and data of the machine that starts the command. A task that sees the results folder of that
machine works in it, claims included. One that does not works in a folder of its node and returns record and predictions
through Ray. Ray is an optional extra.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch

from biobench.core.files import read_regular, write_atomic
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.text import first_line
from biobench.errors import BioBenchError, ClusterError, UsageError
from biobench.finetune.loop import MemoryShortError
from biobench.models.loading import quiet_libraries
from biobench.runs.estimate import Pace, Paced
from biobench.runs.execute import RunContext, execute
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, make_plan
from biobench.runs.provenance import contamination
from biobench.runs.result import Reporter, RunResult, of_record

TRIES = 3
"""How often a run is begun whose process or node dies."""
LISTEN_SECONDS = 0.5
STOP_SECONDS = 300.0
"""How long the savepoints of runs that are to stop are waited for."""
Node = dict[str, float]
"""What a node has: CPU and GPU, in numbers, and whatever else Ray counts."""
Outcome = tuple[Literal["made", "stopped", "short", "refused"], Any, tuple[bytes, bytes] | None]
"""A word, a RunResult or BioBenchError, and record and predictions where the node does not see the results folder.

short: memory did not suffice beside other runs.
"""


@dataclass(frozen=True)
class Orders:
    """What a node needs to know. request: with the absolute path of the results folder.

    folder: where the command runs, for relative paths. token: a file in the results folder that has its own name as
    content. threads: of a run. sharing: runs that share its device and the memory of it.
    """

    request: RunRequest
    folder: str
    token: str
    threads: int
    sharing: int


def run_on_ray(context: RunContext, items: Sequence[Item], reporter: Reporter, pace: Pace) -> dict[str, RunResult]:
    """Make these runs on the cluster at RAY_ADDRESS, or on this machine; what came of each, by key.

    `--parallel N` bounds the runs at once. With --device cuda each reserves a GPU, or a share of one by `worker_gpus`,
    else four CPUs. Raises UsageError where no node has what a run reserves, ClusterError where no cluster answers or a
    node would make other runs, and RunStoppedError where a signal asks to stop.
    """
    ray: Any = import_module("ray")
    token = f".seen-{secrets.token_hex(8)}"  # a file by which a node knows whether it sees the same folder
    path = context.store.root / "locks" / token
    write_atomic(path, token.encode())
    try:
        with _joined(ray):
            return _Sweep(ray, context, items, reporter, pace, token).results()
    except ConnectionError as error:
        hint = "what is done is stored; repeat the command"
        raise ClusterError(f"the connection to the cluster was lost: {first_line(error)}", hint=hint) from error
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _joined(ray: Any) -> Iterator[None]:
    """Join the cluster, unless the caller has. Raises ClusterError."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "")
    quiet = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
    try:
        ray.init(**({} if address.startswith("ray://") else quiet))
    except (ConnectionError, RuntimeError, ValueError) as error:
        place = f"RAY_ADDRESS={address}" if address else "RAY_ADDRESS is not set"
        raise ClusterError(
            f"--executor ray: no cluster can be joined ({place}): {first_line(error)}",
            hint="start one with `ray start --head`; the versions of Ray and Python must be the cluster's",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def cpus_of_a_run(nodes: Sequence[Node], gpus: float) -> int:
    """What each run reserves beside its GPU (or share of one): a like part of a node's CPUs; else four, or all.

    Raises UsageError where no node has room for a run.
    """
    fitting = [node for node in nodes if node.get("CPU", 0) >= 1 and node.get("GPU", 0) >= gpus]
    if not fitting:
        raise UsageError(
            f"the cluster has no {'GPU' if gpus else 'CPU'} for a run",
            hint="--device cpu, or add GPU nodes" if gpus else "add nodes with CPUs",
        )
    if not gpus:
        return min(4, max(int(node["CPU"]) for node in fitting))
    return max(1, min(int(node["CPU"] * gpus / node["GPU"]) for node in fitting))


class _Sweep:
    """The runs that are to be made, those under way as Ray tasks, and what has come of them."""

    def __init__(
        self, ray: Any, context: RunContext, items: Sequence[Item], reporter: Reporter, pace: Pace, token: str
    ) -> None:
        self.ray, self.context, self.store, self.task = ray, context, context.store, ray.remote(make_one)
        self.request, device = context.plan.request, context.plan.device.type
        wanted = self.request.worker_gpus
        self.gpus = (1.0 if device == "cuda" else 0.0) if wanted is None else wanted
        self.nodes: list[Node] = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        self.cpus = cpus_of_a_run(self.nodes, self.gpus)
        on_a_node = max(int(node.get("CPU", 0)) // self.cpus for node in self.nodes)
        self.at_once = len(items) if self.request.parallel == "auto" else int(self.request.parallel)
        self.reporter = Paced(reporter, context.plan, items, pace, min(self.at_once, on_a_node * len(self.nodes)))
        self.queue, self.under_way = deque(items), dict[Any, Item]()
        self.outcomes: dict[str, RunResult] = {}
        data_dir = self.request.data_dir
        there = replace(
            self.request,
            parallel="1",
            executor="local",
            worker_gpus=None,
            device=device,
            results_dir=str(self.store.root.resolve()),
            data_dir=None if data_dir is None else str(Path(data_dir).resolve()),
        )
        sharing = round(1 / self.gpus) if self.gpus else min(self.at_once, on_a_node)
        self.orders = Orders(there, os.getcwd(), token, self.cpus, max(1, sharing))

    def results(self) -> dict[str, RunResult]:
        """Hand all runs to Ray and hear of them until each has ended."""
        self.reporter.stage(f"{len(self.queue)} runs as tasks of Ray, of {self.cpus} CPUs and {self.gpus:g} GPUs each")
        try:
            while self.queue or self.under_way:
                if STOP():
                    self._cancel()  # each run ends at a savepoint, which is waited for
                    if left := list(self.under_way):
                        self.ray.wait(left, num_returns=len(left), timeout=STOP_SECONDS)
                    raise RunStoppedError
                while self.queue and len(self.under_way) < self.at_once:
                    self._submit(self.queue.popleft(), self.cpus, self.gpus, self.orders)
                ready, _ = self.ray.wait(list(self.under_way), num_returns=1, timeout=LISTEN_SECONDS)
                for reference in ready:
                    self._hear(reference)
            return self.outcomes
        finally:
            self._cancel()

    def _submit(self, item: Item, cpus: int, gpus: float, orders: Orders) -> None:
        more = {"max_retries": TRIES - 1, "retry_exceptions": False, "scheduling_strategy": "SPREAD"}
        task = self.task.options(num_cpus=cpus, num_gpus=gpus, **more)
        self.under_way[task.remote(orders, item.key)] = item

    def _hear(self, reference: Any) -> None:
        item = self.under_way.pop(reference)
        try:
            word, result, files = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:  # the node has not the program, or the program a defect
            raise ClusterError(
                f"{item.task.id}, seed {item.seed}, failed on a node: {str(error).strip().splitlines()[-1]}",
                hint="every node needs the same Python, biobench and torch as this machine",
            ) from error
        except self.ray.exceptions.RayError as error:
            reason = f"{TRIES} processes died of it; the last: {first_line(error)}"
            word, result, files = "made", item.result(self.request, "failed", reason), None
        if word == "refused":
            raise result
        if word == "short":  # on a GPU, or on all CPUs of a node, that it has alone
            cpus = max(int(node.get("CPU", 0)) for node in self.nodes if node.get("GPU", 0) >= self.gpus)
            orders = replace(self.orders, threads=cpus, sharing=1)
            self._submit(item, cpus, 1.0 if self.gpus else 0.0, orders)
        elif word == "made":
            if files is not None:
                result = self._stored(item, *files)
            elif result.status == "failed":
                self.store.note_failure(item.task.id, item.key, self.request.started, result.reason or "")
            self.outcomes[item.key] = result
            self.reporter.finish(result)

    def _stored(self, item: Item, record: bytes, predictions: bytes) -> RunResult:
        """Store what a node made in a folder of its own; what is known of its training text is known here."""
        path = self.store.root / "runs" / item.task.id / item.key
        write_atomic(path.with_suffix(".parquet"), predictions)
        write_atomic(path.with_suffix(".json"), record)
        stored = self.store.get(item.task.id, item.key)
        assert stored is not None
        model, task = item.checkpoint, stored.task
        known = contamination(model.folder, model.hash, task.id, task.data_hash, self.store.root)
        self.store.update(stored := stored.model_copy(update={"contamination": known}))
        self.store.note_command(item.task.id, item.key, self.request.started)
        self.context.ask_gate(item.task.id)
        return of_record(stored, "done", str(self.store.path_of(stored)))

    def _cancel(self) -> None:
        for reference in self.under_way:
            with suppress(self.ray.exceptions.RayError, ConnectionError):
                self.ray.cancel(reference, force=False)


def make_one(orders: Orders, key: str) -> Outcome:
    """The Ray task, on a node: make one run, in a process that may have made others of the same command."""
    torch.set_num_threads(orders.threads)
    quiet_libraries()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, lambda *_: setattr(STOP, "set", True))  # as Ray cancels a task
    try:
        context, shared = _context_here(orders)
        item = next((item for item in context.plan.items if item.key == key), None)
        if item is None:
            raise ClusterError(
                f"node {socket.gethostname()} would make other runs than those that are planned",
                hint="every node needs the models, data and version of the machine that starts the command; "
                "--set training.precision=fp32 (or bf16) where their processors differ",
            )
        (result,) = execute(context, [item], Reporter(), aloud=False)
        return "made", result, None if shared or result.predictions is None else _taken_out(Path(result.predictions))
    except RunStoppedError:
        return "stopped", None, None
    except (MemoryShortError, torch.OutOfMemoryError):
        return "short", None, None
    except BioBenchError as error:
        return "refused", error, None


@lru_cache(maxsize=1)
def _context_here(orders: Orders) -> tuple[RunContext, bool]:
    """The same plan on this node, and whether the results folder is seen here.

    Raises what `make_plan` raises, with the node's name.
    """
    host = socket.gethostname()
    if Path(orders.folder).is_dir():
        os.chdir(orders.folder)
    request = replace(orders.request, wait=True)
    shared = sees(Path(request.results_dir), orders.token)
    if not shared:
        if request.keep_model is not None:
            raise UsageError(
                f"--keep-model: node {host} does not see {request.results_dir}, so models would stay on it",
                hint="use a folder that all nodes share, or leave --keep-model out",
            )
        request = replace(request, results_dir=str(scratch_folder(request.results_dir)), gate=False)
    try:
        plan = make_plan(request)
    except BioBenchError as error:
        raise ClusterError(f"node {host}: {error}", hint=error.hint) from error
    plan.sharing = orders.sharing
    return RunContext(plan), shared


def sees(results_dir: Path, token: str) -> bool:
    """Whether the folder of this path is that of the machine that wrote the token there."""
    try:
        return (results_dir / "locks" / token).read_text(encoding="ascii") == token
    except (OSError, UnicodeDecodeError):
        return False


def scratch_folder(results_dir: str) -> Path:
    """Where this node keeps what is under way for that results folder of another machine: below TMPDIR, user's alone.

    A run that is tried again on the same node resumes there.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"biobench-{user}-{sha256(results_dir.encode()).hexdigest()[:16]}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _taken_out(predictions: Path) -> tuple[bytes, bytes]:
    """Record and predictions of a run, which then leave this node. Raises StoreError."""
    record = predictions.with_suffix(".json")
    files = read_regular(record), read_regular(predictions)
    record.unlink()
    predictions.unlink()
    return files
