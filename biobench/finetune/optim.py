"""AdamW and the linear schedule."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from biobench.finetune.adaptation import count_layers, layer_of
from biobench.schema.training import Training


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """No decay on biases and norms (everything with fewer than two dimensions)."""
    trained = [p for p in network.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]


def _encoder_groups(encoder: nn.Module, recipe: Training) -> list[dict[str, object]]:
    """Groups of the encoder, from the embeddings up (the loop decays unused rows at the first group's rate)."""
    if recipe.layer_decay == 1.0:
        return parameter_groups(encoder, recipe.weight_decay)
    layers = count_layers(encoder)
    groups: list[dict[str, object]] = []
    named = [(layer_of(name, layers), p) for name, p in encoder.named_parameters() if p.requires_grad]
    for height in range(layers + 2):
        scale = recipe.layer_decay ** (layers - min(height, layers))
        members = [p for level, p in named if level == height]
        for decay, matrices in ((recipe.weight_decay, True), (0.0, False)):
            some = [p for p in members if (p.ndim >= 2) == matrices]
            groups.append({"params": some, "weight_decay": decay, "scale": scale})
    return groups


def make_optimizer(network: nn.Module, recipe: Training) -> torch.optim.AdamW:
    """AdamW as the recipe says. A group's `scale` is its rate's ratio to the encoder's."""
    groups = parameter_groups(network, recipe.weight_decay)
    if recipe.head_learning_rate is not None or recipe.layer_decay != 1.0:
        scale = (recipe.head_learning_rate or recipe.learning_rate) / recipe.learning_rate
        groups = _encoder_groups(network.get_submodule("encoder"), recipe)
        head = parameter_groups(network.get_submodule("head"), recipe.weight_decay)
        groups += [{**group, "scale": scale} for group in head]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(
        groups,
        lr=recipe.learning_rate,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        eps=recipe.adam_epsilon,
        fused=True,
    )


def rate(step: int, total: int, recipe: Training) -> float:
    """Learning rate of optimiser step `step` (0-based): linear warm-up, then linear to 0."""
    warmup = round(total * recipe.warmup_ratio)
    if step < warmup:
        return recipe.learning_rate * step / max(1, warmup)
    return recipe.learning_rate * max(0.0, (total - step) / max(1, total - warmup))


def all_finite(values: Iterable[float]) -> bool:
    """True when no value is NaN or infinite."""
    return all(v == v and abs(v) != float("inf") for v in values)
