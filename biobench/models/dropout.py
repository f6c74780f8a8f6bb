"""Dropout whose random numbers cost little on a CPU.

A generator draw there costs more than the multiplication it decides. One 64-bit draw of torch's own
generator decides four elements here, so runs stay reproducible from the seed; the rate is met to
one part in 65,536, and the scale is that of the rate in force, so the expectation is exact.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_LEVELS = 1 << 16
_SIGN = -(1 << 15)
_ONE = 0x3F80
"""Bits of bf16: the sign alone, and 1.0."""


def threshold(rate: float) -> tuple[int, float]:
    """(smallest int16 that keeps an element, scale of what is kept) of a dropout rate in [0, 1)."""
    dropped = round(rate * _LEVELS)
    return dropped - _LEVELS // 2, _LEVELS / (_LEVELS - dropped)


def draws(count: int) -> Tensor:
    """(count,) int16, uniform over all values, from torch's default CPU generator."""
    words = torch.empty(-(-count // 4), dtype=torch.int64)
    words.random_(-(1 << 63), None)
    return words.view(torch.int16)[:count]


def signs(random: Tensor, rate: float) -> Tensor:
    """bf16, as many as the `draws`: 1 for an element that is kept, -1 for one that is dropped.

    A comparison gives bool, and what turns bool into numbers is not vectorised: the sign bit is
    used instead. The draws are overwritten.
    """
    least, _ = threshold(rate)
    # Cut on the side where the answer is one, so that the difference from `least` fits 16 bits.
    if least < 0:
        random.clamp_(max=-1)
    else:
        random.clamp_(min=-1)
    return random.sub_(least).bitwise_and_(_SIGN).bitwise_or_(_ONE).view(torch.bfloat16)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, random: Tensor, rate: float) -> Tensor:
        _, scale = threshold(rate)
        is_kept = signs(random, rate).relu_().view(states.shape)
        factors = is_kept.to(states.dtype).mul_(scale)
        ctx.save_for_backward(factors)
        return states * factors

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (factors,) = ctx.saved_tensors
        return gradient * factors, None, None


class Dropout(nn.Dropout):
    """`nn.Dropout` with the cheaper draws where the states are on a CPU."""

    drawn: tuple[Tensor, int] | None = None
    """Which rows of how many the states are, where draws are made for all; None: they are all."""

    def forward(self, states: Tensor) -> Tensor:
        """Any shape in, the same out."""
        if not self.training or not 0.0 < self.p < 1.0 or states.device.type != "cpu":
            return super().forward(states)
        if self.drawn is None:
            random = draws(states.numel())
        else:
            rows, count = self.drawn
            width = states.shape[-1]
            of_all = draws(count * width).view(count, width)
            random = of_all.index_select(0, rows).view(-1)
        dropped: Tensor = _Scaled.apply(states, random, self.p)  # type: ignore[no-untyped-call]
        return dropped


def use_cheap_dropout(model: nn.Module) -> None:
    """Put `Dropout` in the place of every plain `nn.Dropout` of `model`."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
