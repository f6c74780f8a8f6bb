"""Steps on a device's own time line: milliseconds, launches, busy share, compilation, memory."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import profile

from biobench.core.machine import peak_memory_bytes, reset_peak_memory


class Clock:
    """Notes the ends of training steps; nothing waits for the device until the figures are read.

    profiled: numbers of the steps after which a profiler starts and stops; none without it.
    """

    def __init__(self, device: torch.device, profiled: tuple[int, int] = (0, 0)) -> None:
        self.device, self.profiled = device, profiled
        self.marks: list[Any] = []
        self.profiler = profile()

    def tick(self) -> None:
        """A step has ended."""
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())
        if len(self.marks) in self.profiled:
            wait(self.device)
            begins = len(self.marks) == self.profiled[0]
            (self.profiler.start if begins else self.profiler.stop)()

    def milliseconds(self) -> list[float]:
        """Of each step after the first."""
        wait(self.device)
        if self.device.type == "cuda":
            return [before.elapsed_time(after) for before, after in pairwise(self.marks)]
        return [1000 * (after - before) for before, after in pairwise(self.marks)]


Train = Callable[[Clock], object]
"""Trains the same steps on each call, and ticks after each."""


def measure(train: Train, device: torch.device) -> dict[str, Any]:
    """Train three times: to compile, to time, and under a profiler.

    ms: median of a step and its quarters. compile_s: what the first time took beyond the second.
    launches, busy: of a step, and the share of the second time's step in which the device had work;
    they are missing where the profiler saw none.
    """
    compiling = seconds_of(lambda: train(Clock(device)), device)
    reset_peak_memory(device)
    clock = Clock(device)
    steady = seconds_of(lambda: train(clock), device)
    peak, times = peak_memory_bytes(device), clock.milliseconds()
    low, middle, high = statistics.quantiles(times, n=4)
    figures: dict[str, Any] = {
        "ms": round(middle, 2),
        "ms_quarters": [round(low, 2), round(high, 2)],
        "compile_s": round(compiling - steady, 1),
        "gib": round(peak / 2**30, 2),
    }
    begin = max(1, len(clock.marks) // 3)
    end = max(begin + 1, len(clock.marks) // 2)
    watched = Clock(device, (begin, end))
    train(watched)
    if work := device_work(watched):
        figures["launches"] = round(len(work) / (end - begin))
        # a profiler slows the host: the same steps without it took this long
        figures["busy"] = round(covered(work) / 1000 / sum(times[begin - 1 : end - 1]), 3)
    return figures


def device_work(clock: Clock) -> list[tuple[float, float]]:
    """(begin, end) in microseconds of each launch in the profiled steps, ascending."""
    kind = DeviceType.CUDA if clock.device.type == "cuda" else DeviceType.CPU
    events = [e for e in clock.profiler.events() or () if e.device_type == kind]
    ranges = [e.time_range for e in events if not e.is_user_annotation]
    return sorted((span.start, span.end) for span in ranges)


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of what the spans, ascending by their begin, cover together."""
    length, end = 0.0, float("-inf")
    for begin, stop in spans:
        length += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return length


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of the work, until the device has done it."""
    wait(device)
    began = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - began


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
