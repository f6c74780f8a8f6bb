"""Runs in shards and on devices: each once, near the best that can be, within the memory."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest

from biobench.runs.jobs.packing import Load, Packing, pack, shards


def loads(*seconds: float, memory: int = 0) -> list[Load]:
    return [Load(f"k{n}", s, memory) for n, s in enumerate(seconds)]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_shards_together_are_the_plan(count: int) -> None:
    draw = random.Random(count)
    runs = loads(*(draw.lognormvariate(5, 1) for _ in range(40)))
    parts = shards(runs, count)
    assert len(parts) == count
    assert sorted(itertools.chain(*parts)) == sorted(load.key for load in runs)
    assert parts == shards(list(reversed(runs)), count), "the order of the file does not matter"


def test_shards_are_balanced_by_cost() -> None:
    draw = random.Random(3)
    runs = loads(*(draw.lognormvariate(5, 1) for _ in range(60)))
    seconds = {load.key: load.seconds for load in runs}
    totals = [sum(seconds[key] for key in part) for part in shards(runs, 4)]
    best = max(sum(seconds.values()) / 4, max(seconds.values()))
    assert max(totals) <= (4 / 3) * best
    by_count = [sum(load.seconds for load in runs[part::4]) for part in range(4)]
    assert max(totals) < max(by_count)


def test_runs_without_cost_are_spread_by_number() -> None:
    assert sorted(len(part) for part in shards(loads(*[0.0] * 10), 4)) == [2, 2, 3, 3]


def test_one_device_is_never_idle_and_many_wait_for_the_longest() -> None:
    runs = loads(10, 20, 30)
    one, many = pack(runs, 1), pack(runs, 8)
    assert one.makespan == pytest.approx(60)
    assert one.idle_share == pytest.approx(0)
    assert many.makespan == pytest.approx(30)
    assert many.idle_share == pytest.approx(1 - 60 / (8 * 30))


def test_the_best_packing_of_a_known_case() -> None:
    packing = pack(loads(7, 6, 5, 4, 3, 2), 3)
    assert packing.makespan == pytest.approx(9)
    assert packing.idle_share == pytest.approx(0)


def busiest(packing: Packing, memory: dict[str, int], device: int) -> tuple[int, int]:
    """Most memory and most runs at any moment on the device."""
    rows = [p for p in packing.placements if p.device == device]
    at = [[q for q in rows if q.begin <= p.begin < q.end - 1e-9] for p in rows]
    return max(sum(memory[q.key] for q in row) for row in at), max(map(len, at))


def test_memory_is_never_exceeded() -> None:
    draw = random.Random(5)
    runs = [Load(f"k{n}", draw.uniform(1, 100), draw.randrange(1, 60)) for n in range(80)]
    packing = pack(runs, 3, memory_bytes=100, at_once=8)
    assert sorted(p.key for p in packing.placements) == sorted(load.key for load in runs)
    memory = {load.key: load.memory_bytes for load in runs}
    for device in range(3):
        most, together = busiest(packing, memory, device)
        assert most <= 100
        assert 1 < together <= 8
    total = sum(load.seconds for load in runs)
    assert packing.makespan >= total / 3 - 1e-6, "runs side by side take longer: nothing is won for nothing"


def test_what_fits_nowhere_is_named_and_the_rest_is_packed() -> None:
    packing = pack([Load("big", 10, 90), Load("small", 5, 10)], 2, memory_bytes=80)
    assert packing.too_large == ("big",)
    assert [p.key for p in packing.placements] == ["small"]


def test_nothing_to_pack() -> None:
    packing = pack([], 4)
    assert (packing.makespan, packing.idle_share) == (0.0, 0.0)


def test_it_loads_no_torch() -> None:
    code = (
        "import sys, biobench.runs.jobs.packing, biobench.runs.jobs.plan_file, biobench.runs.jobs.slurm, "
        "biobench.runs.jobs.status; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
