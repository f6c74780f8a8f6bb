"""One tiny encoder for all tests of this folder, and requests of runs that take tenths of a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biobench.runs.options import RunRequest
from tests.helpers.tiny import make_tiny_encoder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that no test changes."""
    return make_tiny_encoder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def request_of(tiny: Path, tmp_path: Path) -> Callable[..., RunRequest]:
    """`request_of(**changed)`: a few seeds of a demo task, below tmp_path/results."""

    def make(**changed: Any) -> RunRequest:
        fields = {
            "model": str(tiny),
            "tasks": "demo_topic",
            "seeds": "1-2",
            "results_dir": tmp_path / "results",
            "device": "cpu",
            "overrides": "training.epochs=1",
            "limit": 20,
            "gate": False,
        }
        return RunRequest(**{**fields, **changed})

    return make
