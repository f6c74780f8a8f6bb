"""`--executor ray`: each run is one Ray task. Ray finds it a place, and tries it again where its
process or node dies.

Every node needs the models and data of the machine that starts the command. A task that sees the
results folder of that machine works in it, claims included. One that does not works in a folder of
its node and returns record and predictions through Ray. Ray is an optional extra.
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
from typing import Any

import torch

from biobench.core.files import read_regular, write_atomic
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.text import first_line
from biobench.errors import BioBenchError, ClusterError, UsageError
from biobench.models.loading import quiet_libraries
from biobench.runs.execute import RunContext, execute
from biobench.runs.gates import ask_gate
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, make_plan
from biobench.runs.provenance import contamination
from biobench.runs.result import Reporter, RunResult, of_record

TRIES = 3
"""How often a run is begun whose process or node dies."""
LISTEN_SECONDS = 0.5
STOP_SECONDS = 300.0
"""How long the savepoints of runs that are to stop are waited for."""
Outcome = tuple[RunResult | BioBenchError | None, tuple[bytes, bytes] | None]
"""The result (None: stopped), and record and predictions where the node does not see the results
folder.
"""


@dataclass(frozen=True)
class Orders:
    """What a node needs to know. request: with the absolute path of the results folder.

    folder: where the command runs, for relative paths. token: a file in the results folder that has
    its own name as content. threads: of a run.
    """

    request: RunRequest
    folder: str
    token: str
    threads: int


def run_on_ray(
    context: RunContext, items: Sequence[Item], reporter: Reporter
) -> dict[str, RunResult]:
    """Make these runs on the cluster at RAY_ADDRESS, or on this machine; what came of each, by key.

    `--parallel N` bounds the runs at once. With --device cuda each reserves a GPU, or a share of
    one by `worker_gpus`, else four CPUs. Raises UsageError where no node has what a run reserves,
    ClusterError where no cluster answers or a node would make other runs, and RunStoppedError where
    a signal asks to stop.
    """
    ray: Any = import_module("ray")
    # a file by which a node knows whether it sees the same folder
    token = f".seen-{secrets.token_hex(8)}"
    path = context.store.root / "locks" / token
    write_atomic(path, token.encode())
    try:
        with _joined(ray):
            return _sweep(ray, context, items, reporter, token)
    except ConnectionError as error:
        raise ClusterError(
            f"the connection to the cluster was lost: {first_line(error)}",
            hint="finished runs are stored; repeat the command",
        ) from error
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _joined(ray: Any) -> Iterator[None]:
    """Join the cluster, unless the caller has. Raises ClusterError."""
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS", "")
    options: dict[str, Any] = {}
    if not address.startswith("ray://"):
        options = {"log_to_driver": False, "include_dashboard": False, "logging_level": "ERROR"}
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"RAY_ADDRESS={address}" if address else "RAY_ADDRESS is not set"
        raise ClusterError(
            f"--executor ray: no cluster can be joined ({where}): {first_line(error)}",
            hint="start one with `ray start --head`; the versions of Ray and Python must be the "
            "cluster's",
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def cpus_of_a_run(nodes: Sequence[dict[str, float]], gpus: float) -> int:
    """What each run reserves besides its GPU (or share of one): a like part of a node's CPUs; else
    four, or all.

    nodes: what each has, by Ray's names. Raises UsageError where no node has room for a run.
    """
    fitting = [node for node in nodes if node.get("CPU", 0) >= 1 and node.get("GPU", 0) >= gpus]
    if not fitting:
        message = "the cluster has no CPU for a run"
        hint = "add nodes with CPUs"
        if gpus:
            message = "the cluster has no GPU for a run"
            hint = "--device cpu, or add GPU nodes"
        raise UsageError(message, hint=hint)
    if not gpus:
        return min(4, max(int(node["CPU"]) for node in fitting))
    return max(1, min(int(node["CPU"] * gpus / node["GPU"]) for node in fitting))


def _sweep(
    ray: Any, context: RunContext, items: Sequence[Item], reporter: Reporter, token: str
) -> dict[str, RunResult]:
    """Hand all runs to Ray and hear of them until each has ended."""
    request = context.plan.request
    device = context.plan.device.type
    store = context.store
    gpus = request.worker_gpus
    at_once = len(items)
    if gpus is None:
        gpus = float(device == "cuda")
    if request.parallel != "auto":
        at_once = int(request.parallel)
    cpus = cpus_of_a_run([node["Resources"] for node in ray.nodes() if node["Alive"]], gpus)
    there = replace(
        request,
        parallel="1",
        executor="local",
        worker_gpus=None,
        device=device,
        results_dir=str(store.root.resolve()),
        data_dir=request.data_dir and str(Path(request.data_dir).resolve()),
    )
    orders = Orders(there, os.getcwd(), token, cpus)
    task = ray.remote(make_one).options(
        num_cpus=cpus,
        num_gpus=gpus,
        max_retries=TRIES - 1,
        retry_exceptions=False,
        scheduling_strategy="SPREAD",
    )
    queue = deque(items)
    under_way = dict[Any, Item]()
    results = dict[str, RunResult]()
    reporter.stage(f"{len(queue)} runs as tasks of Ray, of {cpus} CPUs and {gpus:g} GPUs each")

    def cancel() -> None:
        for reference in under_way:
            with suppress(ray.exceptions.RayError, ConnectionError):
                ray.cancel(reference, force=False)

    try:
        while queue or under_way:
            if STOP():
                cancel()  # each run ends at a savepoint, which is waited for
                if under_way:
                    ray.wait(list(under_way), num_returns=len(under_way), timeout=STOP_SECONDS)
                raise RunStoppedError
            while queue and len(under_way) < at_once:
                item = queue.popleft()
                under_way[task.remote(orders, item.key)] = item
            for reference in ray.wait(list(under_way), num_returns=1, timeout=LISTEN_SECONDS)[0]:
                item = under_way.pop(reference)
                result = _outcome(ray, reference, item, context, reporter)
                if result is not None:
                    results[item.key] = context.plan.told_apart(result)
                    reporter.finish(results[item.key])
        return results
    finally:
        cancel()


def _outcome(
    ray: Any, reference: Any, item: Item, context: RunContext, reporter: Reporter
) -> RunResult | None:
    """What came of a task, stored here; None where it was stopped. Raises ClusterError, and what a
    node refuses.
    """
    store = context.store
    request = context.plan.request
    files = None
    try:
        result, files = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # the node has not the program, or the program a defect
        raise ClusterError(
            f"{item.task.id}, seed {item.seed}, failed on a node: "
            f"{str(error).strip().splitlines()[-1]}",
            hint="every node needs the same Python, biobench and torch as this machine",
        ) from error
    except ray.exceptions.RayError as error:
        result = item.result(
            request, "failed", f"{TRIES} processes died of it; the last: {first_line(error)}"
        )
    if isinstance(result, BioBenchError):
        raise result
    if files is not None:
        # made in a folder of the node; what is known of the training text is known here
        path = store.root / "runs" / item.task.id / item.key
        write_atomic(path.with_suffix(".parquet"), files[1])
        write_atomic(path.with_suffix(".json"), files[0])
        stored = store.get(item.task.id, item.key)
        model = item.checkpoint
        assert stored is not None
        overlap = contamination(
            model.folder, model.hash, item.task.id, stored.task.data_hash, store.root
        )
        stored = stored.model_copy(update={"contamination": overlap})
        store.update(stored)
        store.note_command(item.task.id, item.key, request.started)
        ask_gate(context.plan, item.task.id, reporter)
        return of_record(store, stored, "done")
    if result is not None and result.status == "failed":
        store.note_failure(item.task.id, item.key, request.started, result.reason or "")
    return result  # type: ignore[no-any-return]


def make_one(orders: Orders, key: str) -> Outcome:
    """The Ray task, on a node: make one run, in a process that may have made others of the same
    command.
    """
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
                hint="every node needs the models, data and version of the machine that starts "
                "the command; "
                "--set training.precision=fp32 (or bf16) where their processors differ",
            )
        (result,) = execute(context, [item], Reporter(), aloud=False)
    except RunStoppedError:
        return None, None
    except BioBenchError as error:
        return error, None
    if shared or result.predictions is None:
        return result, None
    predictions = Path(result.predictions)
    record = predictions.with_suffix(".json")
    files = read_regular(record), read_regular(predictions)
    record.unlink()  # they leave this node
    predictions.unlink()
    return result, files


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
                f"--keep-model: node {host} does not see {request.results_dir}, so models would "
                f"stay on it",
                hint="use a folder that all nodes share, or leave --keep-model out",
            )
        request = replace(request, results_dir=str(scratch_folder(request.results_dir)), gate=False)
    try:
        return RunContext(make_plan(request)), shared
    except BioBenchError as error:
        raise ClusterError(f"node {host}: {error}", hint=error.hint) from error


def sees(results_dir: Path, token: str) -> bool:
    """Whether the folder of this path is that of the machine that wrote the token there."""
    try:
        return (results_dir / "locks" / token).read_text(encoding="ascii") == token
    except (OSError, UnicodeDecodeError):
        return False


def scratch_folder(results_dir: str) -> Path:
    """Where this node keeps what is under way for that results folder of another machine: below
    TMPDIR, user's alone.

    A run that is tried again on the same node resumes there.
    """
    digest = sha256(results_dir.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"biobench-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
