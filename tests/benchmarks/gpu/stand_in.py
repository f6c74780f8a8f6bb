"""A CPU that passes for an accelerator, so that a CPU walks the ways of a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import biobench.finetune.engine as engine
import biobench.models.attention as packed
import biobench.models.dropout as dropout
import biobench.models.encoder as encoder
import trainer.model.attention as windows
from tests.helpers.kernels import torch_kernel_on_cpu


def pass_for_accelerator() -> None:
    """From now on torch's kernel computes attention on this CPU, and compilation makes no code."""
    kernels = (torch_kernel_on_cpu(),)
    packed.KERNEL_DEVICES = engine.KERNEL_DEVICES = ("cpu",)
    encoder.find_kernels = lambda: kernels
    windows.KERNELS, windows.DEVICES = kernels, ("cpu",)
    dropout.Dropout.forward = nn.Dropout.forward
    compiled = torch.compile

    def traced(*arguments: Any, **options: Any) -> Any:
        return compiled(*arguments, **{**options, "backend": "eager"})

    torch.compile = traced
