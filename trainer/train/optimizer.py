"""AdamW as in the paper: decoupled decay relative to the peak rate, none on biases and norms; and
the rate.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from trainer.recipe.phases import Phase
from trainer.recipe.spec import Optimizer


def make_optimizer(model: nn.Module, spec: Optimizer) -> torch.optim.Optimizer:
    """The optimiser of all parameters, frozen ones included: they have no gradient, so nothing
    touches them.

    The paper's rule shrinks weights by ``rate / peak * decay``; torch's by ``rate * weight_decay``,
    so its weight_decay is decay / peak. Parameters with fewer than two dimensions do not decay.
    """
    decay = spec.weight_decay / spec.learning_rate
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=spec.learning_rate,
        betas=(spec.beta1, spec.beta2),
        eps=spec.epsilon,
        fused=True,
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def factor(phase: Phase, step: int, *, steps: int, step_tokens: int) -> float:
    """The multiple of the peak rate at `step` (from 0) of a phase of `steps` steps.

    Warm-up rises linearly and reaches 1 with the step that completes it. Cooldown by
    ``final + (1 - final) * g(x)``, x being the part of the cooldown that is over before the step:
    g = 1 - sqrt(x), 1 - x, or the half cosine (the 1-sqrt form as in the code lineage of the
    paper).
    """
    schedule = phase.schedule
    total = steps * step_tokens
    if (step + 1) * step_tokens <= schedule.warmup:
        return (step + 1) * step_tokens / schedule.warmup
    if schedule.shape == "constant":
        return 1.0
    length = schedule.cooldown or total - schedule.warmup
    x = max(0.0, (step * step_tokens - (total - length)) / length)
    shapes = {
        "1-sqrt": 1 - math.sqrt(x),
        "linear": 1 - x,
        "cosine": 0.5 * (1 + math.cos(math.pi * x)),
    }
    return schedule.final + (1 - schedule.final) * shapes[schedule.shape]
