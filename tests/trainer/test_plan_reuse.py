"""A plan counts what is trained, not what is taken over from another run, and refuses what training would."""

from __future__ import annotations

import pytest

from biobench.errors import ModelError, UsageError
from tests.helpers.pretrain_models import tiny
from trainer import api
from trainer.cost.flops import token_cost
from trainer.cost.plan import skeleton
from trainer.model.guard import check_phases, freeze
from trainer.recipe.phases import Freeze


def test_phases_taken_over_are_not_counted(small: list[str]) -> None:
    whole = api.plan("toy_detour", overrides=small)
    names = [p.name for p in whole.phases]
    part = api.plan("toy_detour", overrides=[*small, f"reuse={{run: runs/donor, through: {names[0]}}}"])
    assert part.phases == whole.phases[1:]
    assert (part.reused, whole.reused) == ((names[0],), ())
    (second,) = part.phases
    assert (part.steps, part.tokens, part.flops) == (second.steps, second.tokens, second.flops)
    assert f"{names[0]}: taken over, not trained again" in "\n".join(part.lines())


@pytest.mark.parametrize(
    ("overrides", "gpus", "kind", "said"),
    [
        ([], 5, UsageError, "8 windows a step cannot be shared by 5 GPUs"),
        (["phases.0.freeze.layers=2-9"], 1, ModelError, "layer 9 cannot be frozen: the model has layers 0-2"),
        (["phases.1.freeze.layers=3"], 1, ModelError, "layer 3 cannot be frozen"),
        (["corpus.sequence_length=1024"], 1, ModelError, "windows of 1024 tokens are longer than the model's 512"),
    ],
)
def test_what_training_refuses_is_not_planned(
    small: list[str], overrides: list[str], gpus: int, kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        api.plan("toy_detour", overrides=[*small, "batch.sequences=8", *overrides], gpus=gpus)


def test_a_look_at_all_phases_leaves_every_layer_to_train() -> None:
    recipe = api.load_recipe("toy_detour", ["phases.1.freeze={layers: '0-2'}"])
    model = skeleton(recipe)
    check_phases(model, recipe)
    assert all(p.requires_grad for p in model.parameters())


def test_the_cost_of_a_model_follows_what_is_frozen() -> None:
    model = tiny("bert")
    free = token_cost(model, length=64, causal=True, predicted=1.0)
    freeze(model, Freeze(layers=f"0-{model.config.num_hidden_layers - 1}"))
    assert token_cost(model, length=64, causal=True, predicted=1.0).linear == pytest.approx(free.linear * 2 / 3)
