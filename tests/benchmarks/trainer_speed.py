"""How fast the trainer is against the HF Trainer on a CPU; for GPUs see `tests.benchmarks.gpu`.

``python -m tests.benchmarks.trainer_speed`` prints tokens per second of both on the toy recipe's
model, batch, length, masking and optimiser: same module, attention function, precision, batches and
clipping; the HF Trainer computes the stock loss over all logits, under the memory settings that
each side has by itself, and keeps its log. Each side has a process of its own; they take turns of
some steps, one after the other, so that a machine which is slow for a while is slow for all of
them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
import torch

from tests.benchmarks.trainer_sides import build, make_batches, ours, theirs, toy

VOCABULARIES = (1600, 32768)
"""The toy recipe's own, and the French checkpoints', at which the loss path meets what it meets in
practice.
"""
OBJECTIVES = ("clm", "mlm")
SIDES = ("ours", "theirs")
TURNS, WARM = 15, 4
"""Turns that each side takes; steps before the first one."""


@dataclass(frozen=True)
class Speed:
    """Tokens per second of one objective and vocabulary: turns of (ours, the HF Trainer's)."""

    objective: str
    vocabulary: int
    turns: tuple[tuple[float, float], ...]
    first_losses: tuple[float, float]
    """Of the first step, ours and theirs: they must agree."""

    def line(self) -> str:
        """What is printed: median speeds, median ratio and its middle half, the first losses."""
        mine, hf = np.median(self.turns, axis=0)
        # within a turn, what slows the machine for a while hurts both alike
        ratios = [ours / theirs for ours, theirs in self.turns]
        low, middle, high = np.percentile(ratios, (25, 50, 75))
        return (
            f"{self.objective}, vocabulary {self.vocabulary:,}: {mine:,.0f} tokens/s, HF Trainer "
            f"{hf:,.0f}, ratio {middle:.2f} (median of {len(self.turns)} turns, middle half "
            f"{low:.2f} to {high:.2f}; first losses {self.first_losses[0]:.4f}, "
            f"{self.first_losses[1]:.4f})"
        )


class Pace:
    """Counts a side's steps, and at each turn's end says how long it took and waits for the word to
    go on.

    warm: steps before the first turn; length: steps of a turn.
    """

    def __init__(self, wire: Connection, *, warm: int = WARM, length: int) -> None:
        self.wire, self.warm, self.length = wire, warm, length
        self.done, self.began = 0, 0.0

    def step(self, loss: float | None = None) -> None:
        """A step is done. loss: of the first step."""
        self.done += 1
        if loss is not None:
            self.wire.send(loss)
        if self.done < self.warm or (self.done - self.warm) % self.length:
            return
        if self.done > self.warm:
            self.wire.send(_now() - self.began)
        if self.wire.recv():
            self.began = _now()


def measure(
    wire: Connection, side: str, objective: str, vocabulary: int, steps: int, turns: int
) -> None:
    """One side in this process: the first step's loss, then seconds of `turns` turns of `steps`
    steps (see `Pace`).
    """
    recipe, masking = toy()
    windows, length = recipe.batch.sequences, recipe.corpus.sequence_length
    batches = make_batches(objective, WARM + turns * steps, windows, length, vocabulary, masking)
    model = build({**(recipe.base.config or {}), "vocab_size": vocabulary})
    causal, after = objective == "clm", Pace(wire, length=steps).step
    if side == "theirs":
        theirs(model, batches, after, causal=causal, optimizer=recipe.optimizer)
        return
    ours(model, batches, after, causal=causal, optimizer=recipe.optimizer)


def against_hf(objective: str, vocabulary: int, *, steps: int, turns: int) -> Speed:
    """All sides on the toy recipe's shape, `turns` turns of `steps` steps each, who begins
    alternating.

    Each side has a process of its own, so that none finds memory or kernels that another prepared.
    """
    recipe, context = toy()[0], get_context("spawn")
    tokens = steps * recipe.batch.sequences * recipe.corpus.sequence_length
    wires: dict[str, Connection] = {}
    for side in SIDES:
        wires[side], other = context.Pipe()
        context.Process(
            target=measure, args=(other, side, objective, vocabulary, steps, turns), daemon=True
        ).start()
        other.close()
    losses = {side: wire.recv() for side, wire in wires.items()}
    seen: list[tuple[float, float]] = []
    for number in range(turns):
        once = {}
        for side in SIDES if number % 2 == 0 else SIDES[::-1]:
            wires[side].send(True)
            once[side] = tokens / wires[side].recv()
        seen.append((once["ours"], once["theirs"]))
    for wire in wires.values():
        wire.send(False)
    return Speed(objective, vocabulary, tuple(seen), (losses["ours"], losses["theirs"]))


def _now() -> float:
    """Seconds; with one thread of processor time, which a busy machine does not stretch."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.trainer_speed", description=__doc__
    )
    parser.add_argument(
        "--steps",
        type=int,
        help="steps of a turn; default: 20, and 2 where the vocabulary is large",
    )
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument(
        "--vocabulary", type=int, action="append", help="default: 1,600 as the recipe, and 32,768"
    )
    parser.add_argument("--objective", choices=OBJECTIVES, action="append", help="default: both")
    given = parser.parse_args()
    kinds = given.objective or OBJECTIVES
    for size in given.vocabulary or VOCABULARIES:
        for objective in kinds:
            steps = given.steps or (2 if size > 8192 else 20)
            print(against_hf(objective, size, steps=steps, turns=given.turns).line(), flush=True)


if __name__ == "__main__":
    main()
