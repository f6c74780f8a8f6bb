"""AdamW as in the paper: decoupled decay relative to the peak rate, none on biases and norms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainer.recipe.spec import Optimizer


def make_optimizer(model: nn.Module, spec: Optimizer) -> torch.optim.AdamW:
    """AdamW over all parameters, frozen ones included: they have no gradient, so nothing touches them.

    The paper's rule shrinks weights by ``rate / peak * decay``; torch's by ``rate * weight_decay``, so its
    weight_decay is decay / peak. Parameters with fewer than two dimensions do not decay.
    """
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": spec.weight_decay / spec.learning_rate},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [g for g in groups if g["params"]],
        lr=spec.learning_rate,
        betas=(spec.beta1, spec.beta2),
        eps=spec.epsilon,
        fused=True,
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def named_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments under ``parameter/moment`` names, for the parameters that have any."""
    names = {id(p): name for name, p in model.named_parameters()}
    return {f"{names[id(p)]}/{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def blank_state(model: nn.Module, keys: list[str]) -> dict[str, Tensor]:
    """Tensors for a checkpoint's moments to be read into: `keys` are ``parameter/moment`` names.

    Only what the checkpoint holds is made. A parameter that was frozen until now has no state there and gets
    none here, so that its first step counts as its first.
    """
    parameters = dict(model.named_parameters())
    blank: dict[str, Tensor] = {}
    for key in keys:
        name, _, moment = key.rpartition("/")
        blank[key] = torch.zeros(()) if moment == "step" else torch.zeros_like(parameters[name].detach())
    return blank


def set_state(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    """Put named moments back into the optimiser."""
    parameters = dict(model.named_parameters())
    for key, value in state.items():
        name, _, moment = key.rpartition("/")
        p = parameters[name]
        optimizer.state[p][moment] = value.to(p.device) if moment == "step" else value
