"""A whole fine-tuning of several seeds on a task of NCBI Disease's size: ours and the library's."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch

from biobench.finetune.engine import load_encoder
from biobench.finetune.prepare import Prepared
from biobench.models.loading import Checkpoint
from tests.benchmarks.gpu.clock import Clock, seconds_of
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
    """Ours, then the library's Trainer with the same epochs, batches and choice of weights."""
    made_for = checkpoint(setting, BASE, num_hidden_layers=setting.pick(12, 2))
    prepared, scores = task(setting, made_for), dict[str, list[float]]()
    device, seeds = torch.device(setting.device), range(1, setting.pick(5, 2) + 1)
    loaded = load_encoder(made_for, device)

    def ours(seed: int) -> float:
        outcome = product(loaded, prepared, Clock(device), seed)
        return prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"]

    def library(seed: int) -> float:
        return train_peer(made_for, prepared, seed, device, FLAGS)["micro_f1"]

    yield "ours", lambda: timed(ours, seeds, device, scores.setdefault("ours", []))
    yield "HF compiled", lambda: timed(library, seeds, device, scores.setdefault("HF", []))
    yield "ours minus HF, paired by seed", lambda: difference(scores["ours"], scores["HF"])


def task(setting: Setting, made_for: Checkpoint) -> Prepared:
    """Sentences of the task's lengths and number, two epochs."""
    sizes = {split: setting.pick(count, 32) for split, count in SIZES.items()}
    lengths = {
        split: drawn_lengths("ncbi_disease", count, seed=len(split))
        for split, count in sizes.items()
    }
    return generated_task(
        made_for,
        "ncbi_disease_single",
        lengths,
        f"training.epochs={setting.pick(2, 1)}",
        "training.patience=",
    )


def timed(
    train: Callable[[int], float], seeds: range, device: torch.device, scores: list[float]
) -> dict[str, Any]:
    """Wall seconds of all seeds; without compilation: as many times the median of the later ones.

    scores: micro F1 of each seed is added.
    """
    seconds = [
        seconds_of(lambda s=seed: scores.append(train(s)), device)
        for seed in seeds
    ]
    later = statistics.median(seconds[1:])
    return {
        "seconds": round(sum(seconds), 1),
        "seconds_without_compilation": round(later * len(seconds), 1),
        "first_seed": round(seconds[0], 1),
        "micro_f1": [round(score, 4) for score in scores],
    }


def difference(ours: list[float], library: list[float]) -> dict[str, Any]:
    """Mean difference of micro F1 and the smallest and largest of a seed."""
    differences = [a - b for a, b in zip(ours, library, strict=True)]
    low, high = min(differences), max(differences)
    return {
        "mean": round(statistics.fmean(differences), 4),
        "range": [round(low, 4), round(high, 4)],
    }
