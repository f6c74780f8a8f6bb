"""Twins are equal where they must be; every other change is named on its own line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from biobench.errors import StoreError
from tests.helpers.trainer_make import train
from trainer import api
from trainer.ledger import read_ledger
from trainer.recipe.phases import Phase, Schedule
from trainer.recipe.spec import Optimizer
from trainer.train.optimizer import factor, make_optimizer, set_rate


def test_detour_twin_and_noise_twin_match_and_say_what_is_free(
    reference: Path, small: list[str], tmp_path: Path
) -> None:
    twin, noise = (train(tmp_path / name, small, f"toy_{name}").out for name in ("mlm_twin", "noise_twin"))
    diff = api.ledger_diff(reference, twin)
    assert diff.verdict == diff.lines()[-1] == "matched"
    assert not diff.noise_pair
    free = ("phase 1 name", "phase 1 objective", "phase 1 masking", "phase 1 targets", "phase 1 FLOPs", "total FLOPs")
    assert {r.name for r in diff.rows if not r.equal} == set(free)
    assert api.ledger_diff(twin, noise).noise_pair
    first, second = read_ledger(twin).phases[0], read_ledger(noise).phases[0]
    assert first.order_hash == second.order_hash
    assert first.targets != second.targets


def test_ledgers_are_read_from_anywhere_and_damage_is_named(reference: Path, tmp_path: Path) -> None:
    assert read_ledger(reference) == read_ledger(reference / "model") == read_ledger(reference / "ledger.json")
    with pytest.raises(StoreError, match="no ledger"):
        read_ledger(tmp_path)
    values = json.loads((reference / "ledger.json").read_text())
    del values["phases"]
    (tmp_path / "ledger.json").write_text(json.dumps(values))
    with pytest.raises(StoreError, match="damaged"):
        read_ledger(tmp_path)


def phase(shape: str, **more: object) -> Phase:
    schedule = Schedule.model_validate({"shape": shape, **more})
    return Phase(name="p", objective="clm", tokens=1000, schedule=schedule)


def test_adamw_is_the_paper_s_decoupled_rule() -> None:
    """Weights shrink by (rate / peak) * decay per step; biases and norms do not."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)).double()
    spec = Optimizer(learning_rate=2e-2, weight_decay=1e-3)
    optimizer = make_optimizer(model, spec)
    expected = {n: p.detach().clone() for n, p in model.named_parameters()}
    moments = {n: (torch.zeros_like(v), torch.zeros_like(v)) for n, v in expected.items()}
    for step in range(1, 30):
        rate = 2e-2 * (1 - step / 60)
        model(torch.randn(8, 4).double()).square().sum().backward()
        for name, p in model.named_parameters():
            assert p.grad is not None
            m, v = moments[name]
            m.mul_(0.9).add_(p.grad, alpha=0.1)
            v.mul_(0.98).addcmul_(p.grad, p.grad, value=0.02)
            value = expected[name]
            if p.ndim > 1:
                value *= 1 - rate / 2e-2 * 1e-3
            value -= rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.98**step)).sqrt() + 1e-6)
        set_rate(optimizer, rate)
        optimizer.step()
        optimizer.zero_grad()
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), expected[name], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", ["1-sqrt", "linear", "cosine"])
@pytest.mark.parametrize(("warmup", "cooldown"), [(0, None), (95, None), (100, 300), (105, 40)])
def test_every_step_has_the_rate_that_tokens_give_it(shape: str, warmup: int, cooldown: int | None) -> None:
    """By the tokens that are read: at a step's end while the rate rises, before the step while it falls."""
    p = phase(shape, warmup=warmup, cooldown=cooldown, final=0.2)
    for step in range(103):  # the last step ends beyond the phase's 1000 tokens, so all count from its true end
        before, after, end = step * 10, step * 10 + 10, 1030
        if after <= warmup:
            expected = after / warmup
        else:
            fall = cooldown if cooldown is not None else end - warmup
            over = max(0, before - (end - fall)) / fall
            down = {"1-sqrt": over**0.5, "linear": over, "cosine": (1 - math.cos(math.pi * over)) / 2}[shape]
            expected = 1 - 0.8 * down
        assert factor(p, step, steps=103, step_tokens=10) == pytest.approx(expected, abs=1e-12), step
    assert factor(phase("constant"), 77, steps=100, step_tokens=10) == 1
