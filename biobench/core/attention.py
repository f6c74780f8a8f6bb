"""Variable-length attention kernels of accelerators: looked for once, and all called in one way.

A kernel takes the tokens of many documents end to end, and int32 offsets where each begins; nothing is padded and no
mask is built. Fine-tuning and pretraining share this module; what each does without a kernel stands with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

TYPES = (torch.bfloat16, torch.float16)
"""What the kernels compute in."""


class Kernel(NamedTuple):
    """A variable-length kernel: ``flash_attn_3``, ``flash_attn`` (packages) or ``torch``, and its function.

    drops: it has dropout. groups: it takes fewer heads of keys than of queries.
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
        """query: (tokens, heads, width); key, value: the same, with fewer heads under grouped queries; result as query.

        offsets: (documents + 1,) int32 on the device. longest: tokens of the longest document. window: keys that a
        query sees to its left and right beside itself, -1 all.
        """
        heads, window = query.shape[1], (window[0], window[1])
        if not self.groups:
            key, value = repeated(key, heads, 1), repeated(value, heads, 1)
        options: dict[str, Any]
        if self.name == "torch":
            options = {"scale": scaling, "window_size": window}
            if key.shape[1] != heads:
                options["enable_gqa"] = True
        else:
            options = {
                "softmax_scale": scaling,
                "causal": window[1] == 0,
                "window_size": window,
                "deterministic": torch.are_deterministic_algorithms_enabled(),
            }
            if self.drops:
                options["dropout_p"] = dropout
        out = self.call(query, key, value, offsets, offsets, longest, longest, **options)
        states: Tensor = out[0] if isinstance(out, tuple) else out
        return states


def repeated(states: Tensor, heads: int, dimension: int) -> Tensor:
    """Keys or values with as many heads as the queries; `dimension` is that of the heads."""
    times = heads // states.shape[dimension]
    return states if times == 1 else states.repeat_interleave(times, dim=dimension)


@lru_cache(maxsize=1)
def find_kernels() -> tuple[Kernel, ...]:
    """The kernels that this machine has, fastest first: FlashAttention 3 on Hopper, flash-attn's, torch's own."""
    if not torch.cuda.is_available():
        return ()
    kernels = []
    if torch.cuda.get_device_capability()[0] == 9:
        with suppress(ImportError):
            from flash_attn_interface import flash_attn_varlen_func as third

            kernels.append(Kernel("flash_attn_3", third))
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        kernels.append(Kernel("flash_attn", flash_attn_varlen_func, drops=True))
    with suppress(ImportError):
        from torch.nn.attention.varlen import varlen_attn

        takes = inspect.signature(varlen_attn).parameters
        if "window_size" in takes:  # not before torch 2.11
            kernels.append(Kernel("torch", varlen_attn, groups="enable_gqa" in takes))
    return tuple(kernels)


def choose_kernel(kernels: Sequence[Kernel], query: Tensor, dropout: float) -> Kernel | str:
    """The first kernel that computes this; in words why, where none does."""
    if not kernels:
        return "no variable-length kernel is installed (flash-attn, or torch 2.11 or later)"
    if query.dtype not in TYPES:
        return f"the kernels compute in bf16, not in {str(query.dtype).removeprefix('torch.')}"
    fit = next((kernel for kernel in kernels if dropout == 0.0 or kernel.drops), None)
    return fit or f"{kernels[0].name} has no dropout on attention, which this model trains with; install flash-attn"
