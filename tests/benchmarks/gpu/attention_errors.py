"""Each way to compute attention against fp64 on the host: states and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from biobench.core.attention import Kernel, activate
from biobench.finetune.engine import load_encoder
from biobench.models import attention as packed
from biobench.models.encoder import Encoder
from biobench.models.weights import load_base
from tests.benchmarks.gpu.clock import forget
from tests.benchmarks.gpu.flex import flex_kernel
from tests.benchmarks.gpu.material import BASE, BERT, checkpoint, shape
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
Pair = tuple[Tensor, Tensor]
"""States, and all gradients of a weighted sum of them, end to end."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Kernel by kernel; flex attention compiles longest and comes last."""
    on_gpu = setting.device == "cuda"
    kernels: dict[str, Kernel | None] = {kernel.name: kernel for kernel in windows.KERNELS}
    kernels["no kernel"] = None
    fused = FUSED if on_gpu else {}
    for model in (BASE, BERT):
        for name, kernel in kernels.items():
            row = f"fine-tuning {model}, {name}"
            yield row, partial(fine_tuning_errors, setting, model, kernel)
        for causal in (True, False):
            errors = partial(pretraining_errors, setting, model, causal)
            row = f"pretraining {model}, causal {causal}"
            for name, kernel in kernels.items():
                yield f"{row}, {name}", partial(errors, kernel)
            for name, backend in fused.items():
                yield f"{row}, {name}", partial(errors, windows.KERNELS[0], backend)
    for name, kernel in kernels.items():
        if kernel is None or kernel.drops:
            yield f"dropout, {name}", partial(dropout_error, setting, kernel)
    if on_gpu:  # flex attention has no gradients on a CPU
        flex = flex_kernel()
        yield "fine-tuning, flex", partial(fine_tuning_errors, setting, BASE, flex)
        yield "pretraining, flex", partial(pretraining_errors, setting, BASE, True, flex)


def fine_tuning_errors(setting: Setting, name: str, kernel: Kernel | None) -> dict[str, Any]:
    """Of packed documents through a kernel, or the padded batch; plain and compiled layers."""
    device = torch.device(setting.device)
    forget(device)
    made_for = checkpoint(setting, name, **two_layers(setting, name))
    generator = np.random.default_rng(0)
    lengths = setting.pick((200, 7, 64, 33), (40, 7))
    documents = [generator.integers(6, 2000, size=n) for n in lengths]
    host = Encoder(load_base(made_for, torch.float64), 0).train()
    exact = states_and_gradients(host, lambda: host(documents))
    encoder = load_encoder(made_for, device).encoder.train()
    refusals = encoder.refusals
    encoder.use_kernels(only(kernel))
    if kernel is not None and kernel.name == "flex":
        encoder.compiles = False  # its mask cannot be made inside a compiled layer
    errors: dict[str, float] = {}
    for layers in ("plain", "compiled") if encoder.compiles else ("plain",):
        with torch.autocast(device.type, torch.bfloat16):
            found = states_and_gradients(encoder, lambda: encoder(documents))
        errors |= relative_errors(f"{layers} ", found, exact)
    notes = {"paths": list(encoder.paths), "plain": encoder.plain, "refusals": refusals}
    return {**judged(errors), **notes}


def pretraining_errors(
    setting: Setting,
    name: str,
    causal: bool,
    kernel: Kernel | None,
    backend: SDPBackend | None = None,
) -> dict[str, Any]:
    """Of windows with and without separate documents, by a kernel and, over all keys, a backend."""
    apart = (False, True) if backend is None else (False,)
    # before the backend is chosen: the host's attention has no other than its own
    exact = {isolated: exact_states(setting, name, causal, isolated) for isolated in apart}
    module, errors = trainee(setting, name).to(setting.device), dict[str, float]()
    fused = nullcontext() if backend is None else sdpa_kernel(backend)
    bf16 = torch.autocast(setting.device, torch.bfloat16)
    activate(only(kernel))
    with patch.object(windows, "KERNELS", only(kernel)), fused, bf16:
        for isolated, wanted in exact.items():
            found = window_states(setting, module, causal, isolated)
            errors |= relative_errors("apart " if isolated else "", found, wanted)
    return judged(errors)


def only(kernel: Kernel | None) -> tuple[Kernel, ...]:
    """The kernels that attention chooses from."""
    return () if kernel is None else (kernel,)


@lru_cache
def exact_states(setting: Setting, name: str, causal: bool, isolated: bool) -> Pair:
    """What `window_states` tends to: in fp64 on the host, which no kernel computes."""
    return window_states(setting, trainee(setting, name).double(), causal, isolated)


def trainee(setting: Setting, name: str) -> Trainee:
    """A model of two layers on the host, with the same weights each time."""
    torch.manual_seed(0)
    return Trainee(build_model(make_config(shape(setting, name, **two_layers(setting, name)))))


def two_layers(setting: Setting, name: str) -> dict[str, Any]:
    """Changes of a shape: two layers, the second windowed where there are windows; no dropout.

    Its weights are large, so that its states depend on what attention sees.
    """
    width = shape(setting, name)["hidden_size"]
    changes = {"num_hidden_layers": 2, "initializer_range": round(1.4 / width**0.5, 3)}
    own = {"global_attn_every_n_layers": 2} if name == BASE else NO_DROPOUT
    return {**changes, **own}


def window_states(setting: Setting, module: Trainee, causal: bool, isolated: bool) -> Pair:
    """Of two windows of random tokens; isolated: of two documents each."""
    device, length = next(module.parameters()).device, setting.pick(512, 64)
    generator, border = torch.Generator().manual_seed(0), length // 3
    tokens = torch.randint(6, 2000, (2, length), generator=generator).to(device)
    documents = (torch.arange(length) >= border).long().expand(2, -1).to(device)
    ends = torch.tensor([0, border, length, length + border, 2 * length], dtype=torch.int32)
    packing = Packing(documents, ends.to(device), length) if isolated else None
    return states_and_gradients(
        module, lambda: module.hidden(tokens, causal=causal, packing=packing)
    )


def states_and_gradients(module: nn.Module, compute: Callable[[], Tensor]) -> Pair:
    """What `compute` gives, and the gradients of a weighted sum of it."""
    module.zero_grad(set_to_none=True)
    states = compute()
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(states.shape, generator=generator).to(states.device)
    (states.to(torch.promote_types(states.dtype, torch.float32)) * weights).sum().backward()
    gradients = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    return states.detach(), torch.cat(gradients)


def relative_errors(label: str, found: Pair, exact: Pair) -> dict[str, float]:
    """Of states and gradients: length of the difference over that of the exact values."""
    errors = {}
    for part, values, wanted in zip(("states", "gradients"), found, exact, strict=True):
        difference = (values.double().cpu() - wanted).norm() / wanted.norm()
        errors[label + part] = float(f"{float(difference):.3g}")
    return errors


def judged(errors: dict[str, float]) -> dict[str, Any]:
    """The errors, and whether all are sound; one that is no number is not."""
    return {**errors, "sound": all(error <= LARGEST for error in errors.values())}


def dropout_error(setting: Setting, kernel: Kernel | None) -> dict[str, Any]:
    """Of the mean of many draws against no dropout, which it tends to; and of its gradient."""
    device, lengths = torch.device(setting.device), [60, 5, 90]
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(3, 1, 4, sum(lengths), 64, generator=generator)
    query, key, value = states.to(device).bfloat16().requires_grad_()
    layout = packed.Layout(lengths, device, only(kernel))

    def attended(rate: float) -> Pair:
        with packed.packed(layout):
            out, _ = packed._packed_attention(nn.Identity(), query, key, value, None, dropout=rate)
        (slope,) = torch.autograd.grad(out.float().square().sum(), value)
        return out.detach().double().cpu(), slope.double().cpu()

    draws = [attended(0.1) for _ in range(DRAWS)]
    mean, slope = (torch.stack(values).mean(0) for values in zip(*draws, strict=True))
    errors = relative_errors("mean ", (mean, slope), attended(0.0))
    return {**errors, "sound": max(errors.values()) < LARGEST_MEAN}
