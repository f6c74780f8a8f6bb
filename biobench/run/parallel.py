"""Several worker processes on one plan.

Each worker walks the same plan; the claims in the results folder keep any run from being made twice, so
workers need no word with each other, and a killed one loses only the run it was making.
"""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import replace

import torch

from biobench.errors import BioBenchError, UsageError
from biobench.run.execute import Silent, execute
from biobench.run.plan import Request, make_plan


def worker_count(parallel: str, device: torch.device) -> int:
    """auto: one per CUDA device, one on a CPU (a run uses all its cores). Raises UsageError."""
    if parallel == "auto":
        return max(1, torch.cuda.device_count()) if device.type == "cuda" else 1
    if not parallel.isdigit() or int(parallel) < 1:
        raise UsageError(f"--parallel '{parallel}' is not a number of workers", hint="give auto or 1, 2, ...")
    return int(parallel)


def run_workers(request: Request, workers: int, device: torch.device) -> None:
    """Let `workers` processes make the runs of `request`; returns when all have ended.

    A worker that dies leaves its run undone; the caller's own pass over the plan makes it.
    """
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // workers)
    processes = []
    for rank in range(workers):
        own = replace(
            request, parallel="1", device=f"cuda:{rank % torch.cuda.device_count()}" if device.type == "cuda" else "cpu"
        )
        processes.append(context.Process(target=work, args=(own, threads), name=f"biobench-{rank}"))
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def work(request: Request, threads: int) -> None:
    """One worker: make what others have not claimed."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    try:
        for _ in execute(make_plan(request), Silent()):
            pass
    except BioBenchError:
        # The parent walks the same plan afterwards and reports it once.
        return
