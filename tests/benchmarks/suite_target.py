"""What two GPU-hours for the whole suite (127 runs of a model) ask of a step, by arithmetic; nothing is trained.

    python -m tests.benchmarks.suite_target DATA_DIR [--hours 2] [--parameters 85]

Steps are those of the specs. Tokens are characters of training and validation text over `CHARACTERS`. A token costs two
operations a parameter forward and four backward, and attention 4 x tokens x width a layer forward. Tasks whose data are
not here count as the mean of those of their language.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from statistics import fmean

from biobench.data.load import load_data
from biobench.data.suite import suite_tasks
from biobench.encode.batches import steps_per_epoch
from biobench.errors import DataUnavailableError
from biobench.schema.task import parse_seeds

LAYERS, WIDTH = 12, 768
"""Of a base model."""
CHARACTERS = 4.1
"""A token: MiniLM's tokenizer on the sentences of ncbi_disease, special tokens included."""


@dataclass(frozen=True)
class Run:
    """Optimiser steps of one run, and its floating-point operations."""

    steps: float
    operations: float


def one_run(documents: dict[str, list[str]], *, epochs: int | None, steps: int | None, batch: int, each: float) -> Run:
    """documents: texts of train and validation. each: operations a token takes through the weights, forward."""
    per_epoch = steps_per_epoch(len(documents["train"]), batch)
    total = steps or per_epoch * (epochs or 1)
    passes = total / per_epoch

    def forward(texts: list[str]) -> float:
        tokens = [len(text) / CHARACTERS for text in texts]
        return sum(n * each + 4 * n * n * WIDTH * LAYERS for n in tokens)

    return Run(total, passes * (3 * forward(documents["train"]) + forward(documents["validation"])))


def main() -> None:
    """A line for each task, then the sums and what they ask of a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_dir")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--parameters", type=float, default=85.0, help="millions, embeddings left out")
    given = parser.parse_args()
    every: list[Run] = []
    for language in ("fr", "en"):
        known: list[Run] = []
        counts: list[tuple[Run | None, int]] = []
        for task in suite_tasks(language):
            recipe, seeds = task.spec.training, len(parse_seeds(task.spec.seeds))
            try:
                data = load_data(task, given.data_dir)
            except DataUnavailableError:
                counts.append((None, seeds))
                continue
            texts = {name: [d.text for d in data.documents[name]] for name in ("train", "validation")}
            run = one_run(
                texts,
                epochs=recipe.epochs,
                steps=recipe.max_steps,
                batch=recipe.batch_size,
                each=2e6 * given.parameters,
            )
            print(f"{task.id}: {seeds} seeds, {run.steps:,.0f} steps, {run.operations / 1e15:.2f} PFLOP a run")
            known += [run] * seeds
            counts.append((run, seeds))
        mean = Run(fmean(r.steps for r in known), fmean(r.operations for r in known))
        every += [run or mean for run, seeds in counts for _ in range(seeds)]
        print(f"{language}: {len(known)} runs with data here, mean {mean.steps:,.0f} steps")
    steps, operations = sum(r.steps for r in every), sum(r.operations for r in every)
    seconds = 3600 * given.hours
    print(
        f"{len(every)} runs: {steps:,.0f} steps, {operations / 1e15:,.0f} PFLOP; in {given.hours:g} hours "
        f"{1000 * seconds / steps:.1f} ms a step and {operations / seconds / 1e12:.0f} TFLOP/s"
    )


if __name__ == "__main__":
    main()
