"""Runs that were killed, stopped or failed resume with the same scores, `status` names them, and
processes share them.

`tests/kills` kills `run` at any moment.
"""

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from biobench.core.processes import this_process
from biobench.store import Store, claims
from tests.helpers.cli_make import FAST, Said
from tests.helpers.launching import PATIENCE, Child
from tests.kills.__main__ import wait_for_changes

SHARED = "--device cpu --parallel 1 --json --set"


def finished(results: Path) -> dict[Path, tuple[int, bytes]]:
    """Each record that is there, with the time of its writing and its bytes."""
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in results.glob("runs/*/*.json")}


def test_the_other_takes_over_from_a_killed_one(launcher, tiny, tmp_path):
    results = tmp_path / "results"
    command = (
        "run",
        tiny,
        "--task demo_ner --task demo_topic --seeds 1-3 --results-dir",
        results,
    )
    first, second = (launcher.start(*command, SHARED, "training.epochs=1") for _ in range(2))
    wait_for_changes(results, first, 4)
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(first.pid, signal.SIGKILL)
    first.wait()
    kept = finished(results)
    assert second.wait() == 0, second.err.read_text()
    assert len(second.rows()) == len(finished(results)) == 6
    assert kept.items() <= finished(results).items()
    assert {row["status"] for row in second.rows()} <= {"done", "skipped"}
    store = Store(results)
    records, findings = store.scan()
    assert findings == []
    for record in records:
        gold, predictions = store.load_predictions(record)
        assert len(gold) == len(predictions) == record.task.test_documents


def test_a_killed_run_goes_on_where_it_was_stopped(launcher, tiny, tmp_path):
    def one(results: Path, *more: str) -> list[str | Path]:
        shared = ("--save-every 0", SHARED, "training.epochs=12", *more)
        return [
            "run",
            tiny,
            "--task demo_ner --seeds 5 --results-dir",
            results,
            *shared,
        ]

    undisturbed = launcher.start(*one(tmp_path / "undisturbed"))
    assert undisturbed.wait() == 0, undisturbed.err.read_text()
    (expected,) = Store(tmp_path / "undisturbed").records()
    assert expected.training.resumed == 0
    assert not list((tmp_path / "undisturbed" / "locks").glob("*/*.state*")), (
        "a run that has ended keeps no state"
    )

    results = tmp_path / "results"
    state = results / "locks" / "demo_ner" / f"{expected.key}.state"
    # what a shell puts into the background ignores Ctrl-C, and so does all that it starts
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    asked = signal.SIGTERM if ignored else signal.SIGINT
    for how, status in ((signal.SIGKILL, -signal.SIGKILL), (asked, 75)):
        child = launcher.start(*one(results))
        before = state.stat().st_mtime_ns if state.exists() else 0
        until = time.monotonic() + PATIENCE
        while (
            not state.exists() or state.stat().st_mtime_ns == before
        ) and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(child.pid, how)
        assert child.wait() == status, "the run ended before it was stopped"
    assert finished(results) == {}

    planned = launcher.start(*one(results, "--dry-run"))
    assert planned.wait() == 0
    assert [(r["status"], r["reason"]) for r in planned.rows()] == [
        ("planned", "resumes from its last state")
    ]
    last = launcher.start(*one(results))
    assert last.wait() == 0, last.err.read_text()
    assert f"demo_ner · seed 5 · {tiny.name}: step " in last.err.read_text()
    assert ", resumed\n" in last.err.read_text()
    (record,) = Store(results).records()
    assert record.training == expected.training.model_copy(update={"resumed": 2})
    assert record.scores == expected.scores
    assert record.predictions_sha256 == expected.predictions_sha256
    assert record.cost.seconds >= record.cost.train_seconds + record.cost.evaluation_seconds - 0.01
    assert not state.exists()


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("pretrain", "toy_detour", "--quiet --out"), "--resume continues"),
        (("demo", "--results-dir"), "`biobench demo` continues"),
    ],
)
def test_pretraining_that_is_asked_to_stop_has_its_own_status(
    biobench, command, remedy, tmp_path, monkeypatch
):
    monkeypatch.setattr("trainer.train.distributed.StopFlag.__call__", lambda flag: True)
    said = biobench(*command, tmp_path / "out")
    assert (said.status, "Traceback" in said.err) == (75, False)
    assert remedy in said.err.splitlines()[-1]


TASKS = "--task demo_ner --task demo_topic"


def wait_for(what: Callable[[], Any], child: Child) -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert child.ended.empty(), child.err.read_text()
        assert time.monotonic() < until
        time.sleep(0.05)


def test_done_failed_and_stopped(biobench, tiny):
    command = ("run", tiny, TASKS, "--seeds 1-2", *FAST)
    assert biobench("status").out == "results: 0 done, 0 running, 0 failed, 0 stopped\n"
    runs = biobench(*command, "--dry-run --json").json()
    biobench("run", tiny, "--task demo_ner --seeds 1", *FAST).ok()
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
    state = biobench("status --json").json()
    assert state["counts"] == {"done": 1, "running": 0, "failed": 1, "stopped": 2}
    assert [run["reason"] for run in state["runs"] if run["state"] == "failed"] == [
        "the loss is not finite"
    ]
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
    biobench, launcher, tiny, tmp_path, workers
):
    options = ("--task demo_topic --seeds 1-2 --device cpu --set training.epochs=4000",)
    where = ("--parallel", str(workers), "--no-gate --results-dir", tmp_path / "results")
    child = launcher.start("run", tiny, *options, *where)
    try:
        wait_for(lambda: len(beats()) == child.err.read_text().count("started") == workers, child)
        wait_for(lambda: all(claims.read_heartbeat(beat).step for beat in beats()), child)
        running = [
            row for row in biobench("status --json").json()["runs"] if row["state"] == "running"
        ]
        assert [row["host"] for row in running if row["pid"] > 0] == [os.uname().nodename] * workers
        assert "since" in biobench("status").out
        os.kill(child.pid, signal.SIGTERM)
        assert child.ended.get(timeout=60) == 75
    finally:
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
    text = child.err.read_text()
    assert ("Traceback" in text, "repeat the same command" in text) == (False, True)
    assert beats() == list(Path("results").glob("runs/*/*.json")) == []
    states = list(Path("results").glob("locks/*/*.state"))
    assert len(states) == workers, "saved at the signal: no five minutes have passed"
    assert biobench("status --json").json()["counts"]["stopped"] == workers


ALL_RUNS = ("--task demo_ner --task demo_topic --seeds 1-2", *FAST)


def statuses(said: Said) -> list[tuple[str, str | None]]:
    return [(row["status"], row["reason"]) for row in said.json()]


@contextmanager
def elsewhere(
    run: dict[str, Any], results: Path, until: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Another process has claimed this run, for as long as the block lasts or until something is
    seen.
    """
    claimed, over = threading.Event(), threading.Event()

    def other() -> None:
        with Store(results).claim(run["task"], run["key"]):
            claimed.set()
            while not over.wait(0.02) and not until():
                pass

    holder = threading.Thread(target=other)
    holder.start()
    assert claimed.wait(20)
    try:
        yield
    finally:
        over.set()
        holder.join()


def test_the_longest_runs_come_first_and_results_are_in_the_order_of_the_request(biobench, tiny):
    said = biobench("run", tiny, *ALL_RUNS, "--json")
    begun = re.findall(r"^\[\d/4\] (\w+) · .*: started$", said.err, re.MULTILINE)
    assert begun == ["demo_topic"] * 2 + ["demo_ner"] * 2
    assert [row["task"] for row in said.json()] == ["demo_ner"] * 2 + ["demo_topic"] * 2


def test_a_run_that_another_process_makes_is_waited_for_aloud(biobench, tiny, tmp_path, caplog):
    run = biobench("run", tiny, *ALL_RUNS, "--dry-run --json").json()[-1]
    warned = threading.Event()
    caplog.handler.addFilter(lambda record: warned.set() or True)
    with elsewhere(run, tmp_path / "results", warned.is_set):
        said = biobench("run", tiny, *ALL_RUNS, "--no-gate --json")
    assert statuses(said) == [("done", None)] * 4, said.err
    assert said.err.count("waiting for") == 1
    line = (
        f"waiting for runs of other processes (1): {run['task']}, seed {run['seed']} on "
        f"{socket.gethostname()}"
    )
    assert line in said.err


def test_or_left_to_that_process(biobench, tiny, tmp_path):
    run = biobench("run", tiny, *ALL_RUNS, "--dry-run --json").json()[-1]
    with elsewhere(run, tmp_path / "results"):
        said = biobench("run", tiny, *ALL_RUNS, "--no-gate --no-wait --json").ok()
    assert statuses(said) == [("done", None)] * 3 + [("skipped", "another process makes it")]
    assert "waiting for" not in said.err
    assert statuses(biobench("run", tiny, *ALL_RUNS, "--json"))[-1] == ("done", None)


def test_what_failed_in_one_process_is_not_tried_by_the_others(biobench, tiny):
    wild = "--set training.learning_rate=1e10 --set training.max_grad_norm=1e30"
    command = ("run", tiny, "--task demo_topic --seeds 1", *FAST, wild, "--start-token")
    assert ": started" in biobench(*command, "17").err
    again = biobench(*command, "17", "--json")
    assert (again.status, ": started" in again.err) == (1, False)
    assert "not finite" in again.json()[0]["reason"]
    assert ": started" in biobench(*command, "18").err
