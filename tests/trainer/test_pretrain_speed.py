"""The speed comparison compares like with like, and the memory habits change no number."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from trainer import bench
from trainer.bench import Once, Speed
from trainer.memory import clear_gradients


@pytest.mark.parametrize("objective", bench.OBJECTIVES)
def test_both_sides_train_on_the_same(objective: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for side in ("ours", "theirs"):
        words = ["--side", side, "--objective", objective, "--vocabulary", "50", "--steps", "1"]
        assert bench.main(words) == 0
        said.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    assert said[0]["first_loss"] == pytest.approx(said[1]["first_loss"], abs=1e-5)
    assert all(s["tokens_per_second"] > 0 for s in said)


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    speed = Speed("clm", 1600, tuple((Once(mine, 7.0), Once(10.0, 7.0)) for mine in (30.0, 10.0, 16.0)))
    assert speed.ratios == [1.0, 1.6, 3.0]
    assert "16 tokens/s, HF Trainer 10, ratio 1.60 (median of 3, 1.00 to 3.00" in speed.line()


def test_cleared_gradients_are_those_of_a_fresh_step() -> None:
    torch.manual_seed(0)
    frozen, trained = nn.Linear(3, 3), nn.Linear(3, 1)
    frozen.requires_grad_(False)
    optimizer = torch.optim.AdamW([*frozen.parameters(), *trained.parameters()], lr=0.1)
    data = torch.randn(4, 3)
    fresh = torch.autograd.grad(trained(frozen(data)).sum(), list(trained.parameters()))
    trained(frozen(data * 5)).sum().backward()
    clear_gradients(optimizer, torch.device("cpu"))
    trained(frozen(data)).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(trained.parameters(), fresh, strict=True) if p.grad is not None)
    assert trained.weight.grad is not None
    assert frozen.weight.grad is None
    clear_gradients(optimizer, torch.device("cuda"))
    assert trained.weight.grad is None
