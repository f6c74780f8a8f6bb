"""Each way to compute attention against fp64 on the host: states and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from biobench.core.attention import Kernel
from biobench.finetune.engine import load_encoder
from biobench.models import attention as packed
from biobench.models.encoder import Encoder
from biobench.models.weights import load_base
from tests.benchmarks.gpu.material import BASE, checkpoint, shape
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer.model import attention as windows
from trainer.model.network import Packing, Trainee, build_model, make_config

LARGEST = 0.05
"""Relative error of bf16 states or gradients that is still sound; with a window or mask that is
read wrongly they differ by 0.2 and more.
"""
LARGEST_MEAN = 0.15
"""Relative error of the mean over `DRAWS` of dropout."""
DRAWS = 64
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
FUSED = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def relative(found: Tensor, exact: Tensor) -> float:
    """Length of the difference over that of the exact values."""
    difference = (found.double().cpu() - exact).norm() / exact.norm()
    return float(f"{float(difference):.3g}")


def states_and_gradients(module: nn.Module, compute: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """What `compute` gives, and all gradients of a weighted sum of it, end to end."""
    module.zero_grad(set_to_none=True)
    states = compute()
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(states.shape, generator=generator).to(states)
    (states * weights).sum().backward()
    gradients = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    return states.detach(), torch.cat(gradients)


def judged(errors: dict[str, float]) -> dict[str, Any]:
    """The errors, and whether all are sound; one that is no number is not."""
    return {**errors, "sound": all(error <= LARGEST for error in errors.values())}


def two_layers(setting: Setting, name: str) -> dict[str, Any]:
    """Changes of a shape: two layers, the second windowed where there are windows; no dropout.

    Its weights are large, so that its states depend on what attention sees.
    """
    width = shape(setting, name)["hidden_size"]
    changes = {"num_hidden_layers": 2, "initializer_range": round(1.4 / width**0.5, 3)}
    if name == BASE:
        return {**changes, "global_attn_every_n_layers": 2}
    return {**changes, **NO_DROPOUT}


def fine_tuning_errors(setting: Setting, name: str, kernel: Kernel | None) -> dict[str, Any]:
    """Of packed documents through a kernel, or the padded batch; plain and compiled layers."""
    torch._dynamo.reset()
    made_for = checkpoint(setting, name, **two_layers(setting, name))
    generator = np.random.default_rng(0)
    lengths = setting.pick((200, 7, 64, 33), (40, 7))
    documents = [generator.integers(6, 2000, size=n) for n in lengths]
    host = Encoder(load_base(made_for, torch.float64), 0)
    host.train()
    exact = states_and_gradients(host, lambda: host(documents))
    encoder = load_encoder(made_for, torch.device(setting.device)).encoder
    encoder.train()
    encoder.kernels = () if kernel is None else (kernel,)
    if kernel is not None and kernel.name == "flex":
        encoder.compiles = False  # its mask cannot be made inside a compiled layer
    device, errors = setting.device, {}
    for layers in ("plain", "compiled") if encoder.compiles else ("plain",):
        with torch.autocast(device, torch.bfloat16):
            found = states_and_gradients(encoder, lambda: encoder(documents).float())
        for part, values, wanted in zip(("states", "gradients"), found, exact, strict=True):
            errors[f"{layers} {part}"] = relative(values, wanted)
    return {**judged(errors), "paths": list(encoder.paths), "plain": encoder.plain}


def pretraining_measurements(
    setting: Setting, name: str, direction: str, kernels: Sequence[Kernel]
) -> Iterator[Measurement]:
    """Of windows with and without separate documents, by each kernel and fused attention."""
    config = make_config(shape(setting, name, **two_layers(setting, name)))
    model = build_model(config).double()
    device, causal = torch.device(setting.device), direction == "clm"
    length = setting.pick(512, 64)
    tokens = torch.randint(6, 2000, (2, length), generator=torch.Generator().manual_seed(0))
    border = length // 3
    documents = (torch.arange(length) >= border).long().expand(2, -1)
    ends = torch.tensor([0, border, length, length + border, 2 * length], dtype=torch.int32)

    def states(module: Trainee, *, isolated: bool) -> tuple[Tensor, Tensor]:
        place = next(module.parameters()).device
        packing = Packing(documents.to(place), ends.to(place), length) if isolated else None
        return states_and_gradients(
            module, lambda: module.hidden(tokens.to(place), causal=causal, packing=packing).float()
        )

    with patch.object(windows, "DEVICES", ()):
        exact = {i: states(Trainee(model), isolated=i) for i in (True, False)}
    module = Trainee(build_model(config).to(device))
    module.load_state_dict(Trainee(model).state_dict())

    def errors(chosen: Sequence[Kernel], backend: SDPBackend | None) -> dict[str, Any]:
        found: dict[str, float] = {}
        fused = sdpa_kernel(backend) if backend is not None else nullcontext()
        bf16 = torch.autocast(device.type, torch.bfloat16)
        with patch.object(windows, "KERNELS", tuple(chosen)), fused, bf16:
            for isolated in (False,) if backend is not None else (False, True):
                label = "apart " if isolated else ""
                pair = zip(states(module, isolated=isolated), exact[isolated], strict=True)
                for part, values in zip(("states", "gradients"), pair, strict=True):
                    found[label + part] = relative(*values)
        return judged(found)

    ways: dict[str, tuple[Sequence[Kernel], SDPBackend | None]] = {"dense": ((), None)}
    ways |= {kernel.name: ((kernel,), None) for kernel in kernels}
    if device.type == "cuda":
        ways |= {label: (kernels[:1], backend) for label, backend in FUSED.items()}
    for label, way in ways.items():
        yield f"pretraining {name} {direction}, {label}", lambda w=way: errors(*w)


def dropout_error(setting: Setting, kernel: Kernel | None) -> dict[str, Any]:
    """Of the mean of many draws against no dropout, which it tends to; and of its gradient."""
    device, lengths = torch.device(setting.device), [60, 5, 90]
    generator = torch.Generator().manual_seed(0)
    size = (1, 4, sum(lengths), 64)
    rows = [torch.randn(size, generator=generator).to(device).bfloat16() for _ in range(3)]
    value = rows[2].requires_grad_()
    chosen = () if kernel is None else (kernel,)

    def attended(rate: float) -> tuple[Tensor, Tensor]:
        layout = packed.Layout(lengths, device, chosen)
        with packed.packed(layout):
            out, _ = packed._packed_attention(nn.Identity(), *rows[:2], value, None, dropout=rate)
        (slope,) = torch.autograd.grad(out.float().square().sum(), value)
        return out.detach().double().cpu(), slope.double().cpu()

    exact = attended(0.0)
    draws = [attended(0.1) for _ in range(DRAWS)]
    torch.manual_seed(3)
    first = attended(0.1)[0]
    torch.manual_seed(3)
    same = torch.equal(first, attended(0.1)[0])
    mean = torch.stack([out for out, _ in draws]).mean(0)
    slope = torch.stack([gradient for _, gradient in draws]).mean(0)
    errors = {"mean": relative(mean, exact[0]), "gradient": relative(slope, exact[1])}
    sound = same and all(error < LARGEST_MEAN for error in errors.values())
    return {**errors, "same_draws": same, "sound": sound}
