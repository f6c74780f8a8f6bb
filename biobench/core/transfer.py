"""From the host's memory to the device without waiting for it. Loads torch: rooms without it may not import this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

ASYNCHRONOUS = ("cuda",)
"""Kinds of device that work while the host goes on; the host never waits for them within a training step."""


def is_asynchronous(device: torch.device) -> bool:
    """Whether asking the device for a value makes the host wait for all work that it has queued."""
    return device.type in ASYNCHRONOUS


def to_device(values: Tensor | NDArray[Any] | Sequence[int], device: torch.device) -> Tensor:
    """`values` on `device`; a CUDA device is given a pinned copy, which it fetches in the order of its own work.

    On a CPU the result may share the memory of `values`.
    """
    tensor = values if isinstance(values, Tensor) else torch.as_tensor(values)
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
