"""Arithmetic of a training token, and what a GPU can do of it.

Forward: ``2 x linear parameters + 4 d (keys of all layers) + 2 p (head + vocabulary x d)``;
training is three times that, less the gradients of frozen layers' weights, which are a third of
their linear part. p is the part of positions with a target; keys are what a query sees on average:
the window where attention is local, S or (S + 1) / 2 where it is not.
"""

from __future__ import annotations

from operator import attrgetter

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.model.attention import reach, window_of
from trainer.model.families import decoder_of, family_of, layers_of
from trainer.recipe.phases import Phase

PEAK = {
    "H200": 989e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "B200": 2250e12,
    "RTX 4090": 165e12,
}
"""Dense bf16 operations per second by the makers' data sheets, by a part of the device's name."""


def _linear_weights(module: nn.Module) -> list[Tensor]:
    return [part.weight for part in module.modules() if isinstance(part, nn.Linear)]


def token_cost(
    model: PreTrainedModel, *, length: int, causal: bool, predicted: float
) -> tuple[float, float, float]:
    """Operations (multiply and add are two) of a training token in windows of `length`: linear
    maps, attention, head.

    predicted: part of positions with a target.

    Works on a model without weights (meta device) as well. Layers whose weights take no gradient
    count as frozen.
    """
    config = model.config
    layers = layers_of(model)
    heads = config.num_attention_heads
    width = heads * (getattr(config, "head_dim", 0) or config.hidden_size // heads)
    keys = 0.0
    for layer in layers:
        window = reach(config, window_of(layer), causal=causal)
        if window.left < 0:
            keys += (length + 1) / 2 if causal else length
        else:
            keys += min(length, window.left + window.right + 1)
    projections = [decoder_of(model).weight]
    for name in family_of(config.model_type).head:
        projections += _linear_weights(model.get_submodule(name))
    head = sum(map(torch.numel, projections))
    weights = _linear_weights(layers)
    trained = filter(attrgetter("requires_grad"), weights)
    # a weight takes part forward and in the gradient of its input; one that is trained also in its
    # own
    linear = 2.0 * (2 * sum(map(torch.numel, weights)) + sum(map(torch.numel, trained)))
    return linear, 3 * 4.0 * width * keys, 3 * 2.0 * predicted * head


def phase_cost(model: PreTrainedModel, phase: Phase, *, length: int) -> float:
    """Operations of a training token of a phase."""
    causal = phase.objective == "clm"
    return sum(token_cost(model, length=length, causal=causal, predicted=phase.predicted))


def device_name(device: torch.device) -> str:
    """A GPU's name; the kind of another device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def peak_of(device: str) -> float | None:
    """Peak bf16 operations per second of a named GPU; None for one that is not in the table."""
    named = (peak for name, peak in PEAK.items() if name.lower() in device.lower())
    return next(named, None)
