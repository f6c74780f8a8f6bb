"""`biobench status`, and runs that end at a savepoint when a signal asks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from biobench.core.processes import this_process
from biobench.store import Store, claims
from tests.helpers.cli_make import FAST, Run
from tests.helpers.launching import PATIENCE, Child, Launcher

TASKS = ("--task", "demo_ner", "--task", "demo_topic")


def wait_for(what: Callable[[], Any], child: Child) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert child.ended.empty(), child.err.read_text()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_done_failed_and_stopped(biobench: Run, tiny: Path) -> None:
    command = ("run", tiny, *TASKS, "--seeds", "1-2", *FAST)
    assert biobench("status").out == "results: 0 done, 0 running, 0 failed, 0 stopped\n"
    runs = biobench(*command, "--dry-run", "--json").json()
    biobench("run", tiny, *TASKS[:2], "--seeds", "1", *FAST).ok()
    store = Store("results")
    failing, stopped, dead = runs[1:4]
    store.note_failure(failing["task"], failing["key"], 1.0, "the loss is not finite")
    store.state_path(stopped["task"], stopped["key"]).parent.mkdir()
    store.state_path(stopped["task"], stopped["key"]).write_bytes(b"state")
    with store.claim(dead["task"], dead["key"]):
        content = store.heartbeat_path(dead["task"], dead["key"]).read_bytes()
    elsewhere = content.replace(this_process().encode(), b"00000000-1-1")
    store.heartbeat_path(dead["task"], dead["key"]).write_bytes(elsewhere)
    old = time.time() - claims.STALE_SECONDS - 5
    os.utime(store.heartbeat_path(dead["task"], dead["key"]), (old, old))
    state = biobench("status", "--json").json()
    assert state["counts"] == {"done": 1, "running": 0, "failed": 1, "stopped": 2}
    assert [run["reason"] for run in state["runs"] if run["state"] == "failed"] == ["the loss is not finite"]
    lines = biobench("status").out.splitlines()
    assert lines[0] == "results: 1 done, 0 running, 1 failed, 2 stopped"
    assert f"failed: {failing['task']} · {failing['key'][:8]}: the loss is not finite" in lines
    store.state_path(stopped["task"], stopped["key"]).unlink()
    biobench(*command).ok()
    assert biobench("status").out.startswith("results: 4 done, 0 running, 0 failed, 0 stopped")


def beats() -> list[Path]:
    """Heartbeats of runs under way."""
    return list(Path("results").glob("locks/*/*.running"))


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_signal_ends_runs_at_a_savepoint_and_status_sees_them(
    biobench: Run, launcher: Launcher, tiny: Path, tmp_path: Path, workers: int
) -> None:
    options = ("--task", "demo_topic", "--seeds", "1-2", "--device", "cpu", "--set", "training.epochs=400")
    where = ("--parallel", str(workers), "--no-gate", "--results-dir", tmp_path / "results")
    child = launcher.start("run", tiny, *options, *where)
    try:
        wait_for(lambda: len(beats()) == child.err.read_text().count("started") == workers, child)
        time.sleep(1.0)  # the first steps
        running = [row for row in biobench("status", "--json").json()["runs"] if row["state"] == "running"]
        assert [row["host"] for row in running if row["pid"] > 0] == [os.uname().nodename] * workers
        assert "since" in biobench("status").out
        os.kill(child.pid, signal.SIGTERM)
        assert child.ended.get(timeout=60) == 75
    finally:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
    text = child.err.read_text()
    assert ("Traceback" in text, "give the same command again" in text) == (False, True)
    assert beats() == list(Path("results").glob("runs/*/*.json")) == []
    states = list(Path("results").glob("locks/*/*.state"))
    assert len(states) == workers, "saved at the signal: no five minutes have passed"
    assert biobench("status", "--json").json()["counts"]["stopped"] == workers
