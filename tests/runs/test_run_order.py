"""Longest runs first: what fake devices need for a plan, against the plan's own order and the least possible."""

from __future__ import annotations

import heapq
import random
import subprocess
import sys

import pytest

from biobench.runs.order import Job, longest_first


def makespan(seconds: list[float], devices: int) -> float:
    """When the last of some fake devices is done that each claim the next run as they become free."""
    free = [0.0] * devices
    for run in seconds:
        heapq.heapreplace(free, free[0] + run)
    return max(free)


def test_the_longest_task_does_not_come_last() -> None:
    jobs = [Job(f"small-{n}", ("m", "small"), 1.0) for n in range(6)] + [Job("large", ("m", "large"), 9.0)]
    order = longest_first(jobs)
    assert order == ["large", *(f"small-{n}" for n in range(6))]
    sizes = {job.key: job.size for job in jobs}
    assert makespan([j.size for j in jobs], 2) == 12.0
    assert makespan([sizes[key] for key in order], 2) == 9.0, "the small ones run beside the large one"


def test_measured_seconds_count_more_than_sizes() -> None:
    """A task of few but long documents is longer than its number of documents says."""
    jobs = [
        Job("short texts", ("m", "a"), 1000.0, seconds=10.0),
        Job("long texts", ("m", "b"), 100.0, seconds=50.0),
        Job("unknown", ("m", "c"), 100.0),
    ]
    # The unknown one is taken at the median of 0.01 and 0.5 seconds for each unit: 25.5.
    assert longest_first(jobs) == ["long texts", "unknown", "short texts"]


def test_runs_of_a_group_stay_together() -> None:
    jobs = [Job(f"{task}{seed}", ("m", task), size) for seed in (1, 2) for task, size in (("a", 2.0), ("b", 2.0))]
    assert longest_first(jobs) == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize("devices", [2, 3, 8])
def test_claims_end_earlier_than_in_the_plans_order(devices: int) -> None:
    draw = random.Random(devices)
    ours, plans = 0.0, 0.0
    for _ in range(50):
        jobs = [Job(str(n), ("m", str(n)), draw.choice([0.5, 1.0, 3.0, 20.0]) * draw.random()) for n in range(30)]
        sizes = {job.key: job.size for job in jobs}
        order = longest_first(jobs)
        assert sorted(order) == sorted(sizes)
        needed = makespan([sizes[key] for key in order], devices)
        mean, largest = sum(sizes.values()) / devices, max(sizes.values())
        assert needed <= max(mean + min(sizes.values()), largest) * 4 / 3
        ours, plans = ours + needed, plans + makespan(list(sizes.values()), devices)
    assert ours < 0.97 * plans


def test_the_order_is_free_of_torch() -> None:
    code = "import sys, biobench.runs.order; assert 'torch' not in sys.modules, 'torch'"
    subprocess.run([sys.executable, "-c", code], check=True)
