"""Several worker processes on one machine, by `--parallel` and `--seeds-at-once`.

Each worker walks the same plan; claims in the results folder keep any run from being made twice, and a killed worker
loses only the run that it was making. What happens in a worker travels to the parent through a pipe of its own: a pipe,
unlike a queue, has no lock that a killed worker could keep.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from biobench.core.machine import free_memory_bytes
from biobench.core.processes import bare_main, end_with_parent
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP, RunStoppedError, stoppable
from biobench.errors import BioBenchError
from biobench.models.loading import quiet_libraries
from biobench.runs.estimate import longest_first, pace_of
from biobench.runs.execute import RunContext, execute
from biobench.runs.options import RunRequest
from biobench.runs.plan import RunPlan, make_plan
from biobench.runs.result import Reporter, RunName, RunResult
from biobench.store import Store

_WEIGHTS = (".safetensors", ".bin")
_STEP_SECONDS = 0.2
"""A worker speaks of its steps at most this often."""
_LOOK_SECONDS = 0.5
"""How often the parent of silent workers looks whether it is to stop."""
_COPIES = 6
"""Of a checkpoint's weights while it is fine-tuned: itself, gradients, two moments, initial and best weights."""
_ROOM = 2 << 30
"""Bytes that a run needs beside them, at most, as long as no stored run says what it took."""


def worker_count(plan: RunPlan) -> int:
    """Processes that the request asks for: workers on each device times runs side by side on it.

    --parallel auto is one per CUDA device, and one on a CPU, as a run uses all its cores.
    """
    wanted = plan.request.parallel
    devices = max(1, torch.cuda.device_count()) if plan.device.type == "cuda" else 1
    return (devices if wanted == "auto" else int(wanted)) * runs_per_device(plan)


def runs_per_device(plan: RunPlan) -> int:
    """How many runs train side by side on each device, by `--seeds-at-once`.

    auto: as many as fit into nine tenths of the free memory, each at the peak of the largest run of this plan that is
    stored, and before the first at an estimate from the weights; no more than a task has runs, or the CPU threads.
    """
    wanted = plan.request.seeds_at_once
    if wanted != "auto":
        return int(wanted)
    store = Store(plan.request.results_dir)
    records = [store.get(item.task.id, item.key) for item in plan.items]
    need = max((record.cost.peak_memory_bytes for record in records if record is not None), default=0)
    if not need:
        files = [f for c in plan.checkpoints for f in c.folder.glob("*") if f.suffix in _WEIGHTS]
        need = _COPIES * max((f.stat().st_size for f in files), default=0) + _ROOM
    seeds = Counter((item.checkpoint.hash, item.task.id) for item in plan.items)
    free = free_memory_bytes(plan.device)
    fitting = 1 if free is None else int(0.9 * free / need)
    return max(1, min(fitting, max(seeds.values(), default=1), torch.get_num_threads()))


def run_workers(plan: RunPlan, workers: int, stored: int, reporter: Reporter) -> dict[str, RunResult]:
    """Let `workers` processes make the runs of `plan`; returns what they made or failed at, by key.

    stored: how many of the plan's runs were made before. A worker that dies leaves its run undone; the
    caller's own pass over the plan makes it. A run that failed in a worker has failed and is not tried again.
    Raises RunStoppedError where a signal asks to stop, after the workers have saved what they were at.
    """
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // workers)
    processes: list[SpawnProcess] = []
    pipes: list[Connection] = []
    try:
        for rank in range(workers):
            device = f"cuda:{rank % torch.cuda.device_count()}" if plan.device.type == "cuda" else "cpu"
            worker_request = replace(plan.request, parallel="1", device=device)
            here, there = context.Pipe(duplex=False)
            shares = workers > max(1, torch.cuda.device_count() if plan.device.type == "cuda" else 1)
            arguments = (worker_request, threads, there, workers if shares else 1)
            process = context.Process(target=work, args=arguments, name=f"biobench-{rank}")
            with bare_main():
                process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
        results = _listen(pipes, stored, len(plan.items), reporter, processes)
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
        logging.getLogger("biobench").warning("%d of %d workers ended early; their runs are made here", ended, workers)
    return results


def _listen(
    pipes: list[Connection], stored: int, total: int, reporter: Reporter, processes: list[SpawnProcess]
) -> dict[str, RunResult]:
    """Hand on what the workers say until the last pipe is closed; a request to stop is handed on to them."""
    results: dict[str, RunResult] = {}
    begun = stored
    stopping = False
    while pipes:
        if STOP() and not stopping:
            stopping = True
            for process in processes:
                process.terminate()
        for pipe in wait(pipes, timeout=_LOOK_SECONDS):
            assert isinstance(pipe, Connection)
            try:
                kind, *what = pipe.recv()
            except (EOFError, OSError):  # the worker has ended, at times in the middle of a word
                pipes.remove(pipe)
                continue
            if kind == "start":
                begun += 1
                reporter.start(what[0], begun, total)
            elif kind == "step":
                reporter.step(*what)
            else:
                (result,) = what
                if result.key not in results:  # each worker says of a failed run that it failed
                    results[result.key] = result
                    reporter.finish(result)
    return results


class _Wire(Reporter):
    """A worker's `Reporter`: sends on what it made itself."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.last = 0.0

    def _send(self, *what: Any) -> None:
        self.pipe.send(what)

    def start(self, run: RunName, position: int, total: int) -> None:
        """A run begins; the parent knows its place among all."""
        self.last = 0.0
        self._send("start", run)

    def step(self, run: RunName, done: int, total: int, what: str) -> None:
        """The run moved on."""
        now = time.monotonic()
        if not total:  # a stage, such as "loading model": it holds back no step that follows
            self._send("step", run, done, total, what)
        elif isinstance(what, ProgressNote) or now - self.last >= _STEP_SECONDS:
            self.last = now
            self._send("step", run, done, total, what)

    def finish(self, result: RunResult) -> None:
        """A run ended. What was stored before, or has no data, the parent says once."""
        if result.status in ("done", "failed"):
            self._send("finish", result)


def work(request: RunRequest, threads: int, pipe: Connection, sharing: int) -> None:
    """One worker: make what others have not claimed. pipe: where its parent listens.

    sharing: processes that share the device and its memory. A run that does not fit beside the others ends the worker,
    and with it the need for its memory; the run is made by those that stay, at last by the parent alone.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    quiet_libraries()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too and ends its workers
    end_with_parent()
    with stoppable(logger=None):
        _work(request, _Wire(pipe), sharing)


def _work(request: RunRequest, reporter: Reporter, sharing: int) -> None:
    try:
        plan = make_plan(request)
        plan.sharing = sharing
        for _ in execute(RunContext(plan), longest_first(plan.items, pace_of(plan)), reporter, aloud=False):
            pass
    except (torch.OutOfMemoryError, RunStoppedError):
        return
    except BioBenchError:
        # The parent walks the same plan afterwards and reports it once.
        return
