"""Runs cut into shards and packed on devices by cost and memory. Pure: no torch, no device, no clock."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """A run to place: seconds alone on a device, and bytes of the device's memory."""

    key: str
    seconds: float
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when a run is made; seconds since the plan began."""

    key: str
    device: int
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Packing:
    """A plan on devices. too_large: keys of runs that fit on none."""

    devices: int
    placements: tuple[Placement, ...]
    too_large: tuple[str, ...] = ()

    @property
    def makespan(self) -> float:
        """Seconds until the last run ends."""
        return max((p.end for p in self.placements), default=0.0)

    @property
    def idle_share(self) -> float:
        """Of all devices' time up to the makespan, the share in which no run is on them."""
        if not self.makespan:
            return 0.0
        busy = 0.0
        for device in range(self.devices):
            until = 0.0
            for p in sorted((p for p in self.placements if p.device == device), key=lambda p: p.begin):
                busy += max(0.0, p.end - max(p.begin, until))
                until = max(until, p.end)
        return max(0.0, 1 - busy / (self.devices * self.makespan))


def shards(loads: Sequence[Load], count: int) -> list[list[str]]:
    """The keys in `count` parts of about the same cost: the longest run goes to the part that has least so far.

    The largest part costs at most 4/3 - 1/(3 count) of what the best partition has (Graham 1969). Each key stands in
    one part; there may be empty ones. The same loads give the same parts, on every machine.
    """
    if count < 1:
        raise ValueError("there is at least one part")
    parts: list[list[str]] = [[] for _ in range(count)]
    heap = [(0.0, 0, part) for part in range(count)]
    for load in _longest_first(loads):
        seconds, runs, part = heapq.heappop(heap)
        parts[part].append(load.key)
        heapq.heappush(heap, (seconds + load.seconds, runs + 1, part))
    return parts


def pack(loads: Sequence[Load], devices: int, *, memory_bytes: int | None = None, at_once: int = 1) -> Packing:
    """Give each device that is free the longest waiting run that fits into what is left of its memory.

    memory_bytes: of each device; None: whatever is asked for. at_once: runs side by side on a device, as far as memory
    goes. k runs side by side take k times as long each: nothing is assumed to be won by sharing, which depends on the
    model and the device. Loading a model and encoding a task are part of a run's measured seconds.
    """
    if devices < 1 or at_once < 1:
        raise ValueError("there is at least one device, and a run on it")
    too_large = tuple(w.key for w in loads if memory_bytes is not None and w.memory_bytes > memory_bytes)
    refused = set(too_large)
    waiting = [load for load in _longest_first(loads) if load.key not in refused]
    state = [_Device(memory_bytes, at_once) for _ in range(devices)]
    placements: list[Placement] = []
    now = 0.0
    while waiting or any(device.under_way for device in state):
        _fill(waiting, state, now)
        # the next end, on whichever device; until then each run moves on by its share of its device
        span = min(device.next_end() for device in state if device.under_way)
        now += span
        for number, device in enumerate(state):
            placements += [Placement(key, number, begin, now) for key, begin in device.advance(span)]
    return Packing(devices, tuple(sorted(placements, key=lambda p: (p.begin, p.device, p.key))), too_large)


def _fill(waiting: list[Load], devices: list[_Device], now: float) -> None:
    """Begin what fits, on the emptiest device first."""
    while True:
        for device in sorted(devices, key=lambda d: len(d.under_way)):
            load = next((w for w in waiting if device.takes(w)), None)
            if load is not None:
                waiting.remove(load)
                device.under_way.append(_Running(load, load.seconds, now))
                break
        else:
            return


@dataclass(slots=True)
class _Running:
    load: Load
    left: float
    begin: float


class _Device:
    def __init__(self, memory_bytes: int | None, at_once: int) -> None:
        self.memory_bytes, self.at_once = memory_bytes, at_once
        self.under_way: list[_Running] = []

    def takes(self, load: Load) -> bool:
        """Whether there is room for one more."""
        if len(self.under_way) >= self.at_once:
            return False
        used = sum(r.load.memory_bytes for r in self.under_way)
        return self.memory_bytes is None or used + load.memory_bytes <= self.memory_bytes

    def next_end(self) -> float:
        """Seconds until its next run ends."""
        return min(r.left for r in self.under_way) * len(self.under_way)

    def advance(self, span: float) -> list[tuple[str, float]]:
        """Let time pass; key and begin of the runs that have ended."""
        share = span / len(self.under_way) if self.under_way else 0.0
        for r in self.under_way:
            r.left -= share
        ended = [r for r in self.under_way if r.left <= 1e-9 * max(1.0, r.load.seconds)]
        self.under_way = [r for r in self.under_way if r not in ended]
        return [(r.load.key, r.begin) for r in ended]


def _longest_first(loads: Sequence[Load]) -> list[Load]:
    return sorted(loads, key=lambda load: (-load.seconds, load.key))
