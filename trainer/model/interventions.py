"""Interventions on training: layers that a phase leaves as they are.

A frozen layer has ``requires_grad`` off before the model is wrapped, so neither gradients, nor moments, nor
weight decay reach it. (The paper zeroes gradients after each backward pass; with moments from an earlier
phase, Adam would then still move the weights.)
"""

from __future__ import annotations

import hashlib

from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.errors import ModelError, TrainingError
from trainer.model.families import check_windows, layers_of
from trainer.model.network import head_paths
from trainer.model.rotary import check_rope_base
from trainer.recipe.phases import Freeze, parse_layers
from trainer.recipe.spec import Recipe


def freeze(model: PreTrainedModel, spec: Freeze | None) -> list[str]:
    """Freeze the layers of `spec` and let all else train; returns the frozen parameters' names.

    Raises ModelError when the model has fewer layers.
    """
    model.requires_grad_(True)
    if spec is None:
        return []
    layers = layers_of(model)
    numbers = parse_layers(spec.layers)
    if numbers[-1] >= len(layers):
        raise ModelError(
            f"layer {numbers[-1]} cannot be frozen: the model has layers 0-{len(layers) - 1}",
            hint="correct freeze.layers in the recipe",
        )
    for number in numbers:
        layers[number].requires_grad_(False)
    return [name for name, p in model.named_parameters() if not p.requires_grad]


def check_phases(model: PreTrainedModel, recipe: Recipe) -> None:
    """Raise ModelError, before a first phase has cost anything, for what some phase wants and `model` has not:
    windows of that length, layers of that number, a head to draw anew."""
    for index, phase in enumerate(recipe.phases):
        check_rope_base(model.config, phase.rope_base)
        if recipe.rope_base_at(index) is None:
            check_windows(model, recipe.length_of(phase))
        freeze(model, phase.freeze)
        if phase.head == "reinit":
            head_paths(model)
    freeze(model, None)


def fingerprint(model: nn.Module, names: list[str]) -> str:
    """A hash of this process's part of the named parameters."""
    digest = hashlib.sha256()
    parameters = dict(model.named_parameters())
    for name in names:
        value = parameters[name].detach()
        local: Tensor = value.to_local() if hasattr(value, "to_local") else value
        digest.update(local.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def check_unchanged(model: nn.Module, names: list[str], before: str) -> None:
    """Raise TrainingError unless the named parameters are bit for bit what they were."""
    if fingerprint(model, names) != before:
        raise TrainingError(
            "frozen layers have changed during the phase", hint="this is a defect of the trainer; please report it"
        )
