"""The same bits from the same GPU every time, for those who ask for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@contextmanager
def determinism(wanted: bool) -> Iterator[None]:
    """Inside, torch refuses operations whose result may differ from call to call; afterwards all is as before.

    cuBLAS reads its variable when it is first used in a process, so nothing may have run on the GPU before.
    """
    if not wanted:
        yield
        return
    before, benchmark = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    variable = os.environ.get(_CUBLAS)
    os.environ.setdefault(_CUBLAS, ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        torch.backends.cudnn.benchmark = benchmark
        if variable is None:
            os.environ.pop(_CUBLAS, None)
