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


def test_the_bare_side_has_the_body_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--side", "bare", "--objective", "clm", "--vocabulary", "50", "--steps", "1"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["tokens_per_second"] > 0
    batch = bench._batches("clm", 1, 2, 16, 50)[0]
    model = bench._model({**bench.TOY, "vocab_size": 50}, torch.device("cpu"))
    ids, nothing = torch.from_numpy(batch.inputs), torch.empty(0, dtype=torch.int64)
    bench._Bare(model)(ids, nothing, nothing, causal=True).backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None}
    assert trained
    assert not any(name.startswith(("head.", "decoder.")) for name in trained)


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    rounds = ((30.0, 40.0), (10.0, 12.0), (16.0, 18.0))
    speed = Speed("clm", 1600, tuple((Once(mine, 7.0), Once(10.0, 7.0), Once(bare, 0.0)) for mine, bare in rounds))
    assert speed.ratios == [1.0, 1.6, 3.0]
    assert speed.bound == 1.8
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
