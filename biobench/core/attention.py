"""Variable-length attention kernels of accelerators: one chooser for fine-tuning and pretraining.

A kernel takes the tokens of many documents end to end, and int32 offsets where each begins; nothing
is padded and no mask is built. Two back ends remain with torch 2.11: torch's own, which runs
FlashAttention 3 where a Hopper card and its package are there, and flash-attn for dropout on
attention. Each is proved on the model that it is to compute; what fine-tuning and pretraining do
without a kernel is their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from biobench.core.text import first_line

TYPES = (torch.bfloat16, torch.float16)
"""What the kernels compute in."""


class Kernel(NamedTuple):
    """A variable-length kernel and its function: ``torch`` (``torch_fa3`` with FlashAttention 3) or
    ``flash_attn``.

    drops: it has dropout, as flash-attn alone has. groups: it takes fewer heads of keys than of
    queries.
    """

    name: str
    call: Callable[..., Any]
    drops: bool = False
    groups: bool = True

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
        heads, window = query.shape[1], (window[0], window[1])
        if not self.groups:
            key, value = repeated(key, heads, 1), repeated(value, heads, 1)
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
        states: Tensor = out[0] if isinstance(out, tuple) else out
        return states


def repeated(states: Tensor, heads: int, dimension: int) -> Tensor:
    """Keys or values with as many heads as the queries; `dimension` is that of the heads."""
    times = heads // states.shape[dimension]
    return states if times == 1 else states.repeat_interleave(times, dim=dimension)


@lru_cache(maxsize=1)
def find_kernels() -> tuple[Kernel, ...]:
    """The kernels that this machine has: torch's own first, then flash-attn's. Empty without a
    GPU."""
    if not torch.cuda.is_available():
        return ()
    from torch.nn.attention import activate_flash_attention_impl
    from torch.nn.attention.varlen import varlen_attn

    name = "torch"
    if torch.cuda.get_device_capability()[0] == 9:
        with suppress(ImportError):  # the package of FlashAttention 3 is an extra
            activate_flash_attention_impl("FA3")
            name = "torch_fa3"
    kernels = [
        Kernel(name, varlen_attn, groups="enable_gqa" in inspect.signature(varlen_attn).parameters)
    ]
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        kernels.append(Kernel("flash_attn", flash_attn_varlen_func, drops=True))
    return tuple(kernels)


@torch.no_grad()
def prove(
    kernels: Sequence[Kernel],
    exact: Tensor,
    rounded: Tensor,
    compute: Callable[[tuple[Kernel, ...]], Tensor],
) -> tuple[tuple[Kernel, ...], list[str]]:
    """(the kernels that give a model's states, why each other one does not).

    exact, rounded: states of some documents without a kernel, in fp32 and in bf16. compute: the
    same with these kernels alone, in bf16. A kernel is refused whose states differ more from the
    exact ones (root mean square) than twice the rounded ones, or that raises an error.
    """
    allowed = 2 * (rounded.float() - exact).square().mean().sqrt() + 1e-3 * exact.std()
    sound, refusals = [], []
    for kernel in kernels:
        try:
            error = (compute((kernel,)).float() - exact).square().mean().sqrt()
        except (RuntimeError, ValueError, TypeError) as problem:  # head widths, devices, versions
            refusals.append(f"{kernel.name} does not run this model: {first_line(problem, 120)}")
            continue
        if error <= allowed:
            sound.append(kernel)
        else:
            refusals.append(f"{kernel.name} gives states that differ by {float(error):.2g}")
    return tuple(sound), refusals


def choose_kernel(kernels: Sequence[Kernel], query: Tensor, dropout: float) -> Kernel | str:
    """The first kernel that computes this; in words why, where none does."""
    if not kernels:
        return "no variable-length kernel computes this model"
    if query.dtype not in TYPES:
        return f"the kernels compute in bf16, not in {str(query.dtype).removeprefix('torch.')}"
    fit = next((kernel for kernel in kernels if dropout == 0.0 or kernel.drops), None)
    return (
        fit
        or f"{kernels[0].name} has no dropout on attention, which this model trains with; install "
        f"flash-attn"
    )
