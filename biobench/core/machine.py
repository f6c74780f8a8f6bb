"""What the machine offers: device, precision, memory, and copies to the device. Loads torch:
packages without it may not import this module.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from biobench.core.processes import system_text
from biobench.core.threads import memory_left
from biobench.errors import UsageError

Precision = Literal["bf16", "fp32"]
ASYNCHRONOUS = ("cuda",)
"""Kinds of device that work while the host goes on: asking one for a value makes the host wait for
all queued work.
"""
_SHORT = (
    "can't allocate memory",
    "not enough memory",
    "Cannot allocate",
    "out of memory",
    "STATUS_ALLOC_FAILED",
)
"""Words by which torch's CPU allocator and its libraries say it."""


def resolve_device(device: str, option: str = "--device") -> torch.device:
    """auto takes CUDA where there is one. Raises UsageError, which names `option`, for a device
    that is not there.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise UsageError(f"{option} '{device}' is not known", hint="use auto, cpu or cuda")
    if device == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device(device.replace("auto", "cuda"))
    if device == "auto":
        return torch.device("cpu")
    raise UsageError(
        f"{option} cuda: this torch sees no CUDA device", hint=f"use {option} cpu or auto"
    )


def resolve_precision(wanted: Literal["auto", "bf16", "fp32"], device: torch.device) -> Precision:
    """auto is bf16 where the machine multiplies it in hardware, else fp32.

    CPU: AMX tiles or AVX-512 BF16. CUDA: compute capability 8.0 and later.
    """
    if wanted != "auto":
        return wanted
    is_fast = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    if device.type == "cuda":
        is_fast = torch.cuda.is_bf16_supported(including_emulation=False)
    if is_fast:
        return "bf16"
    return "fp32"


def to_device(values: Tensor | NDArray[Any] | Sequence[int], device: torch.device) -> Tensor:
    """`values` on `device`; a CUDA device is given a pinned copy, which it fetches in the order of
    its own work.

    On a CPU the result may share the memory of `values`.
    """
    tensor = torch.as_tensor(values)
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def computing_in(precision: Precision, device: torch.device) -> torch.autocast:
    """Meanwhile products are computed in this precision, whatever was the rule outside."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error says that memory did not suffice, on CUDA or on a CPU.

    torch has an exception of its own for CUDA alone; its CPU allocator and its libraries raise a
    RuntimeError with words, and Python, NumPy and Arrow a MemoryError.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _SHORT)


def free_memory_bytes(device: torch.device, meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """What a new process can take: of the CUDA device, or of the machine; None where the system
    does not say.

    A control group's limit counts where it leaves less than the machine has.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    amounts = (_field(meminfo, "MemAvailable"), memory_left())
    return min((amount for amount in amounts if amount is not None), default=None)


def reset_peak_memory(device: torch.device) -> None:
    """Start a new measurement of peak memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        # Not Linux, or not allowed: the peak then covers the whole process, never less than the
        # run.
        return


def peak_memory_bytes(device: torch.device) -> int:
    """Peak since the last reset: allocated on CUDA, resident on the CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = _field(Path("/proc/self/status"), "VmHWM")
    if peak is None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return peak


def _field(file: Path, name: str) -> int | None:
    """A line `name: N kB` of a file of the kernel, in bytes."""
    match = re.search(rf"^{name}:\s+(\d+) kB", system_text(file), re.MULTILINE)
    if match is None:
        return None
    return int(match[1]) * 1024


@contextmanager
def insisting(wanted: bool) -> Iterator[None]:
    """Meanwhile torch's attention sums gradients in one order, where that is switched on at all: it
    does so only if it is insisted on. An operation without such an order then raises RuntimeError.
    """
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    if not (wanted and warns and torch.are_deterministic_algorithms_enabled()):
        yield
        return
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(True, warn_only=True)


def random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """State of the generators of the host and of a CUDA device."""
    on_device: Tensor | None = None
    if device.type == "cuda":
        on_device = torch.cuda.get_rng_state(device)
    return torch.get_rng_state(), on_device


def set_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    """Put the generators where `random_state` found them."""
    on_host, on_device = state
    torch.set_rng_state(on_host)
    if on_device is not None:
        torch.cuda.set_rng_state(on_device, device)
