"""When the state of a run on disk is kept, taken up and forgotten."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biobench.errors import StoreError, TrainingError
from biobench.finetune import savepoint
from biobench.finetune.loop import Run
from biobench.runs import execute
from biobench.runs.api import run_plan
from biobench.runs.plan import RunPlan, RunRequest, make_plan
from biobench.runs.provenance import EnergyMeter
from biobench.runs.result import Reporter
from biobench.store import Store
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(autouse=True)
def _each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)


class _HalfMeter(EnergyMeter):
    """Half a kilowatt-hour."""

    kwh = 0.5


def _plan(folder: Path, **more: Any) -> RunPlan:
    model = folder / "tiny"
    return make_plan(
        RunRequest(
            model=(str(model if model.exists() else make_tiny_encoder(model)),),
            tasks=("demo_topic",),
            seeds="1",
            results_dir=str(folder / "results"),
            device="cpu",
            overrides=("training.epochs=2",),
            limit=48,
            gate=False,
            save_every=0.0,
            **more,
        )
    )


def _states(folder: Path) -> list[str]:
    return [p.name for p in (folder / "results" / "locks").rglob("*.state*")]


def test_a_result_that_finds_no_room_costs_no_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise StoreError("cannot be written: No space left on device", hint="free space")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        with pytest.raises(StoreError, match="No space left"):
            run_plan(_plan(tmp_path), Reporter())
    assert len(_states(tmp_path)) == 1
    # The energy of the first process is not known.
    monkeypatch.setattr(execute, "metered", lambda wanted: contextlib.nullcontext(_HalfMeter()))
    steps: list[int] = []
    once = Run._backward
    monkeypatch.setattr(Run, "_backward", lambda self, batch: steps.append(1) or once(self, batch))
    (result,) = run_plan(_plan(tmp_path), Reporter())
    assert result.status == "done"
    assert steps == []
    assert _states(tmp_path) == []
    (record,) = Store(tmp_path / "results").records()
    assert record.training.resumed == 1
    assert record.training.steps > 0
    assert record.cost.energy_kwh is None
    run_plan(_plan(tmp_path, force=True), Reporter())
    assert Store(tmp_path / "results").records()[0].cost.energy_kwh == 0.5


@pytest.mark.parametrize("error", [TrainingError("it did not work", hint="do otherwise"), ValueError("broken")])
def test_a_failed_run_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    once = Run._validate

    def broken(self: Run, step: int, losses: list[float]) -> bool:
        if step == self.total:
            assert len(_states(tmp_path)) == 1
            raise error
        return once(self, step, losses)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "_validate", broken)
        (result,) = run_plan(_plan(tmp_path), Reporter())
    assert result.status == "failed"
    assert _states(tmp_path) == []
    (result,) = run_plan(_plan(tmp_path), Reporter())
    assert result.status == "done"
    assert Store(tmp_path / "results").records()[0].training.resumed == 0


def test_weights_learnt_from_agreement_bound_text_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(tmp_path)
    (entry,) = plan.tasks
    bound = replace(entry.loaded, spec=entry.loaded.spec.model_copy(update={"access": "agreement"}))
    entry.loaded = bound
    seen: list[bool] = []
    once = Run._validate
    monkeypatch.setattr(Run, "_validate", lambda self, *rest: (seen.append(self.keep is None), once(self, *rest))[1])
    (result,) = run_plan(plan, Reporter())
    assert result.status == "done"
    assert seen == [True, True]
    assert _states(tmp_path) == []


def test_a_checkpoint_that_does_not_load_costs_only_its_own_runs(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    broken = shutil.copytree(tmp_path / "tiny", tmp_path / "broken")
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:1000])
    request = replace(plan.request, model=(str(broken), str(tmp_path / "tiny")))
    failed, done = run_plan(make_plan(request), Reporter())
    assert (failed.status, done.status) == ("failed", "done")
    assert "cannot be loaded" in (failed.reason or "")
