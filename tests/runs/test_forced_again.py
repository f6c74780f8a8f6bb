"""`--force` makes again what other commands made, whatever the clock showed when they did."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from biobench.finetune import savepoint
from biobench.finetune.loop import Run
from biobench.runs.api import run_plan
from biobench.runs.options import RunRequest
from biobench.runs.plan import RunPlan, make_plan
from biobench.runs.result import Reporter
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder

DAY = 86_400.0
JUMPS = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["ahead", "behind"])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint."""
    return make_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny")


def plan(model: Path, folder: Path, **more: Any) -> RunPlan:
    """One short run."""
    return make_plan(
        RunRequest(
            model=(str(model),),
            tasks=("demo_topic",),
            seeds="1",
            results_dir=str(folder),
            device="cpu",
            overrides=("training.epochs=1",),
            limit=24,
            gate=False,
            save_every=0.0,
            **more,
        )
    )


def outcome(plan: RunPlan) -> tuple[str, str | None]:
    """(status, reason) of the plan's run."""
    (result,) = run_plan(plan, Reporter())
    return result.status, result.reason


def written(folder: Path, pattern: str, seconds: float) -> None:
    """The files bear times so far from now."""
    paths = [p for p in folder.rglob(pattern) if p.is_file()]
    assert paths
    for path in paths:
        os.utime(path, (time.time() + seconds,) * 2)


@JUMPS
def test_a_run_of_another_command_is_made_again(model: Path, tmp_path: Path, jump: float) -> None:
    """Before, one that was stored while the clock was ahead counted as made by the command that came after it."""
    assert outcome(plan(model, tmp_path)) == ("done", None)
    written(tmp_path, "*.json", jump)
    assert outcome(plan(model, tmp_path)) == ("skipped", "the same run is stored already")
    assert outcome(plan(model, tmp_path, force=True)) == ("done", None)


@JUMPS
def test_a_run_of_the_same_command_is_not(model: Path, tmp_path: Path, jump: float) -> None:
    """Its other workers, or its requeued job. Before, a clock that jumped back let each of them make every run."""
    command = plan(model, tmp_path, force=True)
    assert outcome(command) == ("done", None)
    written(tmp_path, "*.json", jump)
    written(tmp_path, "*.command", jump)
    assert outcome(command) == ("skipped", "another process made it meanwhile")


def test_what_another_process_makes_meanwhile_stands(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands with --force at once: the second waits for the first's run, and does not make it a second time."""
    first, second = plan(model, tmp_path, force=True), plan(model, tmp_path, force=True)
    claim, asked = Store.claim, list[str]()

    def claimed_once(store: Store, task_id: str, key: str) -> Any:
        asked.append(key)
        if len(asked) == 1:
            assert outcome(first) == ("done", None)
        return claim(store, task_id, key)

    monkeypatch.setattr(Store, "claim", claimed_once)
    assert outcome(second) == ("skipped", "another process made it meanwhile")


@JUMPS
def test_a_state_of_another_command_is_not_resumed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Before, a state that was written while the clock was ahead was resumed in spite of --force."""
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def stopped(command: RunPlan) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", stop)
            with pytest.raises(KeyboardInterrupt):
                run_plan(command, Reporter())

    forced = plan(model, tmp_path, force=True)
    stopped(plan(model, tmp_path))
    written(tmp_path, "*.state", jump)
    steps: list[int] = []
    once = Run._backward
    monkeypatch.setattr(Run, "_backward", lambda self, batch: steps.append(1) or once(self, batch))
    stopped(forced)
    assert steps, "trained anew"
    whole = len(steps)
    written(tmp_path, "*.state", jump)
    assert outcome(forced) == ("done", None)
    assert len(steps) == whole, "the command's own state is resumed"
