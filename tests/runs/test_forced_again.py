"""`--force` makes again what other commands made, whatever the clock showed when they did."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.finetune import savepoint
from biobench.runs.api import run_plan
from biobench.runs.options import RunRequest
from biobench.runs.plan import RunPlan, make_plan
from biobench.runs.result import Reporter
from biobench.store import Store

DAY = 86_400.0
Request = Callable[..., RunRequest]


def plan(request_of: Request, **more: bool) -> RunPlan:
    """One short run."""
    return make_plan(request_of(seeds="1", save_every=0.0, **more))


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
def test_only_a_run_of_the_same_command_stands(request_of: Request, tmp_path: Path, jump: float) -> None:
    """Its other workers, or its requeued job, find what it made; another command makes it again."""
    assert outcome(plan(request_of)) == ("done", None)
    written(tmp_path, jump)
    assert outcome(plan(request_of)) == ("skipped", "the same run is stored already")
    command = plan(request_of, force=True)
    assert outcome(command) == ("done", None)
    written(tmp_path, jump)
    assert outcome(command) == ("skipped", "another process made it meanwhile")


def test_a_state_of_another_command_is_not_resumed(
    request_of: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    """Nor one that was written while the clock was ahead."""
    monkeypatch.setattr(savepoint, "_SHARE", 0.0)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def stopped(command: RunPlan) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", stop)
            with pytest.raises(KeyboardInterrupt):
                run_plan(command, Reporter())

    forced = plan(request_of, force=True)
    stopped(plan(request_of))
    written(tmp_path, DAY)
    steps.clear()
    stopped(forced)
    assert steps, "trained anew"
    whole = len(steps)
    written(tmp_path, DAY)
    assert outcome(forced) == ("done", None)
    assert len(steps) == whole, "the command's own state is resumed"
