"""Steps on a device's own time line: milliseconds, launches, busy share, compilation, memory."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch._dynamo.utils import calculate_time_spent
from torch.autograd import DeviceType
from torch.profiler import profile

from biobench.core.machine import peak_memory_bytes, reset_peak_memory

WATCHED = 2
"""Steps under the profiler, the last ones of a training; their times do not count."""


class Clock:
    """Notes the ends of training steps; nothing waits for the device until they are read.

    steps: of a training whose last `WATCHED` ones are profiled; 0: none is.
    """

    def __init__(self, device: torch.device, steps: int = 0) -> None:
        self.device, self.steps = device, steps
        self.ends: list[Any] = []
        self.profiler = profile()

    def tick(self) -> None:
        """A step has ended."""
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.ends.append(event)
        else:
            self.ends.append(time.perf_counter())
        if self.steps and len(self.ends) == self.steps - WATCHED:
            wait(self.device)
            self.profiler.start()
        elif self.steps and len(self.ends) == self.steps:
            wait(self.device)
            self.profiler.stop()

    def milliseconds(self) -> float:
        """Median of the steps after the first one and before the profiled ones."""
        wait(self.device)
        timed = self.ends[: self.steps - WATCHED] if self.steps else self.ends
        if self.device.type == "cuda":
            return statistics.median(a.elapsed_time(b) for a, b in pairwise(timed))
        return statistics.median(1000 * (b - a) for a, b in pairwise(timed))

    def device_work(self) -> list[tuple[float, float]]:
        """(begin, end) in microseconds of each launch in the profiled steps, ascending."""
        kind = DeviceType.CUDA if self.device.type == "cuda" else DeviceType.CPU
        events = [e for e in self.profiler.events() or () if e.device_type == kind]
        ranges = [e.time_range for e in events if not e.is_user_annotation]
        return sorted((span.start, span.end) for span in ranges)


Train = Callable[[Clock], object]
"""Trains the same steps on each call, and ticks after each."""


def profiled(train: Train, device: torch.device) -> Clock:
    """The clock of a second training, whose last steps are profiled; the first one compiles."""
    warm_up = Clock(device)
    train(warm_up)
    reset_peak_memory(device)
    clock = Clock(device, steps=len(warm_up.ends))
    train(clock)
    return clock


def measure(train: Train, device: torch.device) -> dict[str, Any]:
    """Figures of a step: median ms; seconds of compilation; GiB at the peak; launches; and busy,
    the share of a step's time in which the device has work.
    """
    before = compile_seconds()
    clock = profiled(train, device)
    milliseconds, work = clock.milliseconds(), clock.device_work()
    return {
        "ms": round(milliseconds, 2),
        "compile_s": round(compile_seconds() - before, 1),
        "gib": round(peak_memory_bytes(device) / 2**30, 2),
        "launches": round(len(work) / WATCHED),
        # a profiler slows the host: a step takes the time that it took without one
        "busy": round(covered(work) / 1000 / WATCHED / milliseconds, 3),
    }


def compile_seconds() -> float:
    """Seconds that this process has compiled for."""
    return float(calculate_time_spent().get("total_wall_time", 0.0))


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of what the spans, ascending by their begin, cover together."""
    length, end = 0.0, float("-inf")
    for begin, stop in spans:
        length += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return length


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def forget(device: torch.device) -> None:
    """Free what an earlier measurement left in memory and compiled."""
    torch._dynamo.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
