"""One process or many: the same calls, whoever started them (plain, torchrun, accelerate
launch)."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from biobench.core.machine import resolve_device
from biobench.core.stop import StopFlag as StopFlag
from biobench.errors import TrainingError

PATIENCE = timedelta(days=14)
"""How long the processes wait for one that builds the corpus, say. Collectives give up after
minutes; a process that dies meanwhile is noticed by the launcher, which ends the others.
"""


@dataclass(frozen=True)
class World:
    """This process's place among all: rank, size, device.

    waiting: the group of the barriers, None for the default.
    """

    rank: int
    size: int
    device: torch.device
    waiting: dist.ProcessGroup | None = None

    @property
    def first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait for all processes, however long one of them takes."""
        if self.size > 1:
            dist.barrier(group=self.waiting)

    def total(self, value: torch.Tensor) -> torch.Tensor:
        """The sum of `value` over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(value)
        return value

    def sums(self, *values: int) -> list[int]:
        """The sum of each number over all processes. It passes between hosts, so that no GPU is
        waited for.
        """
        if self.size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.int64)
        dist.all_reduce(shared, group=self.waiting)
        return [int(value) for value in shared.tolist()]

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any process."""
        return self.sums(int(flag))[0] > 0

    def same(self, text: str, what: str) -> None:
        """Raise TrainingError unless all processes have the same `text`."""
        if self.size == 1:
            return
        texts: list[str | None] = [None] * self.size
        dist.all_gather_object(texts, text)
        if len(set(texts)) > 1:
            raise TrainingError(
                f"the processes disagree about {what}",
                hint="start all of them with the same recipe, code and data",
            )

    def slice(self, count: int) -> range:
        """This process's part of `count` windows; contiguous, so that results do not depend on the
        size.
        """
        share = count // self.size
        return range(self.rank * share, (self.rank + 1) * share)


def whole_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, gathered where it is sharded over processes, which then all call this."""
    whole: torch.Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


@contextmanager
def world(device: str = "auto") -> Iterator[World]:
    """Join the process group that the launcher describes, and leave it in order.

    A group that exists already is used and left alone. Raises UsageError for a device that is not
    there.
    """
    located = resolve_device(device, "engine.device")
    if located.type == "cuda":
        located = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(located)
    joined = not dist.is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1
    if joined:
        if located.type == "cuda":
            dist.init_process_group("nccl", device_id=located)
        else:
            dist.init_process_group("gloo")
    try:
        if dist.is_initialized():
            patient = dist.new_group(backend="gloo", timeout=PATIENCE)
            yield World(dist.get_rank(), dist.get_world_size(), located, patient)
        else:
            yield World(0, 1, located)
    except BaseException:
        # The others may never reach a barrier; the launcher ends them.
        joined = False
        raise
    finally:
        # Reducers that outlive the group abort the process at exit now and then.
        gc.collect()
        if joined:
            dist.barrier()
            dist.destroy_process_group()


@contextmanager
def determinism(wanted: bool) -> Iterator[None]:
    """Inside, where `wanted`, torch refuses operations whose result may differ from call to call.

    cuBLAS reads its variable when it is first used in a process, so nothing may have run on the GPU
    before.
    """
    mode = torch.get_deterministic_debug_mode()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)


@contextmanager
def fast_products(device: torch.device) -> Iterator[None]:
    """Inside, a GPU rounds the factors of fp32 matrix products to TF32. The setting is of the whole
    process: what the caller had is restored.
    """
    with ExitStack() as stack:
        stack.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
        if device.type == "cuda":
            torch.set_float32_matmul_precision("high")
        yield


class StoppedError(Exception):
    """The run was asked to stop before its training began: nothing of a state is to be saved."""
