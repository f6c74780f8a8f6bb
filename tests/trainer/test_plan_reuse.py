"""A plan counts what is trained, not what is taken over from another run, and refuses what training would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig

from biobench.errors import ModelError, UsageError
from tests.helpers.pretrain_models import CONFIGS
from trainer import api
from trainer.cost.flops import token_cost
from trainer.cost.plan import activation_bytes, skeleton
from trainer.model import attention
from trainer.model.families import family_of, layers_of
from trainer.model.guard import check_phases, freeze
from trainer.model.network import Trainee, set_dropout
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


def test_a_later_phase_is_refused_before_the_first_has_trained(small: list[str], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="layer 3 cannot be frozen"):
        api.pretrain(
            "toy_detour", out=tmp_path / "run", overrides=[*small, "phases.1.freeze.layers=3"], progress="none"
        )
    assert not (tmp_path / "run" / "checkpoints").exists()
    # nothing stands in the way of the corrected recipe
    assert not (tmp_path / "run" / "start" / "start.json").exists()


def test_a_look_at_all_phases_leaves_every_layer_to_train() -> None:
    recipe = api.load_recipe("toy_detour", ["phases.1.freeze={layers: '0-2'}"])
    model = skeleton(recipe)
    check_phases(model, recipe)
    assert all(p.requires_grad for p in model.parameters())


def wide(kind: str) -> transformers.PreTrainedModel:
    """Three layers wide enough that what a layer keeps is mostly vectors of its width."""
    fields: dict[str, Any] = {"hidden_size": 192, "intermediate_size": 320, "num_hidden_layers": 3, "vocab_size": 97}
    if kind == "gemma3_text":
        fields |= {"head_dim": 64}
    config = AutoConfig.for_model(kind, **(CONFIGS[kind] | fields))
    model: transformers.PreTrainedModel = getattr(transformers, family_of(kind).auto).from_config(
        config, attn_implementation=attention.NAME, dtype=torch.float32
    )
    set_dropout(model, 0.0)
    return model.train()


def saved_by(model: transformers.PreTrainedModel, layer: nn.Module, tokens: int, *, bf16: bool) -> int:
    """Bytes that autograd saves first in `layer`, weights and their copies aside."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    matrices = [p for p in model.parameters() if p.ndim == 2]
    shapes = {tuple(p.shape) for p in matrices} | {tuple(p.T.shape) for p in matrices}
    inside, seen = False, {}

    def enter(*_: object) -> None:
        nonlocal inside
        inside = True

    def leave(*_: object) -> None:
        nonlocal inside
        inside = False

    def pack(x: Tensor) -> Tensor:
        place = x.untyped_storage()
        if place.data_ptr() not in own and tuple(x.shape) not in shapes and place.data_ptr() not in seen:
            seen[place.data_ptr()] = (place, inside)
        return x

    layer.register_forward_pre_hook(enter)
    layer.register_forward_hook(leave)
    ids = torch.arange(tokens)[None] % 90 + 5
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x),
        torch.autocast("cpu", torch.bfloat16, enabled=bf16),
    ):
        Trainee(model)(ids, torch.arange(4), torch.arange(4), causal=True)
    return sum(place.nbytes() for place, within in seen.values() if within)


@pytest.mark.parametrize("kind", ["modernbert", "camembert", "eurobert", "gemma3_text"])
def test_memory_is_about_what_autograd_saves(kind: str) -> None:
    model = wide(kind)
    recipe = api.load_recipe("toy_detour", ["engine.precision=bf16"])
    planned = activation_bytes(recipe, model) / len(layers_of(model))
    measured = saved_by(model, layers_of(model)[1], 120, bf16=True) / 120
    assert 0.5 < planned / measured < 1.4


def test_the_cost_of_a_model_follows_what_is_frozen() -> None:
    model = wide("bert")
    free = token_cost(model, length=64, causal=True, predicted=1.0)
    freeze(model, Freeze(layers="0-2"))
    assert token_cost(model, length=64, causal=True, predicted=1.0).linear == pytest.approx(free.linear * 2 / 3)
