"""Several seeds at once: processes that share the machine, and one seed after the other.

    python -m tests.benchmarks.seeds [--threads 2] [--rounds 2] [--steps 8]

A step is that of `tests.benchmarks.threads`. Processes: as many at a time as there are threads,
each with one thread and one seed. Printed: milliseconds for one step of one seed, the median over
steps; the contenders alternate.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time

import torch

from tests.benchmarks.threads import make_step


def step_seconds(width: int, threads: int, steps: int) -> float:
    """Median seconds of a step of one seed in this process."""
    torch.set_num_threads(threads)
    step, times = make_step(width), []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main() -> None:
    """Parse, measure in alternation, print."""
    parser = argparse.ArgumentParser()
    for name, default in (("threads", 2), ("rounds", 2), ("steps", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    threads, steps = options.threads, options.steps
    context = multiprocessing.get_context("spawn")
    for width in (64, 384):
        for turn in range(options.rounds):
            with context.Pool(1) as pool:
                alone = pool.apply(step_seconds, (width, threads, steps))
            with context.Pool(threads) as pool:
                each = pool.starmap(step_seconds, [(width, 1, steps)] * threads, chunksize=1)
            shared = statistics.fmean(each) / threads
            print(
                f"width {width}, round {turn + 1}: one after the other {1000 * alone:.1f} ms, "
                f"{threads} processes {1000 * shared:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
