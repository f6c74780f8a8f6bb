"""AdamW as in the paper: decoupled decay relative to the peak rate, none on biases and norms; its rivals; the rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from biobench.errors import UsageError
from trainer.model.families import layers_of
from trainer.recipe.phases import Phase
from trainer.recipe.spec import Optimizer


def make_optimizer(model: nn.Module, spec: Optimizer) -> torch.optim.Optimizer:
    """The optimiser of all parameters, frozen ones included: they have no gradient, so nothing touches them.

    The paper's rule shrinks weights by ``rate / peak * decay``; torch's by ``rate * weight_decay``, so its
    weight_decay is decay / peak. Parameters with fewer than two dimensions do not decay.
    Raises UsageError where torch has no such optimiser.
    """
    decay = spec.weight_decay / spec.learning_rate
    matrices = _layer_matrices(model) if spec.kind == "muon" else []
    orthogonal = {id(p) for p in matrices}
    decayed = [p for p in model.parameters() if p.ndim >= 2 and id(p) not in orthogonal]
    plain = [p for p in model.parameters() if p.ndim < 2]
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    fields: dict[str, Any] = {"lr": spec.learning_rate, "betas": (spec.beta1, spec.beta2), "eps": spec.epsilon}
    groups = [g for g in groups if g["params"]]
    if spec.kind == "stable_adamw":
        return StableAdamW(groups, **fields)
    adam = torch.optim.AdamW(groups, **fields, fused=True)
    if not matrices:
        return adam
    if not hasattr(torch.optim, "Muon"):
        raise UsageError("optimizer.kind is muon, which this torch does not have", hint="install torch 2.9 or newer")
    muon = torch.optim.Muon(
        matrices, lr=spec.learning_rate, weight_decay=decay, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    return Together([muon, adam])


def _layer_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices of a transformers model's layers: neither embeddings nor what stands between body and vocabulary."""
    assert isinstance(model, PreTrainedModel)
    return [p for p in layers_of(model).parameters() if p.ndim == 2]


class StableAdamW(torch.optim.AdamW):
    """AdamW with the update clipping of Wortsman et al. 2023 (arXiv 2304.13013, algorithm 2): no gradient clip needed.

    Its state is AdamW's, under the same names.
    """

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step. closure: not taken."""
        assert closure is None
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                count = float(state["step"])
                state["exp_avg"].lerp_(p.grad, 1 - beta1)
                state["exp_avg_sq"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                expected = state["exp_avg_sq"] / (1 - beta2**count)
                off = (p.grad.square() / expected.clamp_min(group["eps"] ** 2)).mean().sqrt()
                rate = group["lr"] / off.clamp_min(1.0)
                p.mul_(1 - rate * group["weight_decay"])
                p.sub_(rate * (state["exp_avg"] / (1 - beta1**count)) / (expected.sqrt() + group["eps"]))


class Together(torch.optim.Optimizer):
    """Several optimisers that share a model's parameters, as one."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = list(parts)
        self.param_groups = [group for part in parts for group in part.param_groups]
        self.defaults = {}

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The state of all parts; what is set for a parameter goes to the part that holds it."""
        return _States(self.parts)

    def step(self, closure: Any = None) -> Any:
        """One step of each. closure: not taken."""
        assert closure is None
        for part in self.parts:
            part.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for part in self.parts:
            part.zero_grad(set_to_none=set_to_none)


class _States:
    """The states of several optimisers, read and written by parameter."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.owners = {id(p): part for part in parts for group in part.param_groups for p in group["params"]}
        self.parts = parts

    def __getitem__(self, parameter: Tensor) -> Any:
        return self.owners[id(parameter)].state[parameter]

    def items(self) -> Iterator[tuple[Tensor, Any]]:
        """All parameters that have a state, with it."""
        for part in self.parts:
            yield from part.state.items()


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


def factor(phase: Phase, step: int, *, steps: int, step_tokens: int) -> float:
    """The multiple of the peak rate at `step` (from 0) of a phase of `steps` steps.

    Warm-up rises linearly and reaches 1 with the step that completes it. Cooldown by
    ``final + (1 - final) * g(x)``, x being the part of the cooldown that is over before the step:
    g = 1 - sqrt(x), 1 - x, or the half cosine (the 1-sqrt form as in the code lineage of the paper).
    """
    schedule = phase.schedule
    total = steps * step_tokens
    if (step + 1) * step_tokens <= schedule.warmup:
        return (step + 1) * step_tokens / schedule.warmup
    if schedule.shape == "constant":
        return 1.0
    length = schedule.cooldown or total - schedule.warmup
    x = max(0.0, (step * step_tokens - (total - length)) / length)
    shapes = {"1-sqrt": 1 - math.sqrt(x), "linear": 1 - x, "cosine": 0.5 * (1 + math.cos(math.pi * x))}
    return schedule.final + (1 - schedule.final) * shapes[schedule.shape]


def clear_gradients(optimizer: torch.optim.Optimizer, device: torch.device, *, processes: int = 1) -> None:
    """Forget the step's gradients: set to zero in place in a single process on a CPU, where fresh pages are dear.

    Elsewhere they are freed. Both give the same next step: a parameter without a gradient (frozen) has none
    either way.
    """
    optimizer.zero_grad(set_to_none=device.type != "cpu" or processes > 1)
