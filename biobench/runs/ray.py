"""`--executor ray`: each run is one Ray task. Ray finds it a place, and tries it again where its process or node dies.

Every node needs the models and data of the machine that starts the command, by content, not by place. A task that sees
the results folder of that machine works in it, claims included. One that does not works in a folder of its node and
returns record and predictions through Ray. Ray is an optional extra.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
import threading
import time
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

from biobench.core.files import cannot_read, write_atomic
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
from biobench.runs.result import Reporter, RunName, RunResult, Silent, of_item, of_record
from biobench.schema.record import ENGINE_VERSION
from biobench.store import Store
from biobench.store.claims import is_alive, read_heartbeat

TRIES = 3
"""How often a run is begun whose process or node dies."""
PATIENCE = 120.0
"""Seconds without any node that has room for a run, after which the command ends."""
LISTEN_SECONDS = 0.5
STOP_SECONDS = 300.0
"""How long the savepoints of runs that are to stop are waited for."""
Node = dict[str, float]
"""What a node has: CPU and GPU, in numbers, and whatever else Ray counts."""
Outcome = tuple[Literal["made", "stopped", "crowded", "refused"], Any, tuple[bytes, bytes] | None]
"""A word, a RunResult or BioBenchError, and record and predictions where the node does not see the results folder.

crowded: memory did not suffice beside other runs.
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


def facts(item: Item) -> dict[str, Any]:
    """What names a run, and the contents that its key stands for: hashes of model, spec and data, precision, engine."""
    task, data = item.task, item.task.data
    assert data is not None
    names = {"model": item.checkpoint.id, "task": task.id, "fold": task.loaded.fold, "seed": item.seed}
    contents = {"files": item.checkpoint.hash, "spec": task.hash, "data": data.hash, "precision": task.precision}
    return {**names, **contents, "engine": ENGINE_VERSION}


def run_on_ray(context: RunContext, items: Sequence[Item], reporter: Reporter, pace: Pace) -> dict[str, RunResult]:
    """Make these runs on the cluster at RAY_ADDRESS, or on this machine; what came of each, by key.

    `--parallel N` bounds the runs at once. With --device cuda each reserves a GPU, or a share of one by `worker_gpus`,
    else four CPUs. Raises UsageError where nothing has room, ClusterError where no cluster answers, its nodes are not
    alike or none is left, and RunStoppedError where a signal asks to stop.
    """
    ray: Any = import_module("ray")
    token = f".seen-{secrets.token_hex(8)}"  # a file by which a node knows whether it sees the same folder
    path = context.store.root / "locks" / token
    write_atomic(path, token.encode())
    try:
        with _joined(ray):
            return _Sweep(ray, context, items, reporter, pace, token).results()
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _joined(ray: Any) -> Iterator[None]:
    """Join the cluster, unless the caller has. Raises ClusterError."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS")
    client = address is not None and address.startswith("ray://")
    try:
        ray.init(**({} if client else {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}))
    except (ConnectionError, RuntimeError, ValueError) as error:
        place = "RAY_ADDRESS is not set" if address is None else f"RAY_ADDRESS={address}"
        raise ClusterError(
            f"--executor ray: no cluster can be joined ({place}): {first_line(error)}",
            hint="start one with `ray start --head`; the versions of Ray and Python must be the cluster's",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def room(node: Node, cpus: int, gpus: float) -> int:
    """Runs that fit on an empty node. A share of a GPU never lies on two."""
    fit = int(node.get("CPU", 0)) // cpus
    return fit if not gpus else min(fit, int(node.get("GPU", 0)) * int(1 / gpus + 1e-6))


def cpus_of_a_run(nodes: Sequence[Node], gpus: float) -> int:
    """What each run reserves beside its GPU (or share of one): a like part of a node's CPUs; else four, or all.

    Raises UsageError where no node has room for a run.
    """
    fitting = [node for node in nodes if room(node, 1, gpus)]
    if not fitting:
        raise UsageError(
            f"the cluster has no {'GPU' if gpus else 'CPU'} for a run",
            hint="--device cpu, or add GPU nodes" if gpus else "add nodes with CPUs",
        )
    if not gpus:
        return min(4, max(int(node["CPU"]) for node in fitting))
    return min(int(node["CPU"]) // room(node, 1, gpus) for node in fitting)


class _Sweep:
    """The runs that are to be made, those under way as Ray tasks, and what has come of them."""

    def __init__(
        self, ray: Any, context: RunContext, items: Sequence[Item], reporter: Reporter, pace: Pace, token: str
    ) -> None:
        self.ray, self.context, self.plan, self.store = ray, context, context.plan, context.store
        self.task = ray.remote(make_one)
        request = self.plan.request
        gpus = (1.0 if self.plan.device.type == "cuda" else 0.0) if request.worker_gpus is None else request.worker_gpus
        nodes = self._nodes()
        self.cpus, self.gpus = cpus_of_a_run(nodes, gpus), gpus
        places = [room(node, self.cpus, gpus) for node in nodes]
        self.at_once = len(items) if request.parallel == "auto" else int(request.parallel)
        workers = min(self.at_once, sum(places), len(items))
        self.reporter = Paced(reporter, self.plan, items, pace, workers)
        self.queue = deque(items)
        self.under_way: dict[Any, Item] = {}
        self.steps: dict[str, int] = {}
        """Key of each run that has begun -> its last known step."""
        self.outcomes: dict[str, RunResult] = {}
        self.before = len(self.plan.items) - len(items)
        self.room_seen = time.monotonic()
        there = replace(
            request,
            parallel="1",
            executor="local",
            worker_gpus=None,
            device=self.plan.device.type,
            results_dir=str(self.store.root.resolve()),
            data_dir=None if request.data_dir is None else str(Path(request.data_dir).resolve()),
        )
        threads = self.cpus if request.threads is None else max(1, request.threads // workers)
        sharing = int(1 / gpus + 1e-6) if gpus else min(workers, max(places))
        self.orders = Orders(there, os.getcwd(), token, threads, sharing)

    def _nodes(self) -> list[Node]:
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def results(self) -> dict[str, RunResult]:
        """Hand all runs to Ray and hear of them until each has ended."""
        try:
            while self.queue or self.under_way:
                if STOP():
                    self._cancel()  # each run ends at a savepoint, which is waited for
                    if left := list(self.under_way):
                        self.ray.wait(left, num_returns=len(left), timeout=STOP_SECONDS)
                    raise RunStoppedError
                while self.queue and len(self.under_way) < self.at_once:
                    self._submit(self.queue.popleft())
                ready, _ = self.ray.wait(list(self.under_way), num_returns=1, timeout=LISTEN_SECONDS)
                for reference in ready:
                    self._hear(reference)
                self._look(something_moved=bool(ready))
            return self.outcomes
        except ConnectionError as error:
            raise ClusterError(
                f"the connection to the cluster was lost: {first_line(error)}",
                hint="what is done is stored; repeat the command",
            ) from error
        finally:
            self._cancel()

    def _submit(self, item: Item, *, whole: bool = False) -> None:
        """whole: on a GPU, or on all CPUs of a node, that it has alone."""
        cpus, gpus, orders = self.cpus, self.gpus, self.orders
        if whole:
            gpus = 1.0 if gpus else 0.0
            cpus = max(int(node["CPU"]) for node in self._nodes() if room(node, 1, gpus))
            orders = replace(orders, threads=cpus, sharing=1)
        task = self.task.options(
            num_cpus=cpus,
            num_gpus=gpus,
            max_retries=TRIES - 1,
            retry_exceptions=False,
            scheduling_strategy="SPREAD",
        )
        self.under_way[task.remote(orders, item.key, facts(item))] = item

    def _hear(self, reference: Any) -> None:
        item = self.under_way.pop(reference)
        try:
            word, what, files = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:  # the node has not the program, or the program a defect
            raise ClusterError(
                f"{item.task.id}, seed {item.seed}, failed on a node: {str(error).strip().splitlines()[-1]}",
                hint="every node needs the same Python, biobench and torch as this machine",
            ) from error
        except self.ray.exceptions.RayError as error:
            reason = f"{TRIES} processes died of it; the last: {first_line(error)}"
            self.store.note_failure(item.task.id, item.key, self.plan.request.started, reason)
            self._ended(item, of_item(item, self.plan.request, "failed", reason))
            return
        if word == "refused":
            raise what
        if word == "crowded":
            self._submit(item, whole=True)
        elif word == "made":
            if files is not None:
                what = self._brought(item, *files)
            elif what.status == "failed":
                self.store.note_failure(item.task.id, item.key, self.plan.request.started, what.reason or "")
            self._ended(item, what)

    def _brought(self, item: Item, record: bytes, predictions: bytes) -> RunResult:
        """Store what a node made in a folder of its own; what is known of its training text is known here."""
        with tempfile.TemporaryDirectory(prefix="biobench-") as folder:
            path = Path(folder) / "runs" / item.task.id / f"{item.key}.json"
            write_atomic(path, record)
            write_atomic(path.with_suffix(".parquet"), predictions)
            source = Store(folder)
            stored = source.get(item.task.id, item.key)
            assert stored is not None
            model, task = item.checkpoint, stored.task
            known = contamination(model.folder, model.hash, task.id, task.data_hash, self.store.root)
            self.store.copy(source, stored := stored.model_copy(update={"contamination": known}))
            self.store.note_command(item.task.id, item.key, self.plan.request.started)
        self.context.ask_gate(item.task.id)
        return of_record(stored, "done", str(self.store.path_of(stored)))

    def _ended(self, item: Item, result: RunResult) -> None:
        if result.status != "skipped":
            self._begun(item)
        self.outcomes[item.key] = result
        self.reporter.finish(result)

    def _begun(self, item: Item) -> None:
        if item.key not in self.steps:
            self.steps[item.key] = 0
            self.reporter.start(RunName.of(item), self.before + len(self.steps), len(self.plan.items))

    def _look(self, *, something_moved: bool) -> None:
        """Tell of the steps that heartbeats name. Raises ClusterError where for a while no node has had room."""
        for item in self.under_way.values():
            path = self.store.heartbeat_path(item.task.id, item.key)
            beat = read_heartbeat(path) if is_alive(path) else None
            if beat is None:
                continue
            self._begun(item)
            if beat.steps and beat.step != self.steps[item.key]:
                self.steps[item.key] = beat.step
                self.reporter.step(RunName.of(item), beat.step, beat.steps, f"on {beat.host}")
        if something_moved or any(room(node, self.cpus, self.gpus) for node in self._nodes()):
            self.room_seen = time.monotonic()
        elif time.monotonic() - self.room_seen > PATIENCE:
            left = len(self.queue) + len(self.under_way)
            raise ClusterError(
                f"no node of the cluster is left that has room; {left} runs are not made",
                hint="what is done is stored; add nodes and repeat the command",
            )

    def _cancel(self) -> None:
        for reference in self.under_way:
            with suppress(self.ray.exceptions.RayError, ConnectionError):
                self.ray.cancel(reference, force=False)


def make_one(orders: Orders, key: str, wanted: dict[str, Any]) -> Outcome:
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
                f"node {socket.gethostname()} would make another run than the one that is planned: "
                f"{_why(wanted, context)}",
                hint="every node needs the models, data and version of the machine that starts the command; "
                "--set training.precision=fp32 (or bf16) where their processors differ",
            )
        (result,) = execute(context, [item], Silent(), aloud=False)
        return "made", result, None if shared else _taken_out(result)
    except RunStoppedError:
        return "stopped", None, None
    except (MemoryShortError, torch.OutOfMemoryError):
        return "crowded", None, None
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


def _why(wanted: dict[str, Any], context: RunContext) -> str:
    name = f"{wanted['task']} with {wanted['model']}"
    for here in map(facts, context.plan.items):
        if all(here[part] == wanted[part] for part in ("model", "task", "fold", "seed")):
            unlike = [f"{n} {str(here[n])[:12]}, not {str(wanted[n])[:12]}" for n in here if here[n] != wanted[n]]
            return f"{name} has {'; '.join(unlike) or 'other options'}"
    missing = [e.unavailable for e in context.plan.tasks if e.id == wanted["task"] and e.unavailable is not None]
    return f"{wanted['task']}: {missing[0]}" if missing else f"{name}, seed {wanted['seed']} is not among them"


def sees(results_dir: Path, token: str) -> bool:
    """Whether the folder of this path is that of the machine that wrote the token there."""
    try:
        return (results_dir / "locks" / token).read_text(encoding="ascii") == token
    except (OSError, UnicodeDecodeError):
        return False


def scratch_folder(results_dir: str) -> Path:
    """Where this node keeps what is under way for that results folder of another machine: below TMPDIR, user's alone.

    Raises ClusterError where another user has made it.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    base = Path(tempfile.gettempdir()) / f"biobench-{user}"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and base.lstat().st_uid != user:
        raise ClusterError(f"{base} belongs to another user", hint="set TMPDIR on the node to a folder of your own")
    return base / sha256(results_dir.encode()).hexdigest()[:16]


def _taken_out(result: RunResult) -> tuple[bytes, bytes] | None:
    """Record and predictions of a run, which then leave this node; None where it failed. Raises StoreError."""
    if result.predictions is None:
        return None
    predictions = Path(result.predictions)
    record = predictions.with_suffix(".json")
    try:
        files = record.read_bytes(), predictions.read_bytes()
    except OSError as error:
        raise cannot_read(record, error) from error
    record.unlink()
    predictions.unlink()
    return files
