"""Claims with and without file locks: one holder at a time, dead ones replaced, once."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.errors import UsageError
from biobench.store import Store, claims
from biobench.store.claims import claim_mode, is_alive, read_heartbeat
from tests.core.test_processes import ended_process

KEY = "0" * 32


def refusing(number: int) -> Callable[..., None]:
    """A `flock` of a file system without locks."""

    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return flock


def without_locks(monkeypatch: pytest.MonkeyPatch, number: int = errno.ENOLCK) -> None:
    monkeypatch.setattr("fcntl.flock", refusing(number))


def beat_of(store: Store) -> Path:
    return store.heartbeat_path("my_task", KEY)


def age_by(path: Path, seconds: float) -> None:
    """A process of another machine wrote the file so long ago."""
    before = time.time() - seconds
    if read_heartbeat(path) is not None:
        path.write_bytes(elsewhere(path.read_bytes()))
    os.utime(path, (before, before))


def elsewhere(content: bytes) -> bytes:
    """The heartbeat as a process of another machine would have written it."""
    return json.dumps({**json.loads(content), "process": "00000000-1-1", "host": "elsewhere"}).encode()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    assert claim_mode(tmp_path) == "locks"
    without_locks(monkeypatch, number)
    assert claim_mode(tmp_path) == "files"
    assert list(tmp_path.iterdir()) == [], "the probe is gone"


def test_the_variable_decides_where_the_system_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIOBENCH_CLAIMS", "files")
    assert claim_mode(tmp_path) == "files"
    monkeypatch.setenv("BIOBENCH_CLAIMS", "file")
    with pytest.raises(UsageError, match="BIOBENCH_CLAIMS='file' is not known"):
        claim_mode(tmp_path)


@pytest.mark.parametrize("locks", [True, False])
def test_one_holder_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool) -> None:
    if not locks:
        without_locks(monkeypatch)
    first, second = Store(tmp_path), Store(tmp_path)
    with first.claim("my_task", KEY) as mine:
        assert mine is not None
        with second.claim("my_task", KEY) as theirs:
            assert theirs is None
        assert is_alive(beat_of(first))
    assert not beat_of(first).exists()
    with second.claim("my_task", KEY) as after:
        assert after is not None


@pytest.mark.parametrize("locks", [True, False])
def test_a_heartbeat_tells_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: bool) -> None:
    if not locks:
        without_locks(monkeypatch)
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    store = Store(tmp_path)
    with store.claim("my_task", KEY) as claim:
        assert claim is not None
        claim.moved(3, 10)
        until = time.monotonic() + 20
        while (beat := read_heartbeat(beat_of(store))) is None or beat.step != 3:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert (beat.steps, beat.pid) == (10, os.getpid())


def test_a_dead_holder_is_replaced_after_the_stated_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)
    store = Store(tmp_path)
    with store.claim("my_task", KEY):
        content = beat_of(store).read_bytes()
    beat_of(store).write_bytes(content)  # its process was killed
    age_by(beat_of(store), claims.STALE_SECONDS - 10)
    with store.claim("my_task", KEY) as early:
        assert early is None
    age_by(beat_of(store), claims.STALE_SECONDS + 10)
    with store.claim("my_task", KEY) as claim, Store(tmp_path).claim("my_task", KEY) as other:
        assert claim is not None
        assert other is None
    assert list(beat_of(store).parent.iterdir()) == [], "nothing is left of either"


def test_one_that_died_while_it_replaced_another_blocks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)
    store = Store(tmp_path)
    with store.claim("my_task", KEY):
        content = beat_of(store).read_bytes()
    beat_of(store).write_bytes(content)
    age_by(beat_of(store), 1000)
    turn = beat_of(store).with_name(f"{beat_of(store).name}.{json.loads(content)['token']}.0.turn")
    turn.write_bytes(b"")
    with store.claim("my_task", KEY) as claim:
        assert claim is None, "another is replacing it"
    age_by(turn, 1000)
    with store.claim("my_task", KEY) as claim:
        assert claim is not None


def test_a_holder_that_was_replaced_leaves_the_new_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.05)
    store = Store(tmp_path)
    with store.claim("my_task", KEY) as slow:
        assert slow is not None
        monkeypatch.setattr(slow, "_is_mine", lambda: False)  # suspended: it writes no more
        age_by(beat_of(store), 1000)
        monkeypatch.undo()
        without_locks(monkeypatch)
        with Store(tmp_path).claim("my_task", KEY) as new:
            assert new is not None
            slow.end()
            beat = read_heartbeat(beat_of(store))
            assert beat is not None
            assert beat.token == new.beat.token


def test_machines_with_and_without_locks_see_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_locks = Store(tmp_path)
    assert with_locks.claim_mode() == "locks"
    monkeypatch.setenv("BIOBENCH_CLAIMS", "files")
    by_files = Store(tmp_path)
    assert by_files.claim_mode() == "files"
    with with_locks.claim("my_task", KEY) as mine, by_files.claim("my_task", KEY) as theirs:
        assert mine is not None
        assert theirs is None
    with by_files.claim("my_task", KEY) as mine, with_locks.claim("my_task", KEY) as theirs:
        assert mine is not None
        assert theirs is None


DAY = 86_400.0
JUMPS = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forward", "back"])


@JUMPS
def test_a_jump_of_the_clock_kills_no_holder_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Before, a holder whose clock jumped a day forward was replaced until its next beat."""
    without_locks(monkeypatch)
    store = Store(tmp_path)
    with store.claim("my_task", KEY) as mine:
        assert mine is not None
        os.utime(beat_of(store), (time.time() - jump,) * 2)
        assert is_alive(beat_of(store))
        with Store(tmp_path).claim("my_task", KEY) as theirs:
            assert theirs is None


@JUMPS
def test_a_holder_that_ended_on_this_machine_is_replaced_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Before, one that had died while the clock was a day ahead kept its run for a day and three minutes."""
    without_locks(monkeypatch)
    store = Store(tmp_path)
    with store.claim("my_task", KEY):
        content = json.loads(beat_of(store).read_bytes())
    beat_of(store).write_text(json.dumps({**content, "process": ended_process()}))
    os.utime(beat_of(store), (time.time() - jump,) * 2)
    assert not is_alive(beat_of(store))
    with store.claim("my_task", KEY) as claim:
        assert claim is not None


def test_what_a_killed_holder_left_of_a_beat_goes_with_the_next_claim(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.claim("my_task", KEY):
        beat_of(store).with_name(f".{beat_of(store).name}.0123456789ab.tmp").write_bytes(b"{")
    assert [p.name for p in beat_of(store).parent.iterdir() if p.suffix != ".lock"] == []


CONTEND = """
import errno, fcntl, os, sys, time
def flock(*_):
    raise OSError(errno.ENOSYS, "Function not implemented")
fcntl.flock = flock
from biobench.store import Store
store, out = Store(sys.argv[1]), open(sys.argv[2], "ab", buffering=0)
assert store.claim_mode() == "files"
print("ready", flush=True)
sys.stdin.readline()
waiting = [f"{n:032x}" for n in range(40)]
while waiting:
    for key in list(waiting):
        with store.claim("my_task", key) as claim:
            if claim is None:
                continue
            waiting.remove(key)
            done = store.root / key
            if not done.exists():
                time.sleep(0.002)
                out.write(f"{key} {os.getpid()}\\n".encode())
                done.touch()
"""


@pytest.mark.parametrize("crowd", [2, 8])
def test_processes_without_locks_make_each_run_once(tmp_path: Path, crowd: int) -> None:
    (tmp_path / "results").mkdir()
    arguments = [sys.executable, "-c", CONTEND, str(tmp_path / "results"), str(tmp_path / "log")]
    processes = [subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(crowd)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == b"ready"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in processes:
            assert process.wait(timeout=120) == 0
    finally:
        for process in processes:
            process.kill()
    rows = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(key for key, _ in rows) == [f"{n:032x}" for n in range(40)]
    assert len({process for _, process in rows}) > 1, "one made all: nothing was contended"
