"""When the state of a run on disk is kept, taken up and forgotten, and what `--force` makes
again."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.errors import StoreError, TrainingError
from biobench.finetune import savepoint
from biobench.finetune.loop import Run
from biobench.runs.api import run_plan
from biobench.runs.plan import RunPlan, RunRequest, make_plan
from biobench.runs.result import Reporter
from biobench.store import Store

Plan = Callable[..., RunPlan]
DAY = 86_400.0


@pytest.fixture(autouse=True)
def _each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)


@pytest.fixture
def plan(request_of: Callable[..., RunRequest]) -> Plan:
    """One run whose state is written after each step."""
    fast = {"seeds": "1", "overrides": "training.epochs=2", "limit": 48, "save_every": 0.0}
    return lambda **more: make_plan(request_of(**fast, **more))


def _states(folder: Path) -> list[str]:
    return [p.name for p in (folder / "results" / "locks").rglob("*.state*")]


def test_a_result_that_finds_no_room_costs_no_training(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    def full(*arguments: object) -> None:
        raise StoreError("cannot be written: No space left on device", hint="free space")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        with pytest.raises(StoreError, match="No space left"):
            run_plan(plan(), Reporter())
    assert len(_states(tmp_path)) == 1
    steps.clear()
    (result,) = run_plan(plan(), Reporter())
    assert result.status == "done"
    assert steps == []
    assert _states(tmp_path) == []
    (record,) = Store(tmp_path / "results").records()
    assert record.training.resumed == 1
    assert record.training.steps > 0


@pytest.mark.parametrize(
    "error", [TrainingError("it did not work", hint="do otherwise"), ValueError("broken")]
)
def test_a_failed_run_begins_anew(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    once = Run._validate

    def broken(self: Run, step: int, losses: list[float]) -> bool:
        if step == self.total:
            assert len(_states(tmp_path)) == 1
            raise error
        return once(self, step, losses)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "_validate", broken)
        (result,) = run_plan(plan(), Reporter())
    assert result.status == "failed"
    assert _states(tmp_path) == []
    (result,) = run_plan(plan(), Reporter())
    assert result.status == "done"
    assert Store(tmp_path / "results").records()[0].training.resumed == 0


def test_weights_learnt_from_agreement_bound_text_are_not_written(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = plan()
    (entry,) = command.tasks
    bound = replace(entry.loaded, spec=entry.loaded.spec.model_copy(update={"access": "agreement"}))
    entry.loaded = bound
    seen: list[bool] = []
    once = Run._validate
    monkeypatch.setattr(
        Run,
        "_validate",
        lambda self, *rest: (seen.append(self.keep is savepoint.NOT_KEPT), once(self, *rest))[1],
    )
    (result,) = run_plan(command, Reporter())
    assert result.status == "done"
    assert seen == [True, True]
    assert _states(tmp_path) == []


def test_a_checkpoint_that_does_not_load_costs_only_its_own_runs(
    tmp_path: Path, tiny: Path, plan: Plan
) -> None:
    broken = shutil.copytree(tiny, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:1000])
    request = replace(plan().request, model=(str(broken), str(tiny)))
    failed, done = run_plan(make_plan(request), Reporter())
    assert (failed.status, done.status) == ("failed", "done")
    assert "cannot be loaded" in (failed.reason or "")


def outcome(plan: RunPlan) -> tuple[str, str | None]:
    """(status, reason) of the plan's run."""
    (result,) = run_plan(plan, Reporter())
    return result.status, result.reason


def written(folder: Path, seconds: float) -> None:
    """The files bear times so far from now."""
    for path in folder.rglob("*.*"):
        if path.is_file():
            os.utime(path, (time.time() + seconds,) * 2)


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["ahead", "behind"])
def test_only_a_run_of_the_same_command_stands(plan: Plan, tmp_path: Path, jump: float) -> None:
    """Its other workers, or its requeued job, find what it made; another command makes it again."""
    assert outcome(plan()) == ("done", None)
    written(tmp_path, jump)
    assert outcome(plan()) == ("skipped", "the same run is stored already")
    command = plan(force=True)
    assert outcome(command) == ("done", None)
    written(tmp_path, jump)
    assert outcome(command) == ("skipped", "another process made it meanwhile")


def test_a_state_of_another_command_is_not_resumed(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    """Nor one that was written while the clock was ahead."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def stopped(command: RunPlan) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", stop)
            with pytest.raises(KeyboardInterrupt):
                run_plan(command, Reporter())

    forced = plan(force=True)
    stopped(plan())
    written(tmp_path, DAY)
    steps.clear()
    stopped(forced)
    assert steps, "trained anew"
    whole = len(steps)
    written(tmp_path, DAY)
    assert outcome(forced) == ("done", None)
    assert len(steps) == whole, "the command's own state is resumed"
