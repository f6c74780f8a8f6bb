"""What one step computes, and the held-out loss; when either is due is the run's business."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from trainer.model.network import LABEL
from trainer.order import seed_words
from trainer.train.batches import Batches, Micro, StepBatch
from trainer.train.distributed import whole_tensor
from trainer.train.optimizer import set_rate
from trainer.train.phase import PreparedPhase, autocast

PARTS = ("data", "forward", "loss", "backward", "update")
"""Parts of a step, as a profiler's trace names them; the loss is part of the forward pass."""
HELD_OUT_WINDOWS = 512
"""Most windows that a validation loss is taken over."""


def train_step(
    training: PreparedPhase,
    batches: Batches,
    batch: StepBatch,
    *,
    targets: int,
    rate: float,
    number: int,
) -> tuple[Tensor, Tensor]:
    """One optimiser step: (this process's summed loss, gradient norm before it is clipped).

    targets: of all processes. rate: learning rate. number: the step's in the whole run, which its
    dropout depends on.
    """
    recipe = batches.recipe
    world = batches.world
    set_rate(training.optimizer, rate)
    if recipe.engine.dropout > 0:
        torch.manual_seed(int(seed_words("dropout", recipe.seeds.training, number, world.rank)[0]))
    # Wrappers average gradients over processes; times their number this is the mean over all
    # targets.
    scale = world.size / max(targets, 1)
    total = torch.zeros((), device=world.device)
    for micro in batch.micros:
        partial = micro is not batch.micros[-1]
        with (
            _accumulating(training.wrapped, partial),
            autocast(training.precision, world.device),
        ):
            with record_function(f"{LABEL}forward"):
                loss = _loss(training, micro, causal=batches.phase.objective == "clm")
            with record_function(f"{LABEL}backward"):
                (loss * scale).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    for layer in training.zeroed:
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter.grad.zero_()
    with record_function(f"{LABEL}update"):
        norm = _clip(training.module, recipe.optimizer.gradient_clip)
        training.optimizer.step()
        # Set to zero in place by a single process on a CPU, where fresh pages are dear. A parameter
        # without a gradient (frozen) has none either way.
        training.optimizer.zero_grad(set_to_none=world.device.type != "cpu" or world.size > 1)
    return total, norm


def held_out_loss(training: PreparedPhase, batches: Batches) -> tuple[float | None, int]:
    """(held-out loss under the phase's own objective, targets), with masks that never change; None
    without windows.

    Called by all processes.
    """
    count = min(len(batches.corpus.held_out), HELD_OUT_WINDOWS)
    if not count:
        return None, 0
    rows = range(count)
    world = batches.world
    module = training.wrapped
    share = max(1, batches.batch.sequences // world.size)
    size = min(batches.batch.micro or share, share, 64)
    chunks = [rows[start : start + size] for start in range(0, count, size)]
    causal = batches.phase.objective == "clm"
    sums = torch.zeros(2, device=world.device, dtype=torch.float64)
    module.eval()
    # Every process makes the same number of forward passes, as sharded weights need.
    for turn in range(math.ceil(len(chunks) / world.size)):
        number = turn * world.size + world.rank
        micro, targets = batches.held_out(chunks[number % len(chunks)])
        with torch.no_grad(), autocast(training.precision, world.device):
            loss = _loss(training, micro, causal=causal)
        if number < len(chunks):
            sums += sums.new_tensor([float(loss), targets])
    module.train()
    if isinstance(module, FSDPModule):
        module.reshard()  # a forward pass without a backward one leaves the outer weights gathered
    world.total(sums)
    return float(sums[0] / sums[1].clamp_min(1)), int(sums[1])


def _loss(training: PreparedPhase, micro: Micro, *, causal: bool) -> Tensor:
    """The summed loss of one forward pass."""
    loss: Tensor = training.wrapped(
        micro.input_ids, micro.positions, micro.targets, causal=causal, packing=micro.packing
    )
    return loss


@contextmanager
def _accumulating(module: nn.Module, partial: bool) -> Iterator[None]:
    """Leave gradients where they are until the step's last forward pass."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(not partial)
    with ExitStack() as stack:
        if partial and isinstance(module, DistributedDataParallel):
            stack.enter_context(module.no_sync())
        yield


def _clip(module: nn.Module, limit: float | None) -> Tensor:
    """The global gradient norm, clipped to `limit` where there is one."""
    if limit is not None:
        norm = nn.utils.clip_grad_norm_(module.parameters(), limit)
    else:
        norm = nn.utils.get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
    return whole_tensor(norm)
