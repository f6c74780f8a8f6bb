"""What of the encoder is trained (all of it, its top layers, or an adapter), and AdamW with the
rates of both parts.

The encoder is changed for the time of a run and is itself again at its end, with an adapter's
update merged into the weights that it adapts. So nothing behind the loop needs to know of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from biobench.errors import TrainingError
from biobench.finetune.network import Network
from biobench.schema.training import Adapter, Training

_LAYER = re.compile(r"(?:^|\.)(?:layer|layers|h|block|blocks)\.(\d+)\.")
_ATTENTION = re.compile(r"(?:^|[._])(?:attn|attention|self_attn)(?:[._]|$)")


@contextmanager
def adapted(network: Network, recipe: Training) -> Iterator[None]:
    """Make the encoder train as the recipe says, and plain again at the end, merged. Raises
    TrainingError.
    """
    model = network.encoder.model
    tuner: Any = None
    if recipe.top_layers is not None:
        _freeze_below(model, recipe.top_layers)
    try:
        if recipe.adapter is not None:
            tuner = _with_adapter(model, recipe.adapter)
        yield
    finally:
        if tuner is not None:
            tuner.merge_and_unload()
        model.requires_grad_(True)


def trained_parameters(network: nn.Module, recipe: Training) -> int | None:
    """How many weights are trained, where it is a part of them."""
    if recipe.adapter is None and recipe.top_layers is None:
        return None
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def make_optimizer(network: nn.Module, recipe: Training) -> torch.optim.AdamW:
    """AdamW as the recipe says. A group's `scale` is its rate's ratio to the encoder's."""
    groups = parameter_groups(network, recipe.weight_decay)
    if recipe.head_learning_rate is not None:
        scale = recipe.head_learning_rate / recipe.learning_rate
        groups = parameter_groups(network.get_submodule("encoder"), recipe.weight_decay)
        for group in parameter_groups(network.get_submodule("head"), recipe.weight_decay):
            groups.append(group | {"scale": scale})
    return torch.optim.AdamW(
        groups,
        lr=recipe.learning_rate,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        eps=recipe.adam_epsilon,
        fused=True,
    )


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """What is trained, without a decay on biases and norms (everything with fewer than two
    dimensions).
    """
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim >= 2]
    vectors = [parameter for parameter in trained if parameter.ndim < 2]
    groups: list[dict[str, object]] = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def rate(step: int, total: int, recipe: Training) -> float:
    """Learning rate of optimiser step `step` (0-based): linear warm-up, then linear to 0."""
    warmup = round(total * recipe.warmup_ratio)
    if step < warmup:
        return recipe.learning_rate * step / max(1, warmup)
    return recipe.learning_rate * max(0.0, (total - step) / max(1, total - warmup))


def layer_of(name: str, layers: int) -> int:
    """The height of a weight of the encoder: 0 for embeddings, 1 to `layers`, above them layers +
    1.
    """
    match = _LAYER.search(name)
    if match:
        return int(match[1]) + 1
    if "embed" in name:
        return 0
    return layers + 1


def count_layers(model: nn.Module) -> int:
    """How many layers the weights' names tell of. Raises TrainingError where they tell of none."""
    matches = [_LAYER.search(name) for name, _ in model.named_parameters()]
    numbers = [int(match[1]) for match in matches if match is not None]
    shared = getattr(getattr(model, "config", None), "model_type", "") == "albert"
    if not numbers or shared:
        raise TrainingError(
            "the encoder's layers cannot be distinguished by the names of its weights",
            hint="leave training.top_layers out",
        )
    return max(numbers) + 1


def _freeze_below(model: nn.Module, top: int) -> None:
    layers = count_layers(model)
    if top > layers:
        raise TrainingError(
            f"training.top_layers {top} is more than the encoder's {layers} layers",
            hint="give a smaller number",
        )
    for name, parameter in model.named_parameters():
        is_trained = top > 0 and layer_of(name, layers) > layers - top
        parameter.requires_grad_(is_trained)


def _with_adapter(model: nn.Module, adapter: Adapter) -> Any:
    """peft's tuner around the encoder, whose layers it has changed in place."""
    if find_spec("peft") is None:
        raise TrainingError(
            "training.adapter: peft is not installed", hint="pip install 'biobench[adapters]'"
        )
    peft: Any = import_module("peft")
    targets = _targets(model, adapter)
    if adapter.method == "ia3":
        config = peft.IA3Config(target_modules=targets, feedforward_modules=[])
    else:
        config = peft.LoraConfig(
            r=adapter.rank,
            lora_alpha=adapter.alpha,
            lora_dropout=adapter.dropout,
            target_modules=targets,
            use_dora=adapter.method == "dora",
        )
    return peft.get_peft_model(model, config, autocast_adapter_dtype=False)


def _targets(model: nn.Module, adapter: Adapter) -> list[str]:
    """Full names of the linear layers that get an adapter. Raises TrainingError where there are
    none.
    """
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    names = [name for name in linear if _is_target(name, adapter.targets)]
    if not names:
        known = sorted({name.rpartition(".")[2] for name in linear})
        raise TrainingError(
            f"training.adapter.targets {adapter.targets} names no linear layer of this encoder",
            hint="known: " + ", ".join(known),
        )
    return names


def _is_target(name: str, targets: str | Sequence[str]) -> bool:
    """Whether a linear layer gets an adapter: any, those of attention, or those that end so."""
    if targets == "linear":
        return True
    if targets == "attention":
        return _ATTENTION.search(name) is not None
    return f".{name}".endswith(tuple(map(".{}".format, targets)))
