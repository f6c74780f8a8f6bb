"""Several worker processes on one machine, by `--parallel` and `--seeds-at-once`.

Each worker walks the same plan; claims in the results folder keep any run from being made twice,
and a killed worker loses only the run that it was making. What happens in a worker travels to the
parent through a pipe of its own: a pipe, unlike a queue, has no lock that a killed worker could
keep.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from operator import attrgetter
from types import ModuleType
from typing import Any

import torch

from biobench.core.machine import free_memory_bytes
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import BioBenchError
from biobench.finetune.network import activation_bytes, micro_batch_tokens
from biobench.models.loading import quiet_libraries
from biobench.runs.estimate import longest_first
from biobench.runs.execute import RunContext, execute
from biobench.runs.options import RunRequest
from biobench.runs.plan import Item, RunPlan, make_plan
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.store import Store

_STEP_SECONDS = 0.2
"""A worker reports its steps at most this often."""
_FRAME = 4
"""Special tokens around a text, or a pair."""
_LOOK_SECONDS = 0.5
"""How often the parent of silent workers looks whether it is to stop."""


def worker_count(plan: RunPlan) -> int:
    """Processes that the request asks for: workers on each device times runs at the same time on
    it.

    --parallel auto is one per CUDA device, and one on a CPU, as a run uses all its cores.
    """
    parallel = plan.request.parallel
    at_once = plan.request.seeds_at_once
    workers = 1
    if parallel != "auto":
        workers = int(parallel)
    elif plan.device.type == "cuda":
        workers = torch.cuda.device_count()
    return workers * (_fitting(plan) if at_once == "auto" else int(at_once))


def _fitting(plan: RunPlan) -> int:
    """Runs that fit into nine tenths of a device's free memory, no more than a task has, or the CPU
    threads.

    Each takes what the neediest does: the largest peak of the stored runs of its model and task, or
    before the first what is planned.
    """
    free = free_memory_bytes(plan.device)
    if free is None:
        return 1
    peaks = _stored_peaks(plan)
    need = max(peaks.get(item.group) or _planned_bytes(item, plan.device) for item in plan.items)
    seeds = Counter(map(attrgetter("checkpoint.hash", "task.id"), plan.items))
    fitting = int(0.9 * free / need)
    return max(1, min(fitting, max(seeds.values()), torch.get_num_threads()))


def _stored_peaks(plan: RunPlan) -> dict[tuple[str, str, int], int]:
    """Group of items to the largest peak of those that are stored (bytes)."""
    store = Store(plan.request.results_dir)
    peaks: dict[tuple[str, str, int], int] = {}
    for item in plan.items:
        record = store.get(item.task.id, item.key)
        if record is not None:
            peak = record.cost.peak_memory_bytes
            peaks[item.group] = max(peaks.get(item.group, 0), peak)
    return peaks


def _planned_bytes(item: Item, device: torch.device) -> int:
    """Memory of a run before one has been measured: what its model takes, and the activations of
    the largest micro-batch that its training can have.
    """
    parameters = item.checkpoint.parameters or 0
    spec = item.task.spec
    if item.is_frozen:
        return planned_memory_bytes(parameters)
    longest = max((len(document.reading) for document in item.task.data.train), default=0)
    # A text has no more tokens than characters, bytes of rare signs aside.
    tokens = spec.training.batch_size * min(longest + _FRAME, spec.protocol.max_length)
    tokens = min(tokens, micro_batch_tokens(device))
    return planned_memory_bytes(parameters) + activation_bytes(
        item.checkpoint.config, tokens, item.task.precision
    )


def planned_memory_bytes(parameters: int) -> int:
    """Of a model with so many parameters: six times its weights (itself, gradients, two moments,
    initial and best weights) and 2 GiB.
    """
    return 6 * 4 * parameters + (2 << 30)


def run_workers(
    plan: RunPlan, workers: int, stored: int, reporter: Reporter
) -> dict[str, RunResult]:
    """Let `workers` processes make the runs of `plan`; returns what they made or failed at, by key.

    stored: how many of the plan's runs were made before. A worker that dies leaves its run undone;
    the caller's own pass over the plan makes it. A run that failed in a worker has failed and is
    not tried again. Raises RunStoppedError where a signal asks to stop, after the workers have
    saved what they were at.
    """
    # one process of it imports torch for all workers
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    threads = max(1, torch.get_num_threads() // workers)
    processes: list[ForkServerProcess] = []
    pipes: list[Connection] = []
    try:
        for rank in range(workers):
            device = "cpu"
            if plan.device.type == "cuda":
                device = f"cuda:{rank % torch.cuda.device_count()}"
            here, there = context.Pipe(duplex=False)
            arguments = (replace(plan.request, parallel="1", device=device), threads, there)
            process = context.Process(target=work, args=arguments, name=f"biobench-{rank}")
            with _without_script():
                process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
        results = _listen(pipes, stored, len(plan.items), reporter, processes)
    except KeyboardInterrupt:  # asked to end at once, not to save
        for process in processes:
            process.kill()
        raise
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()
    if STOP():
        raise RunStoppedError
    if ended := sum(process.exitcode != 0 for process in processes):
        logging.getLogger("biobench").warning(
            "%d of %d workers ended early; their runs are made here", ended, workers
        )
    return results


@contextmanager
def _without_script() -> Iterator[None]:
    """A process that starts in here does not run the caller's script again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _listen(
    pipes: list[Connection],
    begun: int,
    total: int,
    reporter: Reporter,
    processes: list[ForkServerProcess],
) -> dict[str, RunResult]:
    """Hand on what the workers report until the last pipe is closed; a request to stop is handed on
    to them.
    """
    reports = _Reports(reporter, begun, total)
    stopping = False
    while pipes:
        if STOP() and not stopping:
            stopping = True
            for process in processes:
                process.terminate()
        for pipe in wait(pipes, timeout=_LOOK_SECONDS):
            assert isinstance(pipe, Connection)
            try:
                kind, *message = pipe.recv()
            except (EOFError, OSError):  # the worker has ended, at times in the middle of a word
                pipes.remove(pipe)
            else:
                getattr(reports, kind)(*message)
    return reports.results


class _Reports:
    """What the workers report by `_Wire`, handed on. begun: runs so far, of `total`."""

    def __init__(self, reporter: Reporter, begun: int, total: int) -> None:
        self.reporter = reporter
        self.begun = begun
        self.total = total
        self.results: dict[str, RunResult] = {}
        self.warned: set[str] = set()

    def start(self, run: RunName) -> None:
        """A worker begins a run."""
        self.begun += 1
        self.reporter.start(run, self.begun, self.total)

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """A run moved on."""
        self.reporter.step(run, done, total, what)

    def warn(self, line: str) -> None:
        """A warning, once: several workers find the same."""
        if line not in self.warned:
            self.warned.add(line)
            self.reporter.warn(line)

    def finish(self, result: RunResult) -> None:
        """A run ended; each worker reports one that failed."""
        key = str(result.key)
        if key not in self.results:
            self.results[key] = result
            self.reporter.finish(result)


class _Wire(Reporter):
    """A worker's `Reporter`: sends on what it made itself."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.last = 0.0

    def warn(self, line: str) -> None:
        """What the parent says for all workers."""
        self.pipe.send(("warn", line))

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins; the parent knows its place among all."""
        self.last = 0.0
        self.pipe.send(("start", run))

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """The run moved on. A stage, such as "loading model", has no total and holds back no step
        that follows.
        """
        moment = time.monotonic()
        if not total or isinstance(what, ProgressNote) or moment - self.last >= _STEP_SECONDS:
            if total:
                self.last = moment
            self.pipe.send(("step", run, done, total, what))

    def finish(self, result: RunResult) -> None:
        """A run ended. What was stored before, or has no data, the parent reports once."""
        if result.status in ("done", "failed"):
            self.pipe.send(("finish", result))


def work(request: RunRequest, threads: int, pipe: Any) -> None:
    """One worker: make what others have not claimed. pipe: where its parent listens."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    quiet_libraries()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too and ends its workers
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    with STOP.watching(logger=None):
        try:
            plan = make_plan(request)
            items = longest_first(plan.items)
            for _ in execute(RunContext(plan), items, _Wire(pipe), aloud=False):
                pass
        except (BioBenchError, RunStoppedError):
            return  # the parent walks the same plan afterwards and reports an error once
