"""Killed and started again, or started twice, `run` repeats nothing, damages nothing and ends with the same scores.

`tests/kills` kills it at any moment.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from biobench.store import Store
from tests.helpers.cli_make import Run
from tests.helpers.launching import PATIENCE, Launcher
from tests.kills.__main__ import wait_for_changes

SHARED = ("--device", "cpu", "--parallel", "1", "--json", "--set")


def command(tiny: Path, results: Path, seeds: str) -> list[str | Path]:
    """The run of all demo tasks and seeds."""
    tasks = ("--task", "demo_ner", "--task", "demo_topic")
    return ["run", tiny, *tasks, "--seeds", seeds, "--results-dir", results, *SHARED, "training.epochs=1"]


def finished(results: Path) -> dict[Path, tuple[int, bytes]]:
    """Each record that is there, with the time of its writing and its bytes."""
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in results.glob("runs/*/*.json")}


def whole(results: Path) -> None:
    """Every record and its predictions can be read and belong together."""
    store = Store(results)
    records, findings = store.scan()
    assert findings == []
    for record in records:
        gold, predictions = store.load_predictions(record)
        assert len(gold) == len(predictions) == record.task.test_documents


def test_the_other_takes_over_from_a_killed_one(launcher: Launcher, tiny: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = launcher.start(*command(tiny, results, "1-3"))
    second = launcher.start(*command(tiny, results, "1-3"))
    wait_for_changes(results, first, 4)
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(first.pid, signal.SIGKILL)
    first.wait()
    kept = finished(results)
    assert second.wait() == 0, second.err.read_text()
    assert len(second.rows()) == len(finished(results)) == 6
    assert kept.items() <= finished(results).items()
    assert {row["status"] for row in second.rows()} <= {"done", "skipped"}
    whole(results)


def test_a_killed_run_goes_on_where_it_was_stopped(launcher: Launcher, tiny: Path, tmp_path: Path) -> None:
    def one(results: Path, *more: str) -> list[str | Path]:
        shared = ("--save-every", "0", *SHARED, "training.epochs=12", *more)
        return ["run", tiny, "--task", "demo_ner", "--seeds", "5", "--results-dir", results, *shared]

    undisturbed = launcher.start(*one(tmp_path / "undisturbed"))
    assert undisturbed.wait() == 0, undisturbed.err.read_text()
    (expected,) = Store(tmp_path / "undisturbed").records()
    assert expected.training.resumed == 0
    assert not list((tmp_path / "undisturbed" / "locks").glob("*/*.state*")), "a run that has ended keeps no state"

    results = tmp_path / "results"
    state = results / "locks" / "demo_ner" / f"{expected.key}.state"
    for _ in range(2):
        child = launcher.start(*one(results))
        before = state.stat().st_mtime_ns if state.exists() else 0
        until = time.monotonic() + PATIENCE
        while (not state.exists() or state.stat().st_mtime_ns == before) and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL, "the run ended before it was killed"
    assert finished(results) == {}

    planned = launcher.start(*one(results, "--dry-run"))
    assert planned.wait() == 0
    assert [(r["status"], r["reason"]) for r in planned.rows()] == [("planned", "resumes from its last state")]
    last = launcher.start(*one(results))
    assert last.wait() == 0, last.err.read_text()
    assert "demo_ner · seed 5: step " in last.err.read_text()
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
        (("pretrain", "toy_detour", "--quiet", "--out"), "--resume continues"),
        (("demo", "--results-dir"), "`biobench demo` continues"),
    ],
)
def test_pretraining_that_is_asked_to_stop_has_its_own_status(
    biobench: Run, command: tuple[str, ...], remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.train.distributed.StopFlag.__call__", lambda flag: True)
    said = biobench(*command, tmp_path / "out")
    assert (said.status, "Traceback" in said.err) == (75, False)
    assert remedy in said.err.splitlines()[-1]
