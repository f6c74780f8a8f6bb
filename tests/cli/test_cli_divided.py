"""The same `run` command in several processes: claims divide the work, and a start token makes them one command."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from biobench.store import Store
from tests.helpers.cli_make import FAST, Run, Said

TASKS = ("--task", "demo_ner", "--task", "demo_topic", "--seeds", "1-2", *FAST)


def statuses(said: Said) -> list[tuple[str, str | None]]:
    return [(row["status"], row["reason"]) for row in said.json()]


@contextmanager
def elsewhere(run: dict[str, Any], results: Path, until: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Another process has claimed this run, for as long as the block lasts or until something is seen."""
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


def test_the_longest_runs_come_first_and_results_are_in_the_order_of_the_request(biobench: Run, tiny: Path) -> None:
    said = biobench("run", tiny, *TASKS, "--json")
    begun = [line.split(" · ")[1] for line in said.err.splitlines() if line.endswith(": started")]
    assert begun == ["demo_topic"] * 2 + ["demo_ner"] * 2
    assert [row["task"] for row in said.json()] == ["demo_ner"] * 2 + ["demo_topic"] * 2


def test_a_run_that_another_process_makes_is_waited_for_aloud(
    biobench: Run, tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = biobench("run", tiny, *TASKS, "--dry-run", "--json").json()[-1]
    warned = threading.Event()
    caplog.handler.addFilter(lambda record: warned.set() or True)
    with elsewhere(run, tmp_path / "results", warned.is_set):
        said = biobench("run", tiny, *TASKS, "--no-gate", "--json")
    assert statuses(said) == [("done", None)] * 4, said.err
    assert said.err.count("waiting for") == 1
    line = f"waiting for a run that another process makes: {run['task']}, seed {run['seed']} on {socket.gethostname()}"
    assert line in said.err


def test_or_left_to_that_process(biobench: Run, tiny: Path, tmp_path: Path) -> None:
    run = biobench("run", tiny, *TASKS, "--dry-run", "--json").json()[-1]
    with elsewhere(run, tmp_path / "results"):
        said = biobench("run", tiny, *TASKS, "--no-gate", "--no-wait", "--json").ok()
    assert statuses(said) == [("done", None)] * 3 + [("skipped", "another process makes it")]
    assert "waiting for" not in said.err
    assert statuses(biobench("run", tiny, *TASKS, "--json"))[-1] == ("done", None)


def test_processes_of_one_start_make_a_forced_run_once(biobench: Run, tiny: Path) -> None:
    """A late worker, or one that was requeued, finds what the others have made."""
    biobench("run", tiny, *TASKS).ok()
    forced = ("run", tiny, *TASKS, "--force", "--json", "--start-token")
    assert statuses(biobench(*forced, "17")) == [("done", None)] * 4
    assert statuses(biobench(*forced, "17")) == [("skipped", "another process made it meanwhile")] * 4
    assert statuses(biobench(*forced, "18")) == [("done", None)] * 4, "another start is another command"


def test_what_failed_in_one_process_is_not_tried_by_the_others(biobench: Run, tiny: Path) -> None:
    wild = ("--set", "training.learning_rate=1e30", "--set", "training.max_grad_norm=1e30")
    command = ("run", tiny, "--task", "demo_topic", "--seeds", "1", *FAST, *wild, "--start-token")
    assert ": started" in biobench(*command, "17").err
    again = biobench(*command, "17", "--json")
    assert (again.status, ": started" in again.err) == (1, False)
    assert "not finite" in again.json()[0]["reason"]
    assert ": started" in biobench(*command, "18").err
