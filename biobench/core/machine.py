"""What the machine offers: device, precision, memory. Loads torch: rooms without it may not import this module."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
from pathlib import Path
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


def keep_freed_memory() -> bool:
    """Tell glibc to reuse freed blocks of up to 32 MiB instead of giving them back; False on another libc.

    A training step frees and takes the same tensors again and again; each time the system must zero their pages
    anew, about a tenth of a step on a CPU. A user's own MALLOC_* settings are left alone.
    """
    if platform.libc_ver()[0] != "glibc" or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # The numbers of malloc.h.
    return all(
        mallopt(option, value) == 1
        for option, value in ((mmap_threshold, 32 << 20), (trim_threshold, 1 << 30), (top_pad, 64 << 20))
    )


def free_memory_bytes(device: torch.device, meminfo: Path = Path("/proc/meminfo")) -> int:
    """What a new process can take: of the CUDA device, or of the machine (0 where the system does not say).

    A control group's limit counts where it is below what the machine has left.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
        return min(free, int(limit) - int(used)) if limit.isdecimal() else free
    except (OSError, ValueError):
        return free


def reset_peak_memory(device: torch.device) -> None:
    """Start a new measurement of peak memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return  # Not Linux, or not allowed: the peak then covers the whole process, never less than the run.


def peak_memory_bytes(device: torch.device) -> int:
    """Peak since the last reset: allocated on CUDA, resident on the CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
