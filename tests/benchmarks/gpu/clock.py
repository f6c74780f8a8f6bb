"""Steps on a device's own time line: milliseconds, launches, busy share, compilation, memory."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import profile

from biobench.core.machine import peak_memory_bytes, reset_peak_memory


class Clock:
    """Notes the ends of training steps; nothing waits for the device until the figures are read.

    profiled: numbers of the steps after which a profiler starts and stops; none without it.
    """

    def __init__(self, device: torch.device, profiled: tuple[int, int] | None = None) -> None:
        self.device, self.profiled = device, profiled
        self.marks: list[Any] = []
        self.profiler = None if profiled is None else profile()

    def tick(self) -> None:
        """A step has ended."""
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())
        if self.profiler is None or self.profiled is None:
            return
        if len(self.marks) == self.profiled[0]:
            wait(self.device)
            self.profiler.start()
        elif len(self.marks) == self.profiled[1]:
            wait(self.device)
            self.profiler.stop()

    def milliseconds(self) -> list[float]:
        """Of each step after the first."""
        wait(self.device)
        pairs = zip(self.marks, self.marks[1:], strict=False)
        if self.device.type == "cuda":
            return [before.elapsed_time(after) for before, after in pairs]
        return [1000 * (after - before) for before, after in pairs]


Train = Callable[[Clock], None]
"""Trains the same steps on each call, and ticks after each."""


def measure(train: Train, device: torch.device, steps: int) -> dict[str, Any]:
    """Train three times: to compile, to time, and under a profiler.

    steps: that `train` makes. ms: median of a step and its quarters. compile_s: what the first time
    took beyond the second. launches, busy: of a step, and the device's share of time with work.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what an earlier measurement left
    compiling = seconds_of(lambda: train(Clock(device)), device)
    reset_peak_memory(device)
    clock = Clock(device)
    steady = seconds_of(lambda: train(clock), device)
    peak = peak_memory_bytes(device)
    low, middle, high = statistics.quantiles(clock.milliseconds(), n=4)
    span = (max(1, steps // 3), max(2, steps // 2))
    watched = Clock(device, span)
    train(watched)
    launches, busy = device_work(watched)
    return {
        "ms": round(middle, 2),
        "ms_quarters": [round(low, 2), round(high, 2)],
        "compile_s": round(compiling - steady, 1),
        "launches": round(launches / (span[1] - span[0])),
        "busy": round(busy, 3),
        "gib": round(peak / 2**30, 2),
    }


def device_work(clock: Clock) -> tuple[int, float]:
    """(launches, share of the time in which at least one ran) of the profiled steps."""
    assert clock.profiler is not None
    kind = DeviceType.CUDA if clock.device.type == "cuda" else DeviceType.CPU
    events = [e for e in clock.profiler.events() or () if e.device_type == kind]
    work = [e.time_range for e in events if not e.is_user_annotation]
    spans = sorted((span.start, span.end) for span in work)
    whole = spans[-1][1] - spans[0][0] if spans else 0.0
    return len(spans), covered(spans) / whole if whole else 0.0


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
