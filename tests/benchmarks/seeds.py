"""Several seeds at once: one stacked network against processes that share the machine, and one seed
after the other.

    python -m tests.benchmarks.seeds [--seeds 4] [--threads 2] [--rounds 2]

A step is forward, backward and AdamW of an encoder of three layers on 16 x 40 tokens, as in
`tests.benchmarks.threads`. Stacked: every weight has a leading seed axis and every product is a
batched one, so that all seeds share each call. Processes: as many at a time as there are threads,
each with one thread and one seed. Printed: milliseconds for one step of one seed, the median over
steps; the contenders alternate.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

LAYERS, DOCUMENTS, LENGTH = 3, 16, 40


def network(seeds: int, width: int) -> list[list[Tensor]]:
    """Weights of each layer: query-key-value, output, up, down; all (seeds, in, out)."""
    torch.manual_seed(0)
    shapes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    return [
        [(0.02 * torch.randn(seeds, *s)).requires_grad_() for s in shapes] for _ in range(LAYERS)
    ]


def forward(states: Tensor, layers: list[list[Tensor]], heads: int) -> Tensor:
    """states: (seeds, documents x length, width), the same out."""
    seeds, tokens, width = states.shape
    for qkv, out, up, down in layers:
        q, k, v = (
            x.reshape(seeds * DOCUMENTS, LENGTH, heads, width // heads).transpose(1, 2)
            for x in torch.bmm(states, qkv).chunk(3, -1)
        )
        mixed = scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(seeds, tokens, width)
        states = layer_norm(states + torch.bmm(mixed, out), (width,))
        states = layer_norm(states + torch.bmm(gelu(torch.bmm(states, up)), down), (width,))
    return states


def step_seconds(seeds: int, width: int, threads: int, steps: int) -> float:
    """Median seconds of a step of `seeds` stacked networks."""
    torch.set_num_threads(threads)
    layers = network(seeds, width)
    optimizer = torch.optim.AdamW([w for layer in layers for w in layer], fused=True)
    states = torch.randn(seeds, DOCUMENTS * LENGTH, width)
    times = []
    for _ in range(steps + 1):
        began = time.perf_counter()
        forward(states, layers, width // 32).square().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def main() -> None:
    """Parse, measure in alternation, print."""
    parser = argparse.ArgumentParser()
    for name, default in (("seeds", 4), ("threads", 2), ("rounds", 2), ("steps", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    seeds, threads, steps = arguments.seeds, arguments.threads, arguments.steps
    context = multiprocessing.get_context("spawn")
    for width in (64, 384):
        for round_ in range(arguments.rounds):
            with context.Pool(1) as one:
                alone = one.apply(step_seconds, (1, width, threads, steps))
                stacked = one.apply(step_seconds, (seeds, width, threads, steps)) / seeds
            with context.Pool(threads) as many:
                each = many.starmap(step_seconds, [(1, width, 1, steps)] * threads, chunksize=1)
            shared = statistics.fmean(each) / threads
            print(
                f"width {width}, round {round_ + 1}: one after the other {1000 * alone:.1f} ms, "
                f"stacked ({seeds} seeds) {1000 * stacked:.1f}, {threads} processes "
                f"{1000 * shared:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
