"""Requests of runs that take tenths of a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biobench.finetune.loop import Run
from biobench.runs.options import RunRequest


@pytest.fixture
def request_of(tiny: Path, tmp_path: Path) -> Callable[..., RunRequest]:
    """`request_of(**changed)`: a few seeds of a demo task, below tmp_path/results."""

    def make(**changed: Any) -> RunRequest:
        fields: dict[str, Any] = {
            "model": str(tiny),
            "tasks": "demo_topic",
            "seeds": "1-2",
            "results_dir": tmp_path / "results",
        }
        fields |= {"device": "cpu", "overrides": "training.epochs=1", "limit": 20, "gate": False}
        return RunRequest(**{**fields, **changed})

    return make


@pytest.fixture
def encoder(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint, in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tiny


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each training step from here on."""
    taken: list[int] = []
    once = Run._backward
    monkeypatch.setattr(Run, "_backward", lambda self, batch: taken.append(1) or once(self, batch))
    return taken
