"""Options of the engine: bf16 between layers and between processes, and what the ledger holds of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.helpers.two_processes import GOLDEN, curve, two_processes
from trainer import api
from trainer.ledger import compare, read_ledger
from trainer.model.families import layers_of
from trainer.train import phase as phase_module
from trainer.train.distributed import World


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


def test_states_between_layers_are_bf16_where_asked(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[torch.dtype] = set()
    real = phase_module.prepare

    def watched(*arguments: Any, **options: Any) -> Any:
        training = real(*arguments, **options)
        for layer in layers_of(training.module.model):
            layer.register_forward_hook(
                lambda _m, _i, output: seen.add((output[0] if isinstance(output, tuple) else output).dtype)
            )
        return training

    monkeypatch.setattr("trainer.pretrain.prepare", watched)
    ledgers = []
    for residual in ("fp32", "bf16"):
        seen.clear()
        overrides = [*small, "engine.precision=bf16", f"engine.residual={residual}"]
        result = api.pretrain("toy_detour", out=tmp_path / residual, overrides=overrides, progress="none")
        assert seen == {torch.bfloat16 if residual == "bf16" else torch.float32}
        assert curve(tmp_path / residual) == pytest.approx(GOLDEN, abs=0.05)
        assert result.ledger is not None
        ledgers.append(result.ledger)
    assert [row.name for row in compare(*ledgers).differing] == ["precision"]


@pytest.mark.slow
def test_weights_sent_in_bf16_train_and_are_named(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ["engine.distributed=fsdp2", "engine.precision=bf16", "engine.gather=bf16"]
    two_processes(out, [*small, *options])
    assert curve(out) == pytest.approx(GOLDEN, abs=0.05)
    assert read_ledger(out).distributed == "fsdp2, weights sent in bf16"
