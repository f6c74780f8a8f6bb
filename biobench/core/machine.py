"""What the machine offers: device and precision. Loads torch: rooms without it may not import this module."""

from __future__ import annotations

import re
from typing import Literal

import torch

from biobench.errors import UsageError

Precision = Literal["bf16", "fp32"]


def resolve_device(device: str, option: str = "--device") -> torch.device:
    """auto takes CUDA where there is one. Raises UsageError, which names `option`, for a device that is not there."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise UsageError(f"{option} '{device}' is not known", hint="use auto, cpu or cuda")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"{option} cuda: this torch sees no CUDA device", hint=f"use {option} cpu or auto")
    return torch.device(device)


def resolve_precision(wanted: Literal["auto", "bf16", "fp32"], device: torch.device) -> Precision:
    """auto is bf16 where the machine multiplies it in hardware, else fp32.

    CPU: AMX tiles or AVX-512 BF16. CUDA: compute capability 8.0 and later.
    """
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    fast = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return "bf16" if fast else "fp32"
