"""A worker on a node of a Ray cluster: makes the runs that it is handed, one at a time, and says what happens.

It needs the same models and data as the machine that planned, by content, not by place. Where it sees the results
folder of that machine it works in it, claims included. Where it does not, it works in a folder of its node and hands
record and predictions back through Ray.
"""

from __future__ import annotations

import os
import queue
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from biobench.core.files import cannot_read
from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import BioBenchError, ClusterError, UsageError
from biobench.finetune.loop import MemoryShortError, ProgressNote
from biobench.models.loading import quiet_libraries
from biobench.runs.execute import execute
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, RunPlan, make_plan, narrowed
from biobench.runs.result import RunName, RunResult
from biobench.runs.workshop import Workshop
from biobench.schema.record import ENGINE_VERSION
from biobench.store import Store

STEP_SECONDS = 0.5
"""A worker speaks of its steps at most this often."""
Event = tuple[Any, ...]
"""What happened: a word, then what belongs to it; see `NodeWorker`."""


class Fingerprint(NamedTuple):
    """One run, and the contents that its key stands for: hashes of model, spec and data, precision, engine."""

    model: str
    task: str
    fold: int
    seed: int
    files: str
    spec: str
    data: str
    precision: str
    engine: int


class Place(NamedTuple):
    """Where a worker is. shared: it sees the results folder of the machine that planned."""

    host: str
    pid: int
    shared: bool


@dataclass(frozen=True)
class Orders:
    """What a worker needs to begin. request: with the absolute path of the results folder.

    folder: where the command runs, for relative paths. token: a file in the results folder that has its own name as
    content. runs: by key. threads: of this worker. sharing: workers that share its device and the memory of it.
    """

    request: RunRequest
    folder: str
    token: str
    runs: dict[str, Fingerprint]
    threads: int
    sharing: int


def fingerprints(items: Iterable[Item]) -> dict[str, Fingerprint]:
    """By key."""
    prints = {}
    for item in items:
        task = item.task
        assert task.data is not None
        prints[item.key] = Fingerprint(
            item.checkpoint.id,
            task.id,
            task.loaded.fold or 0,
            item.seed,
            item.checkpoint.hash,
            task.hash,
            task.data.hash,
            task.precision,
            ENGINE_VERSION,
        )
    return prints


class NodeWorker:
    """A Ray actor. Its methods return at once, or soon; a thread makes the runs.

    `listen` gives what happened, in order: (ready, Place); then of each run (start, RunName), (step, RunName, done,
    total, text), and one of (made, key, RunResult, files), (stopped, key), (crowded, key): memory did not suffice
    beside other workers. files: record and predictions where the results folder is not seen, else None. (refused,
    error) is a BioBenchError, (broken, text) a defect. Only after `made` does the worker make further runs.
    """

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.keys: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def begin(self, key: str) -> None:
        """Make this run next."""
        self.keys.put(key)

    def stop(self) -> None:
        """End the run under way at a savepoint."""
        STOP.set = True

    def listen(self, seconds: float) -> list[Event]:
        """What has happened since the last call; waits this long for the first event."""
        events: list[Event] = []
        try:
            events.append(self.events.get(timeout=seconds))
            while True:
                events.append(self.events.get_nowait())
        except queue.Empty:
            return events

    def _work(self) -> None:
        try:
            torch.set_num_threads(self.orders.threads)  # a thread has its own number
            quiet_libraries()
            plan, shared = planned_here(self.orders)
            workshop = Workshop(plan)
            self.events.put(("ready", Place(socket.gethostname(), os.getpid(), shared)))
            self._make_runs(plan, workshop, shared)
        except BioBenchError as error:
            self.events.put(("refused", error))
        except Exception:  # nobody would hear of it: it is told where the command runs
            self.events.put(("broken", traceback.format_exc()))

    def _make_runs(self, plan: RunPlan, workshop: Workshop, shared: bool) -> None:
        while not STOP():
            key = self.keys.get()
            try:
                for result in execute(narrowed(plan, [key]), _RunEvents(self.events), workshop=workshop):
                    self.events.put(("made", key, result, None if shared else taken_out(workshop.store, result)))
            except RunStoppedError:
                self.events.put(("stopped", key))
                return
            except (MemoryShortError, torch.OutOfMemoryError):
                self.events.put(("crowded", key))
                return


class _RunEvents:
    """The worker's `Reporter`: of one run."""

    def __init__(self, events: queue.SimpleQueue[Event]) -> None:
        self.events, self.last = events, 0.0

    def start(self, run: RunName, position: int, total: int) -> None:
        """Its place among all is known where the command runs."""
        self.events.put(("start", run))

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """It moved on."""
        now = time.monotonic()
        if isinstance(what, ProgressNote) or now - self.last >= STEP_SECONDS:
            self.last = now
            self.events.put(("step", run, done, total, what))

    def finish(self, result: RunResult) -> None:
        """The result goes its own way."""


def planned_here(orders: Orders) -> tuple[RunPlan, bool]:
    """The same plan on this node, and whether the results folder is seen here.

    Raises ClusterError where this node would make other runs, and whatever `make_plan` raises, with the node's name.
    """
    host = socket.gethostname()
    if Path(orders.folder).is_dir():
        os.chdir(orders.folder)
    request = orders.request
    shared = sees(Path(request.results_dir), orders.token)
    if not shared:
        if request.keep_model is not None:
            raise UsageError(
                f"--keep-model: node {host} does not see {request.results_dir}, so models would stay on it",
                hint="use a folder that all nodes share, or leave --keep-model out",
            )
        request = replace(request, results_dir=str(scratch_folder(request.results_dir)))
    try:
        plan = make_plan(request)
    except BioBenchError as error:
        raise ClusterError(f"node {host}: {error}", hint=error.hint) from error
    plan.sharing = orders.sharing
    here = fingerprints(plan.items)
    other = [run for key, run in orders.runs.items() if key not in here]
    if other:
        raise ClusterError(
            f"node {host} would make other runs than those that are planned: {_why(other[0], plan, here)}",
            hint="every node needs the models, data and version of the machine that starts the command; "
            "--set training.precision=fp32 (or bf16) where their processors differ",
        )
    return plan, shared


def _why(run: Fingerprint, plan: RunPlan, here: dict[str, Fingerprint]) -> str:
    for other in here.values():
        if other[:4] == run[:4]:
            names = [name for name in Fingerprint._fields if getattr(other, name) != getattr(run, name)]
            pairs = [f"{name} {_short(getattr(other, name))}, not {_short(getattr(run, name))}" for name in names]
            return f"{run.task} with {run.model} has {'; '.join(pairs) or 'other options'}"
    for entry in plan.tasks:
        if entry.id == run.task and entry.unavailable is not None:
            return f"{run.task}: {entry.unavailable}"
    return f"{run.task} with {run.model}, seed {run.seed} is not among them"


def _short(value: object) -> str:
    return str(value)[:12]


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


def taken_out(store: Store, result: RunResult) -> tuple[bytes, bytes] | None:
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
