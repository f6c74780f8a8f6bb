"""A whole fine-tuning of several seeds on a task of NCBI Disease's size: ours and the library's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._dynamo.utils import calculate_time_spent

from biobench.finetune.engine import load_encoder
from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint
from tests.benchmarks.gpu.clock import Clock
from tests.benchmarks.gpu.fine_tuning import product
from tests.benchmarks.gpu.material import BASE, checkpoint, drawn_lengths, generated_task
from tests.benchmarks.gpu.setting import Measurement, Setting
from tests.benchmarks.hf_trainer import train_peer

FLAGS = {
    "bf16": True,
    "train_sampling_strategy": "group_by_length",
    "optim": "adamw_torch_fused",
    "attn_implementation": "sdpa",
    "torch_compile": True,
}
"""What the library's Trainer is given; its data loader has no processes, as texts are encoded."""
SIZES = {"train": 5424, "validation": 923, "test": 940}
"""Sentences of the task `ncbi_disease_single`."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Each seed by both in turn, so that a step over its limit leaves pairs; then what they say."""
    made_for = checkpoint(setting, BASE, num_hidden_layers=setting.pick(12, 2))
    prepared, device = task(setting, made_for), torch.device(setting.device)
    loaded = load_encoder(made_for, device)

    def ours(seed: int) -> float:
        outcome = product(loaded, prepared, Clock(device), seed)
        return prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"]

    def library(seed: int) -> float:
        return train_peer(made_for, prepared, seed, device, FLAGS)["micro_f1"]

    sides = {"ours": ours, "HF compiled": library}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for seed in range(1, setting.pick(5, 1) + 1):
        for name, train in sides.items():
            yield f"{name}, seed {seed}", lambda n=name, t=train, s=seed: timed(rows[n], t, s)
    for name in sides:
        yield f"{name}, all seeds", lambda n=name: summary(rows[n])
    yield "ours minus HF, paired by seed", lambda: difference(*rows.values())


def task(setting: Setting, made_for: Checkpoint) -> Prepared:
    """Sentences of the task's lengths and number, one epoch at a rate for random weights."""
    sizes = {split: setting.pick(count, 32) for split, count in SIZES.items()}
    lengths = {
        split: drawn_lengths("ncbi_disease", count, seed=len(split))
        for split, count in sizes.items()
    }
    recipe = ("training.epochs=1", "training.patience=", "training.learning_rate=3e-4")
    return generated_task(made_for, "ncbi_disease_single", lengths, *recipe)


def timed(
    rows: list[dict[str, float]], train: Callable[[int], float], seed: int
) -> dict[str, float]:
    """Wall seconds, those of compilation and micro F1 of a seed; they are added to `rows`."""
    began, before = time.perf_counter(), calculate_time_spent()["total_wall_time"]
    score = train(seed)  # the host has its predictions: nothing is left to wait for
    seconds, after = time.perf_counter() - began, calculate_time_spent()["total_wall_time"]
    row = {
        "seconds": round(seconds, 2),
        "compile_s": round(after - before, 2),
        "micro_f1": round(score, 4),
    }
    rows.append(row)
    return row


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Seconds of all seeds, with and without compilation, and their mean score."""
    seconds = sum(row["seconds"] for row in rows)
    compiling = sum(row["compile_s"] for row in rows)
    return {
        "seconds": round(seconds, 1),
        "seconds_without_compilation": round(seconds - compiling, 1),
        "micro_f1": round(statistics.fmean(row["micro_f1"] for row in rows), 4),
    }


def difference(ours: list[dict[str, float]], library: list[dict[str, float]]) -> dict[str, Any]:
    """Mean difference of micro F1, and the smallest and largest of a seed."""
    differences = [a["micro_f1"] - b["micro_f1"] for a, b in zip(ours, library, strict=True)]
    low, high = min(differences), max(differences)
    return {
        "mean": round(statistics.fmean(differences), 4),
        "range": [round(low, 4), round(high, 4)],
    }
