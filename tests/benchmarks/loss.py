"""The loss of a large vocabulary beside the library's: processor seconds and memory.

    OMP_NUM_THREADS=1 python -m tests.benchmarks.loss [--rounds 3]

First ours against `torch.nn.functional.linear_cross_entropy` in chunks of as many rows, forward and
backward in alternation; then the (rows, vocabulary) buffers that the compiled chunk writes, with
the target told by a scatter and by comparison (needs a C++ compiler).
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.nn.functional import linear_cross_entropy

from trainer.model.loss import (
    CHUNK_LOGITS,
    IGNORE,
    chunk_loss,
    fused_chunk_loss,
    linear_cross_entropy_sum,
)

POSITIONS, WIDTH, VOCABULARY = 1024, 384, 30_522


def problem() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """States, matrix, bias and targets of a MiniLM's decoder; one target in five is missing."""
    torch.manual_seed(0)
    hidden = torch.randn(POSITIONS, WIDTH, requires_grad=True)
    weight = torch.randn(VOCABULARY, WIDTH, requires_grad=True)
    targets = torch.randint(0, VOCABULARY, (POSITIONS,))
    targets[::5] = IGNORE
    return hidden, weight, torch.zeros(VOCABULARY, requires_grad=True), targets


def compare(rounds: int) -> None:
    """Print the seconds of both and their ratio."""
    from torch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

    hidden, weight, bias, targets = problem()
    rows = max(64, CHUNK_LOGITS["cpu"] // VOCABULARY)
    options = LinearCrossEntropyOptions(chunking_method=None, batch_chunk_size=rows)
    sides: dict[str, Callable[[], Tensor]] = {
        "ours": lambda: linear_cross_entropy_sum(hidden, weight, bias, targets),
        "torch, chunks": lambda: linear_cross_entropy(
            hidden, weight, targets, linear_bias=bias, reduction="sum", options=options
        ),
        "torch, whole": lambda: linear_cross_entropy(
            hidden, weight, targets, linear_bias=bias, reduction="sum"
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            began = time.process_time()
            gradients = torch.autograd.grad(side(), (hidden, weight, bias))
            seconds[name].append(time.process_time() - began)
            print(f"{name}: {seconds[name][-1]:.2f} s, |gradient| {gradients[0].abs().sum():.0f}")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {median:.2f} s, {median / medians['ours']:.2f} of ours")


def count_buffers() -> None:
    """Print what the compiled chunk writes."""
    logits = torch.randn(256, 8192, dtype=torch.bfloat16)
    want = torch.randint(0, 8192, (256,))
    for body in (chunk_loss, fused_chunk_loss):
        for biased in (False, True):
            torch.compiler.reset()
            zero = torch.zeros(())
            _, code = run_and_get_code(
                torch.compile(body), zero, logits.clone(), want, True, biased
            )
            written = re.findall(r"empty_strided_cpu\(\(256, 8192\).*?(torch\.\w+)\)", code[-1])
            print(f"{body.__name__}, bias {biased}: {', '.join(written)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    compare(parser.parse_args().rounds)
    count_buffers()
