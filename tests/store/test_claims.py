"""Claims: one holder at a time, dead ones replaced, once."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from biobench.errors import StoreError
from biobench.store import Store, claims
from biobench.store import store as stored
from biobench.store.claims import ReplacedError, is_alive, read_heartbeat
from tests.core.test_processes import ended_process
from tests.helpers.store_make import documents, predictions, record

KEY = "0" * 32


def beat_of(store: Store) -> Path:
    return store.heartbeat_path("my_task", KEY)


def is_free(store: Store) -> bool:
    with store.claim("my_task", KEY) as claim:
        return claim is not None


def age_by(path: Path, seconds: float) -> None:
    """A process of another machine wrote the file so long ago."""
    if read_heartbeat(path) is not None:
        written = json.loads(path.read_bytes())
        path.write_text(json.dumps({**written, "process": "00000000-1-1", "host": "elsewhere"}))
    os.utime(path, (time.time() - seconds,) * 2)


def left_by_a_killed_holder(store: Store, seconds: float = 0.0) -> dict[str, Any]:
    """A claim whose process is gone, on another machine where it wrote so many seconds ago; what it
    says.
    """
    with store.claim("my_task", KEY):
        content = beat_of(store).read_bytes()
    beat_of(store).write_bytes(content)
    age_by(beat_of(store), seconds)
    return dict(json.loads(content))


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    with first.claim("my_task", KEY) as mine:
        assert mine is not None
        with second.claim("my_task", KEY) as theirs, second.claim("my_task", "1" * 32) as different:
            assert theirs is None
            assert different is not None
        assert is_alive(beat_of(first))
    assert not beat_of(first).exists()
    with pytest.raises(OSError, match="failed"), second.claim("my_task", KEY):
        raise OSError("the work failed")
    assert is_free(first)


def test_a_heartbeat_says_the_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT_SECONDS", 0.02)
    with store.claim("my_task", KEY) as claim:
        assert claim is not None
        claim.moved(3, 10)
        until = time.monotonic() + 20
        while (beat := read_heartbeat(beat_of(store))) is None or beat.step != 3:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert (beat.steps, beat.pid) == (10, os.getpid())


def test_a_dead_holder_is_replaced_after_the_stated_time_alone(
    store: Store, tmp_path: Path
) -> None:
    left_by_a_killed_holder(store, claims.STALE_SECONDS - 10)
    beat_of(store).with_name(f".{beat_of(store).name}.0123456789ab.tmp").write_bytes(b"{")
    assert not is_free(store)
    age_by(beat_of(store), claims.STALE_SECONDS + 10)
    with store.claim("my_task", KEY) as claim:
        assert claim is not None
        assert not is_free(Store(tmp_path))
    assert list(beat_of(store).parent.iterdir()) == [], "nothing is left of either"


def test_one_that_died_while_it_replaced_another_blocks_nobody(store: Store) -> None:
    token = left_by_a_killed_holder(store, 1000)["token"]
    turn = beat_of(store).with_name(f"{beat_of(store).name}.{token}.turn")
    turn.write_bytes(b"")
    assert not is_free(store), "another is replacing it"
    age_by(turn, 1000)
    assert not is_free(store), "the stale turn is removed"
    assert is_free(store)


def test_a_holder_that_was_replaced_leaves_the_new_one_alone(store: Store, tmp_path: Path) -> None:
    with store.claim("my_task", KEY) as slow:
        assert slow is not None
        age_by(beat_of(store), 1000)  # suspended: it writes no more
        with Store(tmp_path).claim("my_task", KEY) as new:
            assert new is not None
            slow.end()
            beat = read_heartbeat(beat_of(store))
            assert beat is not None
            assert beat.token == new.beat.token


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0], ids=["forward", "back"])
def test_on_this_machine_the_system_is_asked_and_no_clock(
    store: Store, tmp_path: Path, jump: float
) -> None:
    with store.claim("my_task", KEY):
        os.utime(beat_of(store), (time.time() - jump,) * 2)
        assert is_alive(beat_of(store))
        assert not is_free(Store(tmp_path))
    content = left_by_a_killed_holder(store)
    beat_of(store).write_text(json.dumps({**content, "process": ended_process()}))
    os.utime(beat_of(store), (time.time() - jump,) * 2)
    assert not is_alive(beat_of(store))
    assert is_free(store)


def contend(root: Path) -> list[str]:
    """Make every run that no other process makes or has made; the keys of those that this one
    made."""
    store, made, waiting = Store(root), [], [f"{n:032x}" for n in range(30)]
    while waiting:
        for key in list(waiting):
            with store.claim("my_task", key) as claim:
                if claim is None:
                    continue
                waiting.remove(key)
                if not (root / key).exists():
                    time.sleep(0.02)
                    made.append(key)
                    (root / key).touch()
    return made


def test_processes_make_each_run_once(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        made = pool.map(contend, [tmp_path] * 4, chunksize=1)
    assert sorted(key for keys in made for key in keys) == [f"{n:032x}" for n in range(30)]
    assert sum(map(bool, made)) > 1, "one made all"


def save_under_a_claim(folder: str, missed: int) -> None:
    """In a process of its own that stops itself between the predictions and the record."""
    store, made, commit = Store(folder), record(), stored.commit

    def stop_after(temporary: Path, path: Path) -> None:
        commit(temporary, path)
        if path.suffix == ".parquet":
            os.kill(os.getpid(), signal.SIGSTOP)

    stored.commit = stop_after
    with store.claim(made.task.id, made.key) as claim, suppress(ReplacedError):
        store.save(made, documents(), predictions(missed), claim)


def test_a_holder_that_was_replaced_writes_no_record(tmp_path: Path) -> None:
    """Stopped between its two writes, it put its record beside the other's predictions."""
    context = multiprocessing.get_context("fork")
    slow = context.Process(target=save_under_a_claim, args=(str(tmp_path), 1))
    slow.start()
    os.waitid(os.P_PID, slow.pid, os.WSTOPPED)
    store, made = Store(tmp_path), record()
    beat = store.heartbeat_path(made.task.id, made.key)
    age_by(beat, claims.STALE_SECONDS + 10)
    with store.claim(made.task.id, made.key) as claim:
        assert claim is not None
        store.save(made, documents(), predictions(0), claim)
    os.kill(slow.pid, signal.SIGCONT)
    slow.join(30)
    assert slow.exitcode == 0
    run = store.get(made.task.id, made.key)
    assert run is not None
    assert store.stored_predictions(run)[1] == predictions(0)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_claim_is_said_and_not_waited_for(
    store: Store, tmp_path: Path, kind: str
) -> None:
    path = beat_of(store)
    path.parent.mkdir(parents=True)
    match kind:
        case "link":
            path.symlink_to(tmp_path / "nowhere")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    problem = f"is a {kind}, not a claim"
    with pytest.raises(StoreError, match=problem) as error, store.claim("my_task", KEY):
        pass
    assert error.value.hint == "move it away"
    assert read_heartbeat(path) is None
