"""Options of the engine: bf16 between layers, dropout, and what the ledger holds of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.helpers.trainer_make import write
from trainer import api
from trainer.ledger import read_ledger
from trainer.model.network import load_model
from trainer.recipe.library import load_recipe
from trainer.train.distributed import World
from trainer.train.phase import prepare


def test_a_step_waits_for_no_gpu_to_count_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes: the counts pass as CPU tensors through the host's group, never through the device's."""
    sent: list[tuple[torch.device, object]] = []

    def all_reduce(tensor: Tensor, op: object = None, group: object = None) -> None:
        sent.append((tensor.device, group))
        tensor *= 2

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    group: Any = object()
    assert World(0, 2, torch.device("cuda", 0), group).sums(21, 0) == [42, 0]
    assert sent == [(torch.device("cpu"), group)]
    assert World(0, 1, torch.device("cpu")).sums(3, 1) == [3, 1]


def test_the_ledger_holds_the_machine(small: list[str], tmp_path: Path) -> None:
    api.pretrain("toy_detour", out=tmp_path / "run", overrides=small, progress="none")
    held = read_ledger(tmp_path / "run")
    assert (held.device, held.compiled, held.deterministic, held.micro_windows) == ("cpu", False, False, 8)
    assert held.phases[0].kernels == {"full_attention": "sdpa", "sliding_attention": "dense"}


def test_a_model_that_was_loaded_to_be_evaluated_is_trained(small: list[str], tmp_path: Path) -> None:
    """`from_pretrained` turns dropout off; a phase turns it on again, at the recipe's rate."""
    write(tmp_path / "model", seed=1)
    model = load_model(tmp_path / "model").eval()
    recipe = load_recipe("toy_detour", [*small, "engine.dropout=0.25"])
    training = prepare(recipe, 0, model, None, World(0, 1, torch.device("cpu")))
    assert all(m.training for m in training.module.modules())
    assert {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}
    assert {m.attention_dropout for m in model.modules() if hasattr(m, "attention_dropout")} == {0.25}
