"""A model whose files change while a command runs: its later runs are refused, its earlier ones
stay.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from biobench.runs.api import run_plan
from biobench.runs.plan import RunPlan, RunRequest, make_plan
from biobench.runs.result import Reporter, RunResult
from biobench.store import Store


class Meddler(Reporter):
    """Writes to the model's folder when the first run has ended."""

    def __init__(self, folder: Path, change: str) -> None:
        self.folder, self.change, self.ends = folder, change, 0

    def finish(self, result: RunResult) -> None:
        self.ends += 1
        if self.ends > 1:
            return
        weights = self.folder / "model.safetensors"
        if self.change == "weights":
            tensors = {name: torch.zeros_like(value) for name, value in load_file(weights).items()}
            save_file(tensors, weights, metadata={"format": "pt"})
        elif self.change == "touched":
            os.utime(weights, ns=(1, 1))
        elif self.change == "removed":
            weights.unlink()
        else:
            vocabulary = self.folder / "tokenizer.json"
            vocabulary.write_text(vocabulary.read_text().replace("<unk>", "<UNK>"))


@pytest.fixture
def planned(
    tiny: Path, tmp_path: Path, request_of: Callable[..., RunRequest]
) -> tuple[Path, RunPlan]:
    """A model's folder, and a plan of two seeds."""
    folder = Path(shutil.copytree(tiny, tmp_path / "tiny"))
    return folder, make_plan(request_of(model=str(folder)))


@pytest.mark.parametrize("change", ["weights", "tokenizer", "removed", "touched"])
def test_a_model_that_changes_between_two_seeds_is_noticed(
    change: str, planned: tuple[Path, RunPlan], tmp_path: Path
) -> None:
    folder, plan = planned
    results = run_plan(plan, Meddler(folder, change))
    if change == "touched":
        assert [r.status for r in results] == ["done"] * 2, "the same content is the same model"
        return
    assert [r.status for r in results] == ["done", "failed"]
    assert "files changed after this command had begun" in (results[1].reason or "")
    assert [r.seed for r in Store(tmp_path / "results").records()] == [1]


def test_a_model_that_changes_before_it_is_loaded_is_noticed(
    planned: tuple[Path, RunPlan], tmp_path: Path
) -> None:
    folder, plan = planned
    Meddler(folder, "weights").finish(RunResult.__new__(RunResult))
    assert {r.status for r in run_plan(plan, Reporter())} == {"failed"}
    assert Store(tmp_path / "results").records() == []
