"""What control groups grant: the least of all levels, versions 1 and 2, with files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.core.cgroup import cpu_quota, memory_left

NO_LIMIT_V1 = "9223372036854771712\n"


def groups(root: Path, line: str, files: dict[str, str]) -> tuple[Path, Path]:
    """A process's list of groups and a control group folder with the given files."""
    for name, text in files.items():
        (root / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "cgroup" / name).write_text(text)
    (root / "own").write_text(line)
    return root / "own", root / "cgroup"


@pytest.mark.parametrize(
    ("line", "files", "granted"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/pod/box\n", {"pod/cpu.max": "50000 100000\n", "pod/box/cpu.max": "400000 100000\n"}, 0.5),
        ("4:cpu,cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "200000", "cpu/job/cpu.cfs_period_us": "100000"}, 2.0),
        ("4:cpu,cpuacct:/job\n", {"cpu/job/cpu.cfs_quota_us": "-1", "cpu/job/cpu.cfs_period_us": "100000"}, None),
        (
            "4:cpu,cpuacct:/job\n",
            {"cpu,cpuacct/cpu.cfs_quota_us": "50000", "cpu,cpuacct/cpu.cfs_period_us": "100000"},
            0.5,
        ),
        ("0::/../elsewhere\n", {"cpu.max": "damaged"}, None),
        ("no groups\n", {"cpu.max": "150000 100000\n"}, None),
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
        (
            "0::/pod/box\n",
            {
                "pod/memory.max": "1000\n",
                "pod/memory.current": "900\n",
                "pod/box/memory.max": "5000\n",
                "pod/box/memory.current": "100\n",
            },
            100,
        ),
        (
            "0::/\n",
            {
                "memory.max": "1000\n",
                "memory.current": "900\n",
                "memory.stat": "anon 200\nfile 700\ninactive_anon 5\ninactive_file 600\nactive_file 100\n",
            },
            700,
        ),
        (
            "4:memory:/job\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": "3000\n",
                "memory/job/memory.usage_in_bytes": "2500\n",
                "memory/job/memory.stat": "inactive_file 1\ntotal_inactive_file 1500\n",
                "memory/memory.limit_in_bytes": NO_LIMIT_V1,
                "memory/memory.usage_in_bytes": "99999\n",
            },
            2000,
        ),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": NO_LIMIT_V1, "memory/memory.usage_in_bytes": "5\n"}, None),
        ("0::/\n", {"unified/memory.max": "1000\n", "unified/memory.current": "1\n"}, 999),
        ("0::/\n", {"memory.max": "damaged", "memory.current": "1\n"}, None),
        ("0::/\n", {"memory.max": "1000\n"}, None),
    ],
)
def test_what_is_left_of_memory_is_the_least_of_all_levels(
    line: str, files: dict[str, str], left: int | None, tmp_path: Path
) -> None:
    assert memory_left(*groups(tmp_path, line, files)) == left


def test_a_machine_without_control_groups_limits_nothing(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "none", tmp_path) is None
    assert memory_left(tmp_path / "none", tmp_path) is None
