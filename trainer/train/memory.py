"""Memory habits of a training process."""

from __future__ import annotations

import torch


def clear_gradients(optimizer: torch.optim.Optimizer, device: torch.device, *, processes: int = 1) -> None:
    """Forget the step's gradients: set to zero in place in a single process on a CPU, where fresh pages are dear.

    Elsewhere they are freed. Both give the same next step: a parameter without a gradient (frozen) has none
    either way.
    """
    optimizer.zero_grad(set_to_none=device.type != "cpu" or processes > 1)
