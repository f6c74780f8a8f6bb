"""What the machine has of memory, and what it looks like when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from biobench.core import machine
from biobench.core.machine import free_memory_bytes, is_out_of_memory

CPU = torch.device("cpu")


def test_allocations_that_fail_are_known_as_such() -> None:
    for take in (lambda: torch.empty(1 << 50), lambda: bytearray(1 << 50)):
        with pytest.raises((RuntimeError, MemoryError)) as caught:
            take()
        assert is_out_of_memory(caught.value)
    for error in (RuntimeError("shapes do not fit"), ValueError("not enough memory"), None):
        assert not is_out_of_memory(error)


def test_free_memory_is_the_least_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  9000 kB\nMemAvailable:  4000 kB\n")
    for left, free in (
        (None, 4000 * 1024),
        (5_000_000, 4000 * 1024),
        (1_000_000, 1_000_000),
        (0, 0),
    ):
        monkeypatch.setattr(machine, "memory_left", lambda left=left: left)
        assert free_memory_bytes(CPU, meminfo) == free
    monkeypatch.setattr(machine, "memory_left", lambda: None)
    assert free_memory_bytes(CPU, tmp_path / "none") is None, "unknown is not nothing"
