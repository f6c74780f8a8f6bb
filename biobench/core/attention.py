"""Variable-length attention kernels of accelerators: one chooser for fine-tuning and pretraining.

A kernel takes the tokens of many documents end to end, and int32 offsets where each begins; nothing
is padded and no mask is built. Two back ends remain with torch 2.11: torch's own, which runs
FlashAttention 3 where a Hopper card and its package are there, and flash-attn for dropout on
attention. Each is proved on the model that it is to compute, and of several the fastest is taken;
what fine-tuning and pretraining do without a kernel is their own.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import attention as flash

from biobench.core.machine import is_out_of_memory
from biobench.core.text import first_line

TYPES = (torch.bfloat16, torch.float16)
"""What the kernels compute in."""
_TURNS = 3
"""Steps of a trial, of which the fastest counts."""

Pair = tuple[Tensor, Tensor]
"""States of a model, and gradients at its embeddings: fp32, a row each token."""


class Kernel(NamedTuple):
    """A variable-length kernel and its function: ``torch`` (``torch_fa3`` with FlashAttention 3) or
    ``flash_attn``.

    drops: it has dropout, as flash-attn alone has. groups: it takes fewer heads of keys than of
    queries. replaces: what takes the place of all of torch's flash attention while it is used.
    """

    name: str
    call: Callable[..., Any]
    drops: bool = False
    groups: bool = True
    replaces: str | None = None

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        offsets: Tensor,
        longest: int,
        *,
        window: tuple[int, int] = (-1, -1),
        scaling: float | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """query: (tokens, heads, width); key, value: the same, with fewer heads under grouped
        queries; result as query.

        offsets: (documents + 1,) int32 on the device. longest: tokens of the longest document.
        window: keys that a query sees to its left and right besides itself, -1 all.
        """
        heads = query.shape[1]
        window = (window[0], window[1])
        if not self.groups:
            key = repeated(key, heads, 1)
            value = repeated(value, heads, 1)
        options: dict[str, Any] = {"scale": scaling, "window_size": window}
        if self.drops:
            options = {
                "softmax_scale": scaling,
                "causal": window[1] == 0,
                "window_size": window,
                "deterministic": torch.are_deterministic_algorithms_enabled(),
                "dropout_p": dropout,
            }
        elif key.shape[1] != heads:
            options["enable_gqa"] = True
        out = self.call(query, key, value, offsets, offsets, longest, longest, **options)
        if isinstance(out, tuple):
            out = out[0]
        states: Tensor = out
        return states


Kernels = tuple[Kernel, ...]


def repeated(states: Tensor, heads: int, dimension: int) -> Tensor:
    """Keys or values with as many heads as the queries; `dimension` is that of the heads."""
    times = heads // states.shape[dimension]
    if times == 1:
        return states
    return states.repeat_interleave(times, dim=dimension)


@lru_cache(maxsize=1)
def find_kernels() -> Kernels:
    """The kernels that this machine has: torch's own first, then flash-attn's. Empty without a
    GPU."""
    if not torch.cuda.is_available():
        return ()
    from torch.nn.attention.varlen import varlen_attn

    groups = "enable_gqa" in inspect.signature(varlen_attn).parameters
    kernels = [Kernel("torch", varlen_attn, groups=groups)]
    if torch.cuda.get_device_capability()[0] == 9 and hasattr(
        flash, "restore_flash_attention_impl"
    ):
        third = Kernel("torch_fa3", varlen_attn, groups=groups, replaces="FA3")
        with suppress(ImportError, RuntimeError):  # an extra; builds without a backward raise
            activate([third])
            kernels.insert(0, third)
            activate([])
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        kernels.append(Kernel("flash_attn", flash_attn_varlen_func, drops=True))
    return tuple(kernels)


def activate(kernels: Sequence[Kernel]) -> None:
    """Let the first of these kernels replace torch's flash attention if it does so, else restore
    it. Raises ImportError where its package is missing.
    """
    if not hasattr(flash, "restore_flash_attention_impl"):
        return  # this torch could not give it back, so no such kernel is offered
    wanted: str | None = None
    if kernels:
        wanted = kernels[0].replaces
    if wanted == flash.current_flash_attention_impl():
        return
    if wanted is None:
        flash.restore_flash_attention_impl()
    else:
        flash.activate_flash_attention_impl(wanted)


def states_and_gradients(model: nn.Module, compute: Callable[[], Tensor]) -> Pair:
    """What `compute` gives of `model`, and the gradient of a weighted sum of it at the output of
    the model's embedding table.
    """
    embedded: list[Tensor] = []

    def cut(_: nn.Module, __: Any, states: Tensor) -> Tensor:
        embedded.append(states.detach().requires_grad_())
        return embedded[-1]

    table: nn.Module = model.get_input_embeddings()  # type: ignore[operator]
    hook = table.register_forward_hook(cut)
    try:
        with torch.enable_grad():
            states = compute().float()
            weights = torch.linspace(-1, 1, states.numel(), device=states.device)
            (gradients,) = torch.autograd.grad((states.flatten() * weights).sum(), embedded)
    finally:
        hook.remove()
    return states.detach(), gradients.float()


def prove(
    kernels: Kernels,
    exact: Pair,
    rounded: Pair,
    compute: Callable[[Kernels], Pair],
    *,
    drops: bool,
) -> tuple[Kernels, list[str]]:
    """(the kernels that give a model's states and gradients, why each other one does not).

    exact, rounded: of some documents without a kernel, in fp32 and in bf16. compute: the same with
    these kernels alone, in bf16. drops: the model trains with dropout on attention, which nothing
    may replace that has none. A kernel is refused whose values differ more from the exact ones
    (root mean square) than twice the rounded ones, or that raises an error.
    """
    sound = []
    refusals = []
    for kernel in kernels:
        if kernel.replaces is not None and drops:
            refusals.append(f"{kernel.name} has no dropout on attention")
            continue
        try:
            found = compute((kernel,))
        except (RuntimeError, ValueError, TypeError) as problem:  # head widths, devices, versions
            refusals.append(f"{kernel.name} does not run this model: {first_line(problem, 120)}")
            continue
        difference = _difference(found, exact, rounded)
        if difference is None:
            sound.append(kernel)
        else:
            refusals.append(f"{kernel.name} gives {difference}")
    return tuple(sound), refusals


def _difference(found: Pair, exact: Pair, rounded: Pair) -> str | None:
    """What of these values is too far from the exact ones, and how far; None where nothing is."""
    names = ("states", "gradients")
    for name, values, by_rounding, wanted in zip(names, found, rounded, exact, strict=True):
        error = _root_mean_square(values - wanted)
        allowed = 2 * _root_mean_square(by_rounding - wanted) + 1e-3 * wanted.std()
        if not error <= allowed:
            return f"{name} that differ by {float(error):.2g}"
    return None


def _root_mean_square(values: Tensor) -> Tensor:
    return values.square().mean().sqrt()


def fastest_first(kernels: Kernels, compute: Callable[[Kernels], Pair]) -> Kernels:
    """The kernels by the time that each takes for a step, which `compute` makes with it; in their
    order where memory does not suffice for a trial.
    """
    if len(kernels) < 2:
        return kernels

    def seconds(kernel: Kernel) -> float:
        """Of its fastest step, after one that warms up, until the results are on the host."""
        times = []
        for _ in range(1 + _TURNS):
            began = time.perf_counter()
            compute((kernel,))[1].sum().item()
            times.append(time.perf_counter() - began)
        return min(times[1:])

    try:
        return tuple(sorted(kernels, key=seconds))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    return kernels


def choose_kernel(kernels: Sequence[Kernel], query: Tensor, dropout: float) -> Kernel | str:
    """The first kernel that computes this; in words why, where none does."""
    if not kernels:
        return "no variable-length kernel computes this model"
    if query.dtype not in TYPES:
        return f"the kernels compute in bf16, not in {str(query.dtype).removeprefix('torch.')}"
    for kernel in kernels:
        if dropout == 0.0 or kernel.drops:
            return kernel
    return (
        f"{kernels[0].name} has no dropout on attention, which this model trains with; install "
        "flash-attn"
    )
