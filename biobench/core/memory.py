"""How much memory there is, how much was used, and what it looks like when there is none. Loads torch."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from biobench.core.cgroup import memory_left

_MARGIN = 0.95
"""Share of what a control group has left that one process lets itself take: the kernel counts its own pages too."""
_LEAST = 64 << 20
"""Bytes below which nothing is begun: libraries that cannot take a few KiB end the process."""
_SHORT = ("can't allocate memory", "not enough memory", "Cannot allocate", "out of memory", "STATUS_ALLOC_FAILED")
_SHORT_IF_BOUNDED = ("could not create a primitive", "could not create a memory", "bad_alloc", "start new thread")
"""Words of oneDNN, C++ and threads for the same; they can mean other things, so they count under a bound alone."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error says that memory did not suffice, on CUDA or on a CPU.

    torch has an exception of its own for CUDA alone; its CPU allocator and its libraries raise a RuntimeError with
    words, and Python, NumPy and Arrow a MemoryError.
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    bounded = resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY
    signs = _SHORT + (_SHORT_IF_BOUNDED if bounded else ())
    return isinstance(error, RuntimeError) and any(words in str(error) for words in signs)


def free_memory_bytes(device: torch.device, meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """What a new process can take: of the CUDA device, or of the machine; None where the system does not say.

    A control group's limit counts where it leaves less than the machine has.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    known = [_field(meminfo, "MemAvailable:"), memory_left()]
    return min((amount for amount in known if amount is not None), default=None)


@contextmanager
def within_the_limit(device: torch.device, processes: int = 1, left: int | None = None) -> Iterator[int | None]:
    """Meanwhile allocations fail before the control group's memory limit kills this process without a word.

    A failed allocation is an error that the engine answers with smaller micro-batches, or with a line that says what
    did not fit; the kernel's answer to a group beyond its limit is SIGKILL. So this process bounds its own data
    segment (RLIMIT_DATA) at what it has now and its share of what the group has left, and takes the bound back at the
    end. processes: how many share what is left. left: bytes; None asks the control groups. Yields the bytes that this
    process may take, None where it set no bound: on CUDA, where no group limits memory, or under a user's own bound.
    Raises MemoryError in place of the libraries' RuntimeErrors, and at once where next to nothing is left.
    """
    left = memory_left() if left is None else left
    now = _field(Path("/proc/self/status"), "VmData:")
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if device.type != "cpu" or left is None or now is None or soft != resource.RLIM_INFINITY:
        yield None
        return
    share = int(_MARGIN * left / processes)
    if share < _LEAST:
        raise MemoryError(f"the control group leaves {share >> 20} MiB")
    resource.setrlimit(resource.RLIMIT_DATA, (now + share, hard))
    try:
        yield share
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise MemoryError(str(error)) from error  # outside the bound its words might mean something else
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


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
    peak = _field(Path("/proc/self/status"), "VmHWM:")
    return peak if peak is not None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _field(file: Path, name: str) -> int | None:
    """A line `name: N kB` of a file of the kernel, in bytes."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
