"""Memory habits of a training process on a CPU."""

from __future__ import annotations

import ctypes
import os
import platform

import torch

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""The numbers of malloc.h."""


def keep_freed_memory() -> bool:
    """Tell glibc to reuse freed blocks of up to 32 MiB instead of giving them back; False on another libc.

    Every step frees and takes the same tensors again; each time the system must zero their pages anew. The
    fine-tuning engine does the same (`biobench.finetune.machine`), which lies on a floor that the trainer may
    not import. A user's own MALLOC_* settings are left alone.
    """
    if platform.libc_ver()[0] != "glibc" or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all(
        mallopt(option, value) == 1
        for option, value in ((_MMAP_THRESHOLD, 32 << 20), (_TRIM_THRESHOLD, 1 << 30), (_TOP_PAD, 64 << 20))
    )


def clear_gradients(optimizer: torch.optim.Optimizer, device: torch.device, *, processes: int = 1) -> None:
    """Forget the step's gradients: set to zero in place in a single process on a CPU, where fresh pages are dear.

    Elsewhere they are freed. Both give the same next step: a parameter without a gradient (frozen) has none
    either way.
    """
    optimizer.zero_grad(set_to_none=device.type != "cpu" or processes > 1)
