"""Whether a process has ended is asked of the system, and no clock that is set can change the
answer.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from biobench.core.files import remove_stale, temporary_file, temporary_folder, write_atomic
from biobench.core.processes import NAME, has_ended, this_process
from biobench.errors import StoreError

DAY = 86_400.0
FOREIGN = "00000000-1-1"
needs_proc = pytest.mark.skipif(
    not this_process(), reason="this system does not name its processes"
)


@cache
def ended_process() -> str:
    """The name that a process had which is no more."""
    command = "from biobench.core.processes import this_process; print(this_process())"
    return subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    ).stdout.strip()


@needs_proc
def test_this_process_lives_and_one_that_ended_does_not() -> None:
    assert NAME.fullmatch(this_process())
    assert has_ended(this_process()) is False
    assert has_ended(ended_process()) is True


@needs_proc
def test_a_number_that_another_process_has_now_is_another_process() -> None:
    place, number, start = this_process().split("-")
    assert has_ended(f"{place}-{number}-{int(start, 16) - 1:x}") is True
    assert has_ended(f"{place}-{2**40:x}-{start}") is True, "no system has such a number"
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    ticks = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert has_ended(f"{place}-{child.pid:x}-{int(ticks):x}") is True, (
        "nobody has waited for it yet"
    )
    child.wait()


def test_a_process_is_limited_and_keeps_the_limits_that_it_is_under() -> None:
    command = (
        "import resource; from biobench.core.processes import limit_process;"
        "limit_process(2**50, 100);"
        "print(*resource.getrlimit(resource.RLIMIT_AS), *resource.getrlimit(resource.RLIMIT_CPU))"
    )

    def limit_child() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**36))

    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, check=True, preexec_fn=limit_child
    )
    soft, hard, seconds, most_seconds = map(int, done.stdout.split())
    assert (soft, hard) == (2**35, 2**35 + 1)
    assert 100 < seconds < 200
    assert most_seconds == seconds + 1


@pytest.mark.parametrize("name", [FOREIGN, "", "no process", "0-0-0", "../x"])
def test_of_what_is_elsewhere_nothing_is_said(name: str) -> None:
    assert has_ended(name) is None


@needs_proc
@pytest.mark.parametrize("written", [-400 * DAY, 0.0, 400 * DAY])
def test_a_living_process_keeps_its_file_and_that_of_an_ended_one_goes(
    tmp_path: Path, written: float
) -> None:
    """Whatever a clock says that was wrong when they were written, or is now."""
    with temporary_file(tmp_path / "record.json") as stream:
        left = tmp_path / f".record.json.{ended_process()}.0123456789ab.tmp"
        left.touch()
        for path in (left, stream.name):
            os.utime(path, (time.time() + written,) * 2)
        remove_stale(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == [Path(stream.name).name]


@needs_proc
def test_a_file_written_again_removes_what_an_ended_writer_left_of_it(tmp_path: Path) -> None:
    """Before, what a killed gate had left of its verdict stayed for ever: nobody cleaned its
    folder.
    """
    mine, other = (
        tmp_path / f".{name}.{ended_process()}.0123456789ab.tmp" for name in ("a.json", "b.json")
    )
    for left in (mine, other):
        left.touch()
    with temporary_file(tmp_path / "a.json") as living:
        write_atomic(tmp_path / "a.json", b"1")
        assert {p.name for p in tmp_path.iterdir()} == {
            "a.json",
            Path(living.name).name,
            other.name,
        }


@needs_proc
def test_a_folder_made_again_removes_what_an_ended_maker_left_of_it(tmp_path: Path) -> None:
    left = tmp_path / f".model.{ended_process()}.0123456789ab.tmp"
    (left / "inner").mkdir(parents=True)
    with temporary_folder(tmp_path / "model") as aside:
        (aside / "one").touch()
        assert [p.name for p in tmp_path.iterdir()] == [aside.name]
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == [
        "model",
        "model/one",
    ]
    with (
        pytest.raises(StoreError, match="cannot be written"),
        temporary_folder(tmp_path / "model") as aside,
    ):
        (aside / "two").touch()
    assert not (tmp_path / "model" / "two").exists()
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("writer", ["", f"{FOREIGN}."])
@pytest.mark.parametrize(("age", "goes"), [(DAY, 0), (-DAY, 0), (3 * DAY, 1), (-3 * DAY, 1)])
def test_where_the_writer_cannot_be_asked_for_a_day_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, age: float, goes: int
) -> None:
    """By the clock of the file system, whatever that of the machine says."""
    left = tmp_path / f".record.json.{writer}0123456789ab.tmp"
    left.touch()
    os.utime(left, (left.stat().st_mtime - age,) * 2)
    true = time.time
    monkeypatch.setattr("time.time", lambda: true() + 7 * DAY)
    remove_stale(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1 - goes, "the probe is gone"
