"""Several worker processes on one plan.

Each worker walks the same plan; the claims in the results folder keep any run from being made twice, so
workers need no word with each other, and a killed one loses only the run it was making. What happens in a
worker travels to the parent through a pipe of its own: a pipe, unlike a queue, has no lock that a killed
worker could keep.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

import torch

from biobench.errors import BioBenchError, UsageError
from biobench.finetune.loop import Note
from biobench.models.loading import quiet_libraries
from biobench.runs.execute import Reporter, Silent, execute
from biobench.runs.options import RunRequest
from biobench.runs.plan import RunPlan, make_plan
from biobench.runs.result import RunName, RunResult

_STEP_SECONDS = 0.2
"""A worker speaks of its steps at most this often."""


def worker_count(parallel: str, device: torch.device) -> int:
    """auto: one per CUDA device, one on a CPU (a run uses all its cores). Raises UsageError."""
    if parallel == "auto":
        return max(1, torch.cuda.device_count()) if device.type == "cuda" else 1
    if not parallel.isdigit() or int(parallel) < 1:
        raise UsageError(f"--parallel '{parallel}' is not a number of workers", hint="give auto or 1, 2, ...")
    return int(parallel)


def run_workers(plan: RunPlan, workers: int, stored: int, reporter: Reporter) -> dict[str, RunResult]:
    """Let `workers` processes make the runs of `plan`; returns what they made or failed at, by key.

    stored: how many of the plan's runs were made before. A worker that dies leaves its run undone; the
    caller's own pass over the plan makes it. A run that failed in a worker has failed and is not tried again.
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
            process = context.Process(target=work, args=(worker_request, threads, there), name=f"biobench-{rank}")
            process.start()
            there.close()
            processes.append(process)
            pipes.append(here)
        results = _listen(pipes, stored, len(plan.items), reporter)
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    finally:
        for process in processes:
            process.join()
    return results


def _listen(pipes: list[Connection], stored: int, total: int, reporter: Reporter) -> dict[str, RunResult]:
    """Hand on what the workers say until the last pipe is closed."""
    results: dict[str, RunResult] = {}
    begun = stored
    while pipes:
        for pipe in wait(pipes):
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


class _Wire:
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
        if isinstance(what, Note) or now - self.last >= _STEP_SECONDS:
            self.last = now
            self._send("step", run, done, total, what)

    def finish(self, result: RunResult) -> None:
        """A run ended. What was stored before, or has no data, the parent says once."""
        if result.status in ("done", "failed"):
            self._send("finish", result)


def work(request: RunRequest, threads: int, pipe: Connection | None = None) -> None:
    """One worker: make what others have not claimed. pipe: where a parent on this machine listens."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    quiet_libraries()
    if pipe is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too and ends its workers
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for _ in execute(make_plan(request), Silent() if pipe is None else _Wire(pipe)):
            pass
    except BioBenchError:
        # The parent walks the same plan afterwards and reports it once.
        return


def _end_with_parent() -> None:
    """A killed parent takes its workers along: nobody would look for them."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
