"""What a phase must be before it trains: each layer looks where its direction says, and frozen
layers are frozen.

A frozen layer has ``requires_grad`` off before the model is wrapped, so neither gradients, nor
moments, nor weight decay reach it. (The paper zeroes gradients after each backward pass; with
moments from an earlier phase, Adam would then still move the weights. `Freeze.zeroed_gradients`
does that.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.core.configs import position_limit
from biobench.errors import ModelError
from trainer.model.attention import Reach, reach, window_of
from trainer.model.families import check_windows, layers_of
from trainer.recipe.phases import Freeze, parse_layers
from trainer.recipe.spec import Recipe

Forward = Callable[[Tensor], Tensor]
"""Input ids (batch, tokens) to any per-token output (batch, tokens, ...)."""


@dataclass(frozen=True)
class GuardReport:
    """What was measured: the leak (largest absolute change), and the reach per kind of layer."""

    leak: float
    reaches: dict[str, Reach]


def leak(forward: Forward, tokens: Tensor, vocabulary: int) -> float:
    """Largest absolute change of the outputs up to the middle when all later tokens change.

    tokens: (1, length) ids. 0.0 exactly for a causal model, whatever the precision.
    """
    later = tokens.shape[1] // 2 + 1
    changed = tokens.clone()
    changed[:, later:] = (changed[:, later:] + vocabulary // 2) % vocabulary
    with torch.no_grad():
        outputs = forward(tokens)[:, :later].float()
        changed_outputs = forward(changed)[:, :later].float()
    return float((outputs - changed_outputs).abs().max())


def layer_reach(forward: Forward, layer: nn.Module, tokens: Tensor) -> Reach:
    """How far one layer looks: the keys on whose input the output of a single query depends.

    Both are observed at the layer's attention module, so that neither other layers nor the
    residual stream alter the result. A gradient has the exponents of its type for itself, so a key
    counts however little a trained model attends to it. -1 where the reach extends to the end of
    the sequence. Raises ModelError where the query depends on no key.
    """
    layer = next(m for m in layer.modules() if hasattr(m, "is_causal"))
    middle = tokens.shape[1] // 2
    states: list[Tensor] = []

    def begin(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = dict(kwargs)
        hidden = args[0] if args else named.pop("hidden_states")
        states.append(hidden.detach().requires_grad_())
        return (states[0], *args[1:]), named

    def keep(_: nn.Module, __: object, output: Tensor | tuple[Tensor, ...]) -> None:
        states.append(output if isinstance(output, Tensor) else output[0])

    handles = [
        layer.register_forward_pre_hook(begin, with_kwargs=True),
        layer.register_forward_hook(keep),
    ]
    try:
        with torch.enable_grad():
            forward(tokens)
            hidden, output = states
            generator = torch.Generator().manual_seed(0)
            weights = torch.randn(output.shape[-1], generator=generator)
            of_query = output[0, middle] @ weights.to(output)
            (gradient,) = torch.autograd.grad(of_query, hidden)
    finally:
        for handle in handles:
            handle.remove()
    keys = gradient[0].any(-1).nonzero()
    if not len(keys):
        raise ModelError(
            "the attention of a layer reads no token",
            hint="check the base's num_attention_heads and num_key_value_heads",
        )
    nearest = int(keys.min())
    farthest = int(keys.max())
    return _clipped(middle - nearest, farthest - middle, tokens)


def _clipped(keys_left: int, keys_right: int, tokens: Tensor) -> Reach:
    """A reach around the middle of the sequence, where one that the sequence cuts off is all."""
    middle = tokens.shape[1] // 2
    if keys_left >= middle:
        keys_left = -1
    if keys_right >= tokens.shape[1] - 1 - middle:
        keys_right = -1
    return Reach(keys_left, keys_right)


def probe_tokens(model: PreTrainedModel) -> Tensor:
    """(1, length) ids of ordinary tokens, longer than twice the widest local window where positions
    allow.
    """
    config = model.config
    windows = (getattr(config, name, None) for name in ("local_attention", "sliding_window"))
    length = 2 * next(filter(None, windows), 32) + 32
    length = min(length, position_limit(config) or length)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, config.vocab_size, (1, length), generator=generator)
    pad = getattr(config, "pad_token_id", None)
    if pad is not None:  # RoBERTa derives positions from the padding id
        ids[ids == pad] = (pad + 1) % config.vocab_size
    return ids.to(model.device)


def check_leak(
    forward: Forward, tokens: Tensor, model: PreTrainedModel, *, causal: bool, hint: str
) -> float:
    """The leak of `model` through `forward`. Raises ModelError unless it is what `causal` says."""
    amount = leak(forward, tokens, model.config.vocab_size)
    if causal != (amount == 0.0):
        name = "causal" if causal else "bidirectional"
        raise ModelError(
            f"the {name} phase is not {name}: outputs change by {amount:.3g} when later tokens "
            f"change",
            hint=hint,
        )
    return amount


def check(model: PreTrainedModel, forward: Forward, *, causal: bool) -> GuardReport:
    """Measure leak and reach of `model` through `forward`; both must be what `causal` says. Dropout
    is off afterwards.

    Raises ModelError naming what leaked or which layer's window is wrong.
    """
    model.train(False)
    tokens = probe_tokens(model)
    hint = "load the model with trainer.model.attention.NAME as attn_implementation"
    amount = check_leak(forward, tokens, model, causal=causal, hint=hint)
    return GuardReport(amount, _check_reaches(model, forward, tokens, causal=causal))


def _check_reaches(
    model: PreTrainedModel, forward: Forward, tokens: Tensor, *, causal: bool
) -> dict[str, Reach]:
    types = getattr(model.config, "layer_types", None) or ["full_attention"] * len(layers_of(model))
    reaches: dict[str, Reach] = {}
    for kind in sorted(set(types)):
        layer = layers_of(model)[types.index(kind)]
        wanted = reach(model.config, window_of(layer), causal=causal)
        measured = layer_reach(forward, layer, tokens)
        clipped = _clipped(wanted.left, wanted.right, tokens)
        if measured != clipped:
            raise ModelError(
                f"a {kind} layer reaches {tuple(measured)} keys, its window says {tuple(clipped)}",
                hint="the installed transformers passes another window; see "
                "trainer/model/attention.py:reach",
            )
        reaches[kind] = measured
    return reaches


def freeze(model: PreTrainedModel, spec: Freeze | None) -> list[nn.Module]:
    """Freeze the layers of `spec` and let all else train; returns the layers whose gradients are
    zeroed instead.

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
    if spec.zeroed_gradients:
        return [layers[number] for number in numbers]
    for number in numbers:
        layers[number].requires_grad_(False)
    return []


def check_phases(model: PreTrainedModel, recipe: Recipe) -> None:
    """Raise ModelError, before a first phase has cost anything, for what some phase wants and
    `model` has not: windows of that length, layers of that number.
    """
    for phase in recipe.phases:
        check_windows(model, recipe.length_of(phase))
        freeze(model, phase.freeze)
    freeze(model, None)
