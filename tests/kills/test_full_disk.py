"""The same commands on a disk that is full: one line, and the same result once there is room. A
real file system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kills.__main__ import Field, left_behind
from tests.kills.targets import NAMES

ROOMY = 256 << 20
SHARES = (0.0, 0.05, 0.3, 0.6, 0.95)
"""Of what the command writes undisturbed, how much the disk has room for."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory whose size a test changes. Needs root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOMY}", "biobench", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def resize(disk: Path, size: int) -> None:
    """Make the disk so many bytes large, in whole pages."""
    subprocess.run(["mount", "-o", f"remount,size={-(-size // 4096) * 4096}", disk], check=True)


def used(disk: Path) -> int:
    """Bytes that are taken."""
    stat = os.statvfs(disk)
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_one_line_and_costs_nothing(name: str, field: Field, disk: Path) -> None:
    target = field.targets[name]
    expected, _ = field.undisturbed(target)
    place = target.fresh(disk / "whole")
    before = used(disk)
    assert field.launcher.start(*target.arguments(place)).wait() == 0
    writes = used(disk) - before
    shutil.rmtree(place)
    refused = 0
    for share in SHARES:
        place = target.fresh(disk / f"share-{share}")
        resize(disk, used(disk) + int(share * writes) + 1)
        child = field.launcher.start(*target.arguments(place))
        status = child.wait()
        message = child.err.read_text() + child.out.read_text()
        assert status in (0, 2), f"{share}: {status}: {message[-1500:]}"
        if status == 2:
            refused += 1
            assert "is full" in message, f"{share}: {child.err.read_text()[-500:]}"
            assert child.err.read_text().splitlines()[-1].startswith("hint: free ")
        print(
            f"{name}, room for {share:.0%} of {writes} bytes: status {status}, "
            f"{message.strip().splitlines()[-2:]}"
        )
        resize(disk, ROOMY)
        child = field.launcher.start(*target.arguments(place))
        assert child.wait() == 0 or target.over(child.err.read_text()), child.err.read_text()
        assert target.result(place) == expected, f"after room for {share:.0%}"
        assert left_behind(place) == []
        shutil.rmtree(place)
    one_page = writes <= 4096  # of which no share can be short
    assert refused >= 1 or one_page or name == "index", "nothing was short of room"
