"""Our fine-tuning against the HF Trainer's on the same task, in alternation.

    python -m tests.benchmarks.speed_against MODEL --task ncbi_disease_single --data-dir DIR --seeds
    42-46

The same checkpoint, texts, batch, epochs, recipe and seeds, and the same work: validation is scored
after each epoch, and the best epoch's weights predict the test split. A round trains all seeds once
with each contender, in an order that turns from round to round, each in a fresh process. Wall
seconds and CPU seconds include reading, tokenisation, loading and prediction, not the imports; peak
memory is that of the process, imports included. Ratios are taken within a round, the median over
rounds is reported. It measures CPUs; for GPUs see `tests.benchmarks.gpu`.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from shutil import which
from typing import Any

import numpy as np
import torch
import typer

from biobench.cli.console.output import print_json
from biobench.core.machine import (
    peak_memory_bytes,
    reset_peak_memory,
    resolve_precision,
)
from biobench.core.threads import machine_load
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import UsageError
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, quiet_libraries, window
from biobench.schema.task import parse_seeds
from biobench.stats import Estimand, mean_test
from biobench.stats.types import FloatArray
from tests.benchmarks.hf_trainer import TYPES, train_peer

OURS, CPU = "biobench", torch.device("cpu")
SAME = (
    *(
        "training.max_steps=",
        "training.patience=",
        "training.evaluate_every=epoch",
        "training.warmup_ratio=0",
    ),
    "metric.selection=micro_f1",
)
"""What of a task's recipe is set alike for both sides."""


@dataclass(frozen=True, slots=True)
class Work:
    """What every contender does: the task with all seeds, on that many training documents."""

    model: str
    task: str
    data_dir: str | None
    documents: int
    epochs: int
    seeds: tuple[int, ...]
    threads: int
    offline: bool = True


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one contender in one round. scores: micro F1 on test, of each seed."""

    contender: str
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SpeedRatio:
    """A contender over ours, medians over rounds; mean score as a fraction.

    difference: its score minus ours, mean over paired seeds. interval: of that mean, 95%; None for
    one seed.
    """

    contender: str
    wall: float
    cpu: float
    memory: float
    wall_seconds: float
    score: float
    difference: float
    interval: tuple[float, float] | None


def contenders() -> dict[str, dict[str, Any] | None]:
    """Name to arguments of the HF Trainer; None is our engine.

    Each gets what a critic would give it: bf16 where the CPU has units for it (elsewhere it
    takes over five times as long as fp32), length groups, fused AdamW, SDPA, and compilation where
    a compiler is there.
    """
    precision = resolve_precision("auto", CPU)
    exact: dict[str, Any] = {"bf16": True} if precision == "bf16" else {}
    grouped = {**exact, "train_sampling_strategy": "group_by_length"}
    best = {
        **grouped,
        "optim": "adamw_torch_fused",
        "attn_implementation": "sdpa",
        "dataloader_num_workers": 2,
    }
    known: dict[str, dict[str, Any] | None] = {OURS: None, "hf-trainer defaults": {}}
    if exact:
        known["hf-trainer bf16"] = exact
    known[f"hf-trainer {precision}, length groups"] = grouped
    known[f"hf-trainer {precision}, length groups, fused AdamW, SDPA, 2 loaders"] = best
    if any(which(name) for name in (os.environ.get("CXX", "g++"), "c++", "clang++")):
        known["hf-trainer best and compiled"] = {**best, "torch_compile": True}
    return known


def compare_speed(
    work: Work, rounds: int, *, report: Callable[[int, Figures], None]
) -> list[SpeedRatio]:
    """Let the contenders work in turn; `report` hears of each. Raises BioBenchError."""
    if find_spec("accelerate") is None:
        raise UsageError("the HF Trainer needs accelerate", hint="pip install accelerate")
    kind = load_task(work.task).spec.type
    if kind not in TYPES:
        raise UsageError(
            f"--task {work.task} is of type {kind}", hint=f"give a task of type {', '.join(TYPES)}"
        )
    every = list(contenders().items())
    results: dict[str, list[Figures]] = {name: [] for name in contenders()}
    for turn in range(rounds):
        start = turn % len(every)
        for name, flags in every[start:] + every[:start]:
            # an executor's process may start others, as loaders of data do; a pool's may not
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
                figures = executor.submit(measure_contender, name, flags, work).result()
            results[name].append(figures)
            report(turn + 1, figures)
    return [_ratio(name, theirs, results[OURS]) for name, theirs in results.items()]


def _ratio(name: str, theirs: Sequence[Figures], ours: Sequence[Figures]) -> SpeedRatio:
    def over(field: str) -> float:
        pairs = zip(theirs, ours, strict=True)
        return statistics.median(getattr(t, field) / getattr(o, field) for t, o in pairs)

    def by_seed(rounds: Sequence[Figures]) -> FloatArray:
        return np.mean([figures.scores for figures in rounds], axis=0)

    scores = by_seed(theirs)
    test = mean_test(scores - by_seed(ours), estimand=Estimand.NEW_SEEDS)
    return SpeedRatio(
        name,
        wall=over("wall_seconds"),
        cpu=over("cpu_seconds"),
        memory=over("peak_memory_bytes"),
        wall_seconds=statistics.median(figures.wall_seconds for figures in theirs),
        score=float(scores.mean()),
        difference=test.estimate,
        interval=None if test.interval is None else (test.interval.low, test.interval.high),
    )


def measure_contender(name: str, flags: dict[str, Any] | None, work: Work) -> Figures:
    """Figures of one contender in this process; flags None is our engine."""
    torch.set_num_threads(work.threads)
    quiet_libraries()
    reset_peak_memory(CPU)
    began, before = time.perf_counter(), os.times()
    scores = _scores(work, flags)
    wall, after = time.perf_counter() - began, os.times()
    # of the children too that have ended, such as those that load data
    return Figures(name, wall, sum(after[:4]) - sum(before[:4]), peak_memory_bytes(CPU), scores)


def _scores(work: Work, flags: dict[str, Any] | None) -> tuple[float, ...]:
    """Micro F1 of each seed. Both sides read, cut and label the texts by the same code, and follow
    one recipe.
    """
    task = load_task(work.task, [f"training.epochs={work.epochs}", *SAME])
    checkpoint = find_checkpoint(work.model, offline=work.offline)
    tokenizer = load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
    prepared = prepare(task.spec, load_data(task, work.data_dir, work.documents), tokenizer, size)
    if flags is not None:
        return tuple(
            train_peer(checkpoint, prepared, seed, CPU, flags)["micro_f1"] for seed in work.seeds
        )
    loaded, precision, scores = (
        load_encoder(checkpoint, CPU),
        resolve_precision("auto", CPU),
        [],
    )
    for seed in work.seeds:
        outcome = finetune(loaded, prepared, seed, precision, lambda *_: None)
        scores.append(
            prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"]
        )
    return tuple(scores)


def main(
    model: str,
    *,
    task: str = "demo_ner",
    data_dir: str | None = None,
    documents: int = 800,
    epochs: int = 1,
    seeds: str = "42",
    rounds: int = 3,
    threads: int | None = None,
    offline: bool = False,
) -> None:
    """Let the contenders fine-tune for so many rounds; print each result and then the ratios."""
    quiet_libraries()
    count = threads or torch.get_num_threads()
    work = Work(model, task, data_dir, documents, epochs, tuple(parse_seeds(seeds)), count, offline)

    def report(turn: int, figures: Figures) -> None:
        typer.echo(f"round {turn}: {asdict(figures)}", err=True)

    typer.echo(f"load of the machine at the start: {machine_load()}, {count} threads", err=True)
    ratios = compare_speed(work, rounds, report=report)
    print_json([asdict(ratio) for ratio in sorted(ratios, key=lambda ratio: ratio.wall)])


if __name__ == "__main__":
    from tests.benchmarks import (
        speed_against,
    )  # what other processes start has a module that they find

    typer.run(speed_against.main)
