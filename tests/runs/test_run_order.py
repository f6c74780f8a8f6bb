"""Longest runs first: what fake devices need, against the order of the request and the least possible."""

from __future__ import annotations

import heapq
import random
from typing import Any, NamedTuple

import pytest

from biobench.runs import estimate
from biobench.runs.estimate import Pace, longest_first


class Run(NamedTuple):
    """As much of an item as the order asks for."""

    key: str
    task: str
    size: float
    checkpoint: Any = None

    @property
    def group(self) -> str:
        return self.task


class Model(NamedTuple):
    """A checkpoint."""

    hash: str
    parameters: int | None


class Seconds(Pace):
    """A pace that knows some tasks' runs."""

    known: dict[str, float]

    def seconds(self, item: Any) -> float | None:
        return self.known.get(item.task)


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "work", lambda item: item.size)


def order(runs: list[Run], known: dict[str, float] | None = None, rates: list[float] | None = None) -> list[str]:
    pace = Seconds()
    pace.known, pace.any = known or {}, rates or []
    return [item.key for item in longest_first(runs, pace)]  # type: ignore[arg-type]


def run(key: str, task: str, size: float, parameters: int | None = 1) -> Run:
    return Run(key, task, size, Model("m", parameters))


def makespan(seconds: list[float], devices: int) -> float:
    """When the last of some fake devices is done that each claim the next run as they become free."""
    free = [0.0] * devices
    for each in seconds:
        heapq.heapreplace(free, free[0] + each)
    return max(free)


def test_the_longest_task_does_not_come_last() -> None:
    runs = [run(f"small-{n}", "small", 1.0) for n in range(6)] + [run("large", "large", 9.0)]
    assert order(runs) == ["large", *(f"small-{n}" for n in range(6))]
    sizes = {r.key: r.size for r in runs}
    assert makespan([r.size for r in runs], 2) == 12.0
    assert makespan([sizes[key] for key in order(runs)], 2) == 9.0, "the small ones run beside the large one"


def test_measured_seconds_count_more_than_sizes() -> None:
    """A task of few but long documents is longer than its number of documents says."""
    runs = [run("short texts", "a", 1000.0), run("long texts", "b", 100.0), run("unknown", "c", 100.0)]
    known = {"a": 10.0, "b": 50.0}
    # The unknown one is taken at the median rate of 0.01 and 0.5: 25.5.
    assert order(runs, known, [0.01, 0.5]) == ["long texts", "unknown", "short texts"]


def test_a_larger_model_comes_first() -> None:
    assert order([run("base", "a", 10.0, 100), run("large", "b", 9.0, 300)]) == ["large", "base"]
    assert order([run("unknown", "a", 10.0, None), run("base", "b", 9.0, 100)]) == ["base", "unknown"]


def test_runs_of_a_group_stay_together() -> None:
    runs = [run(f"{task}{seed}", task, size) for seed in (1, 2) for task, size in (("a", 2.0), ("b", 2.0))]
    assert order(runs) == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_claims_end_earlier_than_in_the_order_of_the_request(devices: int) -> None:
    draw = random.Random(devices)
    ours, plans = 0.0, 0.0
    for _ in range(50):
        runs = [run(str(n), str(n), draw.choice([0.5, 1.0, 3.0, 20.0]) * draw.random()) for n in range(30)]
        sizes = {r.key: r.size for r in runs}
        keys = order(runs)
        assert sorted(keys) == sorted(sizes)
        needed = makespan([sizes[key] for key in keys], devices)
        mean, largest = sum(sizes.values()) / devices, max(sizes.values())
        assert needed <= max(mean + min(sizes.values()), largest) * 4 / 3
        ours, plans = ours + needed, plans + makespan(list(sizes.values()), devices)
    assert ours < 0.97 * plans
