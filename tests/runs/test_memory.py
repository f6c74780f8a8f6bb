"""What stays in memory does not grow with seeds in sequence, with tasks, or with runs that are
restarted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.finetune.network import Network
from biobench.runs.api import run_plan
from biobench.runs.plan import RunRequest, make_plan
from biobench.runs.result import Reporter, RunResult


def tensor_bytes() -> int:
    """Of all tensors that anything still refers to, each storage once."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if isinstance(thing, torch.Tensor):
            try:
                storage = thing.untyped_storage()
                storages[storage.data_ptr()] = storage.nbytes()
            except (
                RuntimeError,
                NotImplementedError,
            ):  # traces that a compiled test left in this process
                continue
    return sum(storages.values())


class Weighed(Reporter):
    """A reporter that weighs memory at the end of each run."""

    def __init__(self) -> None:
        self.sizes: dict[tuple[str, int], int] = {}

    def finish(self, result: RunResult) -> None:
        assert result.status == "done", result.reason
        self.sizes[result.task, result.seed] = tensor_bytes()


def test_seeds_tasks_and_restarts_leave_nothing_behind(
    tiny: Path, request_of: Callable[..., RunRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Network.forward
    restarts = 0

    def poisoned(self: Network, encoded: Any) -> torch.Tensor:
        nonlocal restarts
        logits = whole(self, encoded)
        if self.training and torch.is_autocast_enabled("cpu"):
            restarts += 1
            return logits * float("nan")
        return logits

    monkeypatch.setattr(Network, "forward", poisoned)
    others = tensor_bytes()  # of tests that this process ran before
    reporter = Weighed()
    overrides = ["training.epochs=2", "training.precision=bf16"]
    request = request_of(tasks=["demo_topic", "demo_ner"], seeds="1-3", overrides=overrides)
    run_plan(make_plan(request), reporter)
    assert restarts == 6, "each run begins in bf16 and is repeated in fp32"
    weights = sum(f.stat().st_size for f in tiny.glob("*.safetensors"))
    for task in ("demo_topic", "demo_ner"):
        sizes = [reporter.sizes[task, seed] - others for seed in range(1, 4)]
        assert max(sizes[1:]) - sizes[1] <= 0.01 * sizes[1], sizes
        assert sizes[-1] < 6 * weights + (1 << 20), (
            "one copy, its first weights, gradients: nothing of three seeds"
        )
    assert abs(reporter.sizes["demo_ner", 3] - reporter.sizes["demo_topic", 3]) < 2 * weights
