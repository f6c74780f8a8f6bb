"""What control groups grant; threads follow quotas and the user's own settings, and do not spin on
busy machines.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from biobench.core import threads
from biobench.core.threads import cpu_quota, memory_left

LIMIT = {"memory.max": "1000", "memory.current": "900"}


def groups(root: Path, line: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A process's list of groups and a control group folder with the given files."""
    for name, text in files.items():
        (root / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "cgroup" / name).write_text(text)
    (root / "own").write_text(line)
    return root / "own", root / "cgroup"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without settings of threads, on four CPUs."""
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "")  # restored after the test, whatever is set below
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr(threads, "cpu_quota", lambda: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("load", "granted", "count", "policy", "spins"),
    [
        *(
            (0.2, None, 4, None, "1000"),
            (3.0, None, 4, None, "1000"),
            (3.1, None, 4, "PASSIVE", None),
        ),
        *(
            (0.0, 0.5, 1, "PASSIVE", None),
            (0.0, 1.0, 1, "PASSIVE", None),
            (0.0, 1.5, 2, "PASSIVE", None),
        ),
        (0.0, 64.0, 4, "PASSIVE", None),
    ],
)
def test_threads_follow_a_quota_and_sleep_at_once_where_cores_are_short(
    bare: pytest.MonkeyPatch,
    load: float,
    granted: float | None,
    count: int,
    policy: str | None,
    spins: str | None,
) -> None:
    bare.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
    bare.setattr(threads, "cpu_quota", lambda: granted)
    assert threads.prepare_threads() == count
    assert (os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT")) == (policy, spins)


def test_the_users_own_settings_are_kept(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    bare.setenv("OMP_NUM_THREADS", "3")
    bare.setenv("GOMP_SPINCOUNT", "77")
    assert threads.prepare_threads() == 3
    assert threads.prepare_threads(2) == 2, "--threads is asked for by name"
    assert (os.environ["OMP_NUM_THREADS"], os.environ["GOMP_SPINCOUNT"]) == ("2", "77")
    assert "OMP_WAIT_POLICY" not in os.environ


@pytest.mark.parametrize(
    ("own", "count", "kept"),
    [
        ("3,2", 3, "3,2"),
        (" 2 ", 2, " 2 "),
        ("0", 4, "4"),
        ("-1", 4, "4"),
        ("many", 4, "4"),
        ("", 4, "4"),
    ],
)
def test_the_users_number_may_be_a_list_and_what_openmp_refuses_is_replaced(
    bare: pytest.MonkeyPatch, own: str, count: int, kept: str
) -> None:
    bare.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    bare.setenv("OMP_NUM_THREADS", own)
    assert threads.prepare_threads() == count
    assert os.environ["OMP_NUM_THREADS"] == kept


def test_a_machine_that_hides_its_load_counts_as_free(bare: pytest.MonkeyPatch) -> None:
    def hidden() -> tuple[float, float, float]:
        raise OSError("Load averages are unobtainable")

    bare.setattr(os, "getloadavg", hidden)
    bare.setattr(os, "cpu_count", lambda: 4)
    assert threads.prepare_threads() == 4
    assert os.environ["GOMP_SPINCOUNT"] == "1000"


@pytest.mark.parametrize(
    ("line", "files", "granted"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        (
            "0::/pod/box\n",
            {"pod/cpu.max": "50000 100000\n", "pod/box/cpu.max": "400000 100000\n"},
            0.5,
        ),
        ("4:cpu,cpuacct:/job\n0::/\n", {"cpu.max": "200000 100000"}, 2.0),
        ("0::/../elsewhere\n", {"cpu.max": "damaged"}, None),
    ],
)
def test_the_quota_is_the_least_of_all_levels(
    line: str, files: dict[str, str], granted: float | None, tmp_path: Path
) -> None:
    assert cpu_quota(*groups(tmp_path, line, files)) == granted


@pytest.mark.parametrize(
    ("line", "files", "left"),
    [
        ("0::/\n", {"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ("0::/\n", {"memory.max": "max\n", "memory.current": "400\n"}, None),
        ("0::/\n", {"memory.max": "max\n", "memory.high": "700\n", "memory.current": "400\n"}, 300),
        ("0::/\n", {"memory.max": "1000\n", "memory.current": "1400\n"}, 0),
        # A container sees its own group as the root, whatever path the process lists.
        ("0::/kubepods/a/b\n", {"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ("0::/box\n", {**LIMIT, "box/memory.max": "5000", "box/memory.current": "100"}, 100),
        ("0::/\n", {**LIMIT, "memory.stat": "inactive_anon 5\ninactive_file 600\nfile 700"}, 700),
        ("0::/\n", {"memory.max": "damaged", "memory.current": "1\n"}, None),
        ("0::/\n", {"memory.max": "1000\n"}, None),
    ],
)
def test_what_is_left_of_memory_is_the_least_of_all_levels(
    line: str, files: dict[str, str], left: int | None, tmp_path: Path
) -> None:
    assert memory_left(*groups(tmp_path, line, files)) == left


def test_a_machine_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    assert (cpu_quota(tmp_path / "none", tmp_path), memory_left(tmp_path / "none", tmp_path)) == (
        None,
        None,
    )
