"""Parts of a fine-tuning step on a CPU, one thread: matrix products of MiniLM's shapes, and dropout by sign bits.

    python -m tests.benchmarks.step_parts

Milliseconds are medians of CPU time over turns in which all ways of one part alternate, so that a busy machine is busy
for all of them. What is compared is equal bit for bit, which is checked before it is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor

from biobench.models.dropout import draws, signs, threshold

TOKENS, TURNS, WARM, RATE = 560, 15, 3, 0.1
SHAPES = {"384 x 384": (384, 384), "384 x 1,536": (384, 1536), "1,536 x 384": (1536, 384)}
GROUP = (6, 12, 49)
"""Documents, heads and tokens of one group of similar lengths."""


def alternated(*ways: Callable[[], object]) -> list[float]:
    """Median milliseconds of CPU time of each way."""
    taken: list[list[float]] = [[] for _ in ways]
    for turn in range(WARM + TURNS):
        for place in range(len(ways))[:: 1 if turn % 2 else -1]:
            began = time.process_time()
            ways[place]()
            taken[place].append(1e3 * (time.process_time() - began))
    return [statistics.median(times[WARM:]) for times in taken]


def products(kind: torch.dtype) -> None:
    """Rates of a layer's products: forward, gradient of the states, gradient of the weights."""
    for name, (inputs, outputs) in SHAPES.items():
        x, w = torch.randn(TOKENS, inputs).to(kind), torch.randn(outputs, inputs).to(kind)
        bias, g = torch.randn(outputs).to(kind), torch.randn(TOKENS, outputs).to(kind)
        times = alternated(lambda: torch.addmm(bias, x, w.t()), lambda: g @ w, lambda: g.t() @ x)  # noqa: B023
        rates = " ".join(f"{2 * TOKENS * inputs * outputs / t / 1e6:.0f}" for t in times)
        print(f"{TOKENS} tokens, {name}, {str(kind)[6:]}: {rates} GFLOP/s (forward, states, weights)")


def new_shapes() -> None:
    """What the first product of a new number of tokens costs beyond the next ones."""
    w, bias, sizes = torch.randn(384, 384).bfloat16(), torch.randn(384).bfloat16(), count(401)
    first, next_ = [], []
    for _ in range(TURNS):
        x = torch.randn(next(sizes), 384).bfloat16()
        for taken in (first, next_):
            began = time.process_time()
            torch.addmm(bias, x, w.t())
            taken.append(1e3 * (time.process_time() - began))
    print(f"a new number of tokens: {statistics.median(first):.2f} ms, then {statistics.median(next_):.2f} ms")


def states() -> None:
    """Dropout on hidden states, forward and backward."""
    x, (least, scale) = torch.randn(TOKENS * 384).bfloat16(), threshold(RATE)

    def truth() -> Tensor:
        kept = (draws(x.numel()) >= least).to(x.dtype).mul_(scale)
        return (x * kept) * kept

    def bits() -> Tensor:
        kept = signs(x.numel(), RATE).relu_().mul_(scale)
        return (x * kept) * kept

    report("dropout of states", truth, bits)


def probabilities() -> None:
    """Padding's mask and dropout on one group's probabilities, forward and backward, the products left out."""
    documents, heads, n = GROUP
    least, scale = threshold(RATE)
    given, change = torch.randn(2, documents * heads, n, n)
    mask = torch.arange(n)[None, None, None] < torch.arange(n - documents, n)[:, None, None, None]
    add = torch.zeros(mask.shape).masked_fill_(~mask, float("-inf"))

    def truth() -> Tensor:
        scores = given.clone()
        scores.view(documents, heads, n, n).masked_fill_(~mask, float("-inf"))
        chances = torch.softmax(scores, -1)
        keep = draws(chances.numel()).view(chances.shape) >= least
        forward, again = (chances * keep).mul_(scale), (chances * keep).mul_(scale)
        back = change.clone().mul_(keep).mul_(scale)
        return forward + again + torch._softmax_backward_data(back, chances, -1, back.dtype)

    def bits() -> Tensor:
        scores = given.clone()
        scores.view(documents, heads, n, n).add_(add)
        chances = torch.softmax(scores, -1)
        chances.mul_(signs(chances.numel(), RATE).view(chances.shape).to(chances.dtype))
        forward, again = chances.relu().mul_(scale), chances.relu().mul_(scale)
        back = torch.ops.aten.threshold_backward(change, chances, 0).mul_(scale)
        return forward + again + torch._softmax_backward_data(back, chances.abs(), -1, back.dtype)

    report("mask and dropout of probabilities", truth, bits)


def report(what: str, truth: Callable[[], Tensor], bits: Callable[[], Tensor]) -> None:
    """Check that both ways give the same numbers from the same draws, and print their milliseconds."""
    results = []
    for way in (truth, bits):
        torch.manual_seed(0)
        results.append(way())
    assert torch.equal(*results)
    before, after = alternated(truth, bits)
    print(f"{what}: {before:.2f} ms by truth values, {after:.2f} ms by sign bits")


if __name__ == "__main__":
    torch.set_num_threads(1)
    products(torch.float32)
    products(torch.bfloat16)
    new_shapes()
    states()
    probabilities()
