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
from trainer.cost.plan import kept_bytes
from trainer.model import attention
from trainer.model.families import family_of, layers_of
from trainer.model.guard import freeze
from trainer.model.network import Trainee, reinit_head, set_dropout
from trainer.recipe.phases import Freeze


def test_phases_taken_over_are_not_counted(small: list[str]) -> None:
    whole = api.plan("toy_detour", overrides=small)
    names = [p.name for p in whole.phases]
    part = api.plan("toy_detour", overrides=[*small, f"reuse={{run: runs/donor, through: {names[0]}}}"])
    assert part.phases == whole.phases[1:]
    given = part.as_dict()
    assert list(given["reused"]) == names[:1]
    assert given["reused_from"] == "runs/donor"
    assert given["steps"] == whole.phases[1].steps
    assert given["tokens"] == whole.phases[1].tokens
    assert given["flops"] == whole.phases[1].flops
    assert f"taken over from runs/donor, not trained again: {names[0]}" in "\n".join(part.lines())
    assert not whole.as_dict()["reused"]
    assert "taken over" not in "\n".join(whole.lines())


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


@pytest.mark.parametrize(
    ("recipe", "override", "said"),
    [
        ("toy_detour", "phases.1.freeze.layers=3", "layer 3 cannot be frozen"),
        ("toy_biphasic", "phases.1.head=reinit", "a eurobert model has no head to draw anew"),
    ],
)
def test_a_later_phase_is_refused_before_the_first_has_trained(
    small: list[str], recipe: str, override: str, said: str, tmp_path: Path
) -> None:
    own = small if recipe == "toy_detour" else [s for s in small if "local_attention" not in s]
    own = [*own, "phases.1.schedule.cooldown=1k"]
    with pytest.raises(ModelError, match=said):
        api.pretrain(recipe, out=tmp_path / "run", overrides=[*own, override], progress="none")
    assert not (tmp_path / "run" / "checkpoints").exists()
    assert not (tmp_path / "corpora").exists()
    # nothing stands in the way of the corrected recipe
    assert not (tmp_path / "run" / "start" / "start.json").exists()


def test_frozen_weights_cost_no_gradients_of_their_own(small: list[str]) -> None:
    free, frozen = (api.plan("toy_detour", overrides=[*small, *more]) for more in ([], ["phases.0.freeze.layers=0-1"]))
    # two of three layers take two products in place of three
    assert frozen.phases[0].linear == pytest.approx(free.phases[0].linear * (1 - 2 / 3 / 3))
    assert frozen.phases[0].attention == free.phases[0].attention
    assert frozen.phases[1] == free.phases[1]


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


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("kind", ["modernbert", "bert", "camembert", "eurobert", "gemma3_text"])
def test_memory_is_about_what_autograd_saves(kind: str, bf16: bool) -> None:
    model = wide(kind)
    layer = layers_of(model)[1]
    planned = kept_bytes(model.config, layer, 2 if bf16 else 4, compiled=False)
    measured = saved_by(model, layer, 120, bf16=bf16) / 120
    assert 0.85 < planned / measured < 1.4


def test_the_cost_of_a_model_follows_what_is_frozen() -> None:
    model = wide("bert")
    free = token_cost(model, length=64, causal=True, predicted=1.0)
    freeze(model, Freeze(layers="0-2"))
    assert token_cost(model, length=64, causal=True, predicted=1.0).linear == pytest.approx(free.linear * 2 / 3)


def test_a_head_that_is_not_there_cannot_be_drawn_anew() -> None:
    with pytest.raises(ModelError, match="no head to draw anew"):
        reinit_head(wide("eurobert"), 1)
    assert reinit_head(wide("bert"), 1)
