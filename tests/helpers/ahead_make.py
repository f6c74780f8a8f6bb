"""Plans that prepare ahead, by a process or by stand-ins for it, and what their runs leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.finetune.ahead import Ahead, NextTask, tokenise
from biobench.runs import workshop
from biobench.runs.api import run_plan
from biobench.runs.execute import Silent
from biobench.runs.plan import RunRequest, make_plan
from biobench.schema.record import RunRecord
from biobench.store import Store


class AtOnce(Ahead):
    """Stands in for the process: the next task is tokenised, by the same code, before this one trains."""

    tasks: list[NextTask]

    def begin(self, task: NextTask) -> bool:
        self.tasks.append(task)
        tokenise(replace(task, memory=None))
        return True


class Failing(AtOnce):
    """The same, where nothing comes of it."""

    def begin(self, task: NextTask) -> bool:
        self.tasks.append(task)
        return True


def use(monkeypatch: pytest.MonkeyPatch, kind: type[Ahead], spare: int = 1) -> list[NextTask]:
    """Let plans prepare ahead in this way; what they will ask for."""
    tasks: list[NextTask] = []
    monkeypatch.setattr(AtOnce, "tasks", tasks, raising=False)
    monkeypatch.setattr(workshop, "Ahead", kind)
    monkeypatch.setattr(workshop, "spare_cpus", lambda busy: spare)
    return tasks


def request(model: Path, folder: Path) -> RunRequest:
    """Two seeds of two demo tasks, a matter of tenths of a second each."""
    return RunRequest(
        model=model,
        tasks=["demo_topic", "demo_ner"],
        seeds="1-2",
        results_dir=folder,
        device="cpu",
        overrides=["training.epochs=1"],
        limit=20,
        gate=False,
    )


def records(basis: RunRequest, status: str = "done") -> dict[tuple[str, int], RunRecord]:
    """The records that the request's runs leave, each with this status."""
    results = run_plan(make_plan(basis), Silent())
    assert {(r.status, r.reason) for r in results if r.status != status} == set()
    return {(r.task.id, r.seed): r for r in Store(basis.results_dir).records()}


def assert_same(first: dict[tuple[str, int], RunRecord], second: dict[tuple[str, int], RunRecord]) -> None:
    """Keys, training, windows, scores and predictions, bit for bit."""
    assert first.keys() == second.keys()
    for name, a in first.items():
        b = second[name]
        assert (a.key, a.training, a.windows, a.scores) == (b.key, b.training, b.windows, b.scores)
        assert a.predictions_sha256 == b.predictions_sha256
