"""In what precision and in what pieces an encoder runs on a device."""

from __future__ import annotations

import torch

from biobench.core.machine import Precision
from biobench.models.encoder import Encoder

_MICRO_TOKENS_CPU = 8_192
_MICRO_TOKENS_CUDA = 65_536


def settled_precision(encoder: Encoder, precision: Precision) -> tuple[Precision, list[str]]:
    """The precision that this encoder can run in, and in words that it is not the wanted one."""
    if precision == "bf16" and not encoder.runs_in_bf16:
        return "fp32", ["the encoder does not compute in bf16: run in fp32"]
    return precision, []


def micro_batch_tokens(device: torch.device) -> int:
    """Tokens per forward call to begin with; memory errors halve it."""
    return _MICRO_TOKENS_CUDA if device.type == "cuda" else _MICRO_TOKENS_CPU
