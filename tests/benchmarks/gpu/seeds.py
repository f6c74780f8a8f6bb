"""Several seeds at once, as the product runs them: a process a seed on one device."""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from tests.benchmarks.gpu.setting import Measurement, Setting


def measurements(setting: Setting) -> Iterator[Measurement]:
    """One seed, then more of them at the same time; the processes compile before."""
    counts = setting.pick((1, 2, 5), (1, 2))
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    for seed in range(max(counts)):
        here, there = context.Pipe()
        context.Process(target=work, args=(setting, seed, there), daemon=True).start()
        there.close()
        pipes.append(here)
    plans = [pipe.recv() for pipe in pipes]  # sent once a process has compiled
    for count in counts:
        yield f"{count} at once", partial(together, pipes[:count], plans)


def together(pipes: Sequence[Connection], planned_gib: Sequence[float]) -> dict[str, Any]:
    """Let some processes train at the same time. gib_of_card: with those that wait."""
    for pipe in pipes:
        pipe.send("train")
    answers = [pipe.recv() for pipe in pipes]
    step = statistics.fmean(answer["ms"] for answer in answers)
    return {
        "ms_a_seed_step": round(step / len(pipes), 2),
        "gib_each": max(answer["gib"] for answer in answers),
        "gib_each_planned": max(planned_gib),
        "gib_of_card": max(answer["gib_of_card"] for answer in answers),
    }


def work(setting: Setting, seed: int, pipe: Connection) -> None:
    """A process: trains its seed once to compile, then whenever it is asked to.

    It alone loads torch; the memory that the product plans is what it sends first. Its runs are
    long, so that those of several processes fall together.
    """
    import torch

    from biobench.core.machine import peak_memory_bytes, reset_peak_memory
    from biobench.finetune.engine import load_encoder
    from biobench.runs.workers import planned_memory_bytes
    from tests.benchmarks.gpu.clock import Clock
    from tests.benchmarks.gpu.fine_tuning import product
    from tests.benchmarks.gpu.material import BASE, checkpoint
    from tests.benchmarks.gpu.one_seed import sentences

    if setting.device == "cpu":
        from tests.benchmarks.gpu.stand_in import pass_for_accelerator

        pass_for_accelerator()
    torch.set_num_threads(setting.pick(max(1, (os.cpu_count() or 1) // 5), 1))
    device, made_for = torch.device(setting.device), checkpoint(setting, BASE)
    prepared, loaded = sentences(setting, made_for, steps=120), load_encoder(made_for, device)
    product(loaded, prepared, Clock(device), seed)
    pipe.send(round(planned_memory_bytes(made_for.parameters or 0) / 2**30, 2))
    while pipe.recv() == "train":
        reset_peak_memory(device)
        clock, used = Clock(device), 0
        product(loaded, prepared, clock, seed)
        if device.type == "cuda":
            free, whole = torch.cuda.mem_get_info(device)
            used = whole - free
        gib = {"gib": peak_memory_bytes(device), "gib_of_card": used}
        sizes = {name: round(size / 2**30, 2) for name, size in gib.items()}
        pipe.send({"ms": clock.milliseconds(), **sizes})
