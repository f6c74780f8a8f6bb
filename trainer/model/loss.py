"""Cross-entropy of a large vocabulary without the logits: one path for both objectives.

Logits exist for one chunk of positions at a time; their gradient is formed in the forward pass and
the logits are dropped, so memory is chunk x vocabulary whatever the number of tokens. Sums, not
means: the caller divides by the number of targets of the whole optimiser step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

IGNORE = -100
"""Target of a position without one (padding to a fixed number of positions)."""

CHUNK_LOGITS = {"cpu": 1 << 21, "cuda": 1 << 27}
"""Logits per chunk: 8 MiB on a CPU, where they stay in its cache, and 512 MiB on a GPU, which wants
large matrices.
"""


def chunk_loss(
    total: Tensor, logits: Tensor, want: Tensor, gradients: bool, biased: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """(total with a chunk's summed loss, gradient of its logits in their type, the same summed over
    rows in float32).

    logits: (rows, vocabulary), taken as room for the gradient where they are float32; want:
    (rows,). Without
    `gradients` both of them are None, without `biased` the last.
    """
    kind = logits.dtype
    logits = logits.float()
    present = want != IGNORE
    index = want.clamp_min(0)[:, None]
    picked = logits.gather(1, index)
    # Softmax in place of the logits, with a single exponential for value and gradient.
    largest = logits.amax(dim=1, keepdim=True)
    grad = logits.sub_(largest).exp_()
    sums = grad.sum(dim=1, keepdim=True)
    normaliser = sums.log() + largest
    total = total + ((normaliser - picked)[:, 0] * present).sum()
    if not gradients:
        return total, None, None
    counts = present[:, None].to(grad.dtype)
    grad.mul_(counts / sums).scatter_add_(1, index, -counts)
    return total, grad.to(kind), grad.sum(0) if biased else None


def fused_chunk_loss(
    total: Tensor, logits: Tensor, want: Tensor, gradients: bool, biased: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """`chunk_loss` as a compiler fuses it: every product is of single elements, so that no float32
    copy of the logits is written. The target is told by comparison, since a scatter writes one.
    """
    present = want != IGNORE
    index = want.clamp_min(0)[:, None]
    picked = logits.gather(1, index).float()
    wide = logits.float()
    largest = wide.amax(dim=1, keepdim=True)
    sums = (wide - largest).exp().sum(dim=1, keepdim=True)
    total = total + ((sums.log() + largest - picked)[:, 0] * present).sum()
    if not gradients:
        return total, None, None
    counts = present[:, None].float()
    is_wanted = torch.arange(logits.shape[1], device=logits.device) == index
    scaled = (wide - largest).exp() * (counts / sums)
    grad = (scaled - counts * is_wanted).to(logits.dtype)
    if not biased:
        return total, grad, None
    # Summed anew from the logits: the sum over rows of `grad` would have it written in float32.
    wanted = torch.zeros(logits.shape[1], device=logits.device)
    wanted = wanted.scatter_add(0, index[:, 0], counts[:, 0])
    return total, grad, ((wide - largest).exp() * (counts / sums)).sum(0) - wanted


BACKEND = "inductor"
"""What compiles a chunk's loss; ``eager`` traces alone."""


@lru_cache(maxsize=1)
def compiled_chunk() -> Callable[..., tuple[Tensor, Tensor | None, Tensor | None]]:
    """`fused_chunk_loss` as a few kernels, in place of a dozen that read and write the logits."""
    compiled: Callable[..., tuple[Tensor, Tensor | None, Tensor | None]] = torch.compile(
        fused_chunk_loss, backend=BACKEND
    )
    return compiled


@dataclass
class _Gradients:
    """Of the summed loss, for the inputs that take one; of weight and bias in float32."""

    hidden: Tensor | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None

    def add(self, rows: slice, low: Tensor, hidden: Tensor, matrix: Tensor) -> None:
        """Take in what a chunk of rows adds by its logits' gradient `low` (rows, vocabulary)."""
        if self.hidden is not None:
            torch.mm(low, matrix, out=self.hidden[rows])
        if self.weight is not None:
            _add_product(self.weight, low.t(), hidden[rows])


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        chunk: int,
        compiled: bool,
    ) -> Tensor:
        body = compiled_chunk() if compiled else chunk_loss
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        gradients = _Gradients()
        if ctx.needs_input_grad[0]:
            gradients.hidden = torch.empty_like(hidden)
        if ctx.needs_input_grad[1]:
            gradients.weight = torch.zeros_like(weight, dtype=torch.float32)
        if bias is not None and ctx.needs_input_grad[2]:
            gradients.bias = torch.zeros_like(bias, dtype=torch.float32)
        biased = gradients.bias is not None
        matrix = weight.to(hidden.dtype)
        offset = None if bias is None else bias.to(hidden.dtype)
        for start in range(0, hidden.shape[0], chunk):
            rows = slice(start, start + chunk)
            if offset is None:
                logits = hidden[rows] @ matrix.t()
            else:
                logits = torch.addmm(offset, hidden[rows], matrix.t())
            total, low, bias_part = body(
                total, logits, targets[rows], any(ctx.needs_input_grad[:3]), biased
            )
            if low is not None:
                gradients.add(rows, low, hidden, matrix)
            if gradients.bias is not None and bias_part is not None:
                gradients.bias += bias_part
        ctx.save_for_backward(gradients.hidden, gradients.weight, gradients.bias)
        ctx.kinds = (hidden.dtype, weight.dtype, None if bias is None else bias.dtype)
        return total

    @staticmethod
    def backward(ctx: FunctionCtx, *outputs: Tensor) -> Any:
        (scale,) = outputs
        saved = zip(ctx.saved_tensors, ctx.kinds, strict=True)  # type: ignore[attr-defined]
        return (
            *(None if g is None else (g * scale).to(kind) for g, kind in saved),
            None,
            None,
            None,
        )


MIXED = torch.ops.aten.addmm.dtype_out
"""Adds a product of half-precision matrices to a float32 one in place, on a GPU."""
_MIXED_ON = ("cuda",)


def _add_product(total: Tensor, rows: Tensor, right: Tensor) -> None:
    """``total += left @ right``, in float32 whatever the factors' type, without a second matrix
    where that can be.
    """
    if rows.dtype == torch.float32:
        total.addmm_(rows, right)
    elif rows.device.type in _MIXED_ON:
        MIXED(total, rows, right, torch.float32, out=total)
    else:
        total += (rows @ right).float()


def linear_cross_entropy_sum(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    chunk: int | None = None,
    compiled: bool = False,
) -> Tensor:
    """Summed cross-entropy of ``hidden @ weight.T + bias`` against `targets`, in float32.

    hidden: (positions, width); weight: (vocabulary, width); targets: (positions,) ids, `IGNORE` for
    none.
    compiled: whether each chunk's loss and gradient are computed by compiled kernels.
    Gradients are formed in the forward pass, so the result allows a single backward.
    """
    if chunk is None:
        chunk = max(64, CHUNK_LOGITS[hidden.device.type] // weight.shape[0])
    apply: Any = _LinearCrossEntropy.apply
    total: Tensor = apply(hidden, weight, bias, targets, chunk, compiled)
    return total
