"""Runs that redraw a head are twins only where they draw the same one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.trainer_make import ledger
from trainer import api
from trainer.ledger import compare
from trainer.model.network import load_model, model_from_config
from trainer.recipe.library import load_recipe
from trainer.train.distributed import World
from trainer.train.phase import prepare


def test_other_redrawn_heads_are_no_twins() -> None:
    diff = compare(ledger(1, "reinit"), ledger(2, "reinit"))
    assert not diff.matched
    assert diff.verdict == "not matched: init seed"
    assert compare(ledger(1, "reinit"), ledger(1, "reinit")).matched


def test_the_seed_is_shown_and_free_where_nothing_is_redrawn() -> None:
    diff = compare(ledger(1, "keep"), ledger(2, "keep"))
    assert diff.matched
    assert any(line.startswith("~") and "init seed" in line for line in diff.lines())


@pytest.mark.parametrize("fresh", [True, False])
def test_a_head_drawn_anew_starts_without_moments_and_all_else_goes_on(
    fresh: bool, small: list[str], tmp_path: Path
) -> None:
    """fresh: as the phase begins; else as it is resumed, when the head is that of the checkpoint."""
    overrides = [*small, "phases.1.head=reinit", "base.config.initializer_range=0.5"]
    api.pretrain("toy_detour", out=tmp_path, overrides=overrides, progress="none")
    recipe = load_recipe("toy_detour", overrides)
    state, world = tmp_path / "checkpoints" / "end-1-detour", World(0, 1, torch.device("cpu"))
    training = prepare(recipe, 1, model_from_config(tmp_path / "start"), state, world, fresh=fresh)
    before = load_file(tmp_path / "phases" / "detour" / "model.safetensors")
    steps = {}
    for name, p in training.module.model.named_parameters():
        held = training.optimizer.state.get(p, {})
        steps[name] = float(held["step"]) if held else None
        drawn = fresh and name.startswith("head.")
        assert (steps[name] is None) == drawn, name
        if not drawn and name in before:
            assert torch.equal(p.detach(), before[name]), name
    assert {s for s in steps.values() if s is not None} == {12.0}
    if fresh:
        head = training.module.model.get_submodule("head")
        matrix = head.get_parameter("dense.weight").detach()
        assert float(matrix.std()) == pytest.approx(0.5, rel=0.1)
        assert abs(float(matrix.mean())) < 0.1
        assert torch.equal(head.get_parameter("norm.weight").detach(), torch.ones(32))
        assert not torch.equal(before["head.norm.weight"], torch.ones(32))


def test_a_model_that_was_loaded_to_be_evaluated_is_trained(small: list[str], tmp_path: Path) -> None:
    """`from_pretrained` turns dropout off; a phase turns it on again, at the recipe's rate."""
    api.pretrain("toy_detour", out=tmp_path, overrides=small, progress="none")
    model = load_model(tmp_path / "model").eval()
    recipe = load_recipe("toy_detour", [*small, "engine.dropout=0.25"])
    training = prepare(recipe, 0, model, None, World(0, 1, torch.device("cpu")), fresh=True)
    assert all(m.training for m in training.module.modules())
    rates = {m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.25}
    assert {m.attention_dropout for m in model.modules() if hasattr(m, "attention_dropout")} == {0.25}
