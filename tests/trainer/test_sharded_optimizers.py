"""Optimisers that look at whole weights give one process's curve where fsdp2 shards the weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.two_processes import curve, two_processes
from trainer import api


@pytest.mark.parametrize(("kind", "tolerance"), [("stable_adamw", 1e-4), ("muon", 3e-3)])
def test_two_processes_give_the_curve_of_one(kind: str, tolerance: float, small: list[str], tmp_path: Path) -> None:
    """Muon makes its update orthogonal in bf16, so weights agree less well than losses."""
    options = [*small, f"optimizer.kind={kind}", "phases.1.tokens=384"]
    api.pretrain("toy_detour", out=tmp_path / "one", overrides=options, progress="none")
    two_processes(tmp_path / "two", [*options, "engine.distributed=fsdp2"])
    assert len(curve(tmp_path / "one")) == 13
    assert curve(tmp_path / "two") == pytest.approx(curve(tmp_path / "one"), abs=2e-5)
    one, two = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=0, atol=tolerance)
