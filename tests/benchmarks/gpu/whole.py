"""A whole fine-tuning of several seeds on a task of NCBI Disease's size: ours and the library's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import torch

from biobench.finetune.engine import load_encoder
from tests.benchmarks.gpu.clock import Clock, compile_seconds
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
RECIPE = ("training.epochs=1", "training.patience=", "training.learning_rate=3e-4")
"""One epoch, at a rate for random weights."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """A seed by both a row, so that a step over its limit leaves pairs."""
    device = torch.device(setting.device)
    made_for = checkpoint(setting, BASE, num_hidden_layers=setting.pick(12, 2))
    lengths = {
        split: drawn_lengths("ncbi_disease", setting.pick(count, 32), seed=len(split))
        for split, count in SIZES.items()
    }
    prepared = generated_task(made_for, "ncbi_disease_single", lengths, *RECIPE)
    loaded = load_encoder(made_for, device)

    def ours(seed: int) -> float:
        outcome = product(loaded, prepared, Clock(device), seed)
        return prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"]

    def library(seed: int) -> float:
        return train_peer(made_for, prepared, seed, device, FLAGS)["micro_f1"]

    def pair(seed: int) -> dict[str, float]:
        row = {**timed("ours", ours, seed), **timed("hf_compiled", library, seed)}
        return {**row, "f1_difference": row["ours_f1"] - row["hf_compiled_f1"]}

    for seed in range(1, setting.pick(5, 1) + 1):
        yield f"seed {seed}", partial(pair, seed)


def timed(side: str, train: Callable[[int], float], seed: int) -> dict[str, float]:
    """Wall seconds of a seed, with and without compilation, and its micro F1."""
    began, before = time.perf_counter(), compile_seconds()
    score = train(seed)  # the host has its predictions: nothing is left to wait for
    seconds = time.perf_counter() - began
    compiling = compile_seconds() - before
    figures = {"s": seconds, "s_without_compilation": seconds - compiling, "f1": score}
    return {f"{side}_{name}": round(value, 4) for name, value in figures.items()}
