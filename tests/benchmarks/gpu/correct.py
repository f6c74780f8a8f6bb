"""Whether a GPU computes what the host computes: states, gradients, losses, whole runs."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import torch

import biobench
from biobench.finetune.engine import finetune, load_encoder
from tests.benchmarks.gpu.attention_errors import (
    dropout_error,
    fine_tuning_errors,
    pretraining_measurements,
)
from tests.benchmarks.gpu.flex import flex_kernel
from tests.benchmarks.gpu.material import BASE, BERT, checkpoint, generated_task
from tests.benchmarks.gpu.one_seed import sentences
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer import api
from trainer.model import attention
from trainer.train.progress import Tick

LARGEST_LOSS_ERROR = 1e-3
"""Between fp32 on a GPU and on the host, relative, after twenty steps."""
TOY = (
    "base.config.num_hidden_layers=3",
    "base.tokenizer.vocabulary=500",
    "corpus.sources.0.embedded.documents=150",
    "corpus.sequence_length=64",
    "phases.0.tokens=6k",
    "phases.1.tokens=4k",
    "phases.0.schedule.warmup=1000",
    "logging.every=1",
    "engine.compile=false",
)
"""What makes of the toy recipe one of twenty steps."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Attention by attention, then losses, then whole runs; flex attention compiles longest."""
    kernels = attention.KERNELS
    for name in (BASE, BERT):
        for kernel in (*kernels, None):
            label = kernel.name if kernel else "padded batch"
            yield (
                f"fine-tuning {name}, {label}",
                lambda n=name, k=kernel: fine_tuning_errors(setting, n, k),
            )
        for direction in ("clm", "mlm"):
            yield from pretraining_measurements(setting, name, direction, kernels)
    for kernel in (*(k for k in kernels if k.drops), None):
        label = kernel.name if kernel else "padded batch"
        yield f"dropout, {label}", lambda k=kernel: dropout_error(setting, k)
    yield "twenty losses in fp32 against the host", lambda: loss_errors(setting)
    yield "two runs in bf16", lambda: repeated_run(setting)
    yield "a run from end to end, twice", lambda: whole_run(setting)
    yield "pretraining, stopped and resumed", lambda: resumed_pretraining(setting)
    if setting.device == "cuda":  # flex attention has no gradients on a CPU
        for name in (BASE, BERT):
            yield (
                f"fine-tuning {name}, flex",
                lambda n=name: fine_tuning_errors(setting, n, flex_kernel()),
            )


def loss_errors(setting: Setting) -> dict[str, Any]:
    """Largest relative difference of a training loss, over twenty steps without dropout."""
    steps = setting.pick(20, 3)
    made_for = checkpoint(setting, BASE, num_hidden_layers=2)
    lengths = {"train": [24] * 8 * steps, "validation": [24] * 8, "test": [24] * 8}
    settings = (f"training.max_steps={steps}", "training.evaluate_every=1", "head.dropout=0")
    prepared = generated_task(
        made_for, "ncbi_disease_single", lengths, "training.epochs=", *settings
    )
    curves = []
    for device in (setting.device, "cpu"):
        loaded = load_encoder(made_for, torch.device(device))
        outcome = finetune(loaded, prepared, 1, "fp32", lambda *_: None)
        curves.append([point.train_loss for point in outcome.record.curve])
    worst = max(abs(here - host) / host for here, host in zip(*curves, strict=True))
    return {"largest": float(f"{worst:.3g}"), "sound": worst < LARGEST_LOSS_ERROR}


def repeated_run(setting: Setting) -> dict[str, Any]:
    """Whether a seed gives the same results twice, which torch's kernel does not promise."""
    made_for = checkpoint(setting, BASE, num_hidden_layers=2)
    prepared, outcomes = sentences(setting, made_for), []
    loaded = load_encoder(made_for, torch.device(setting.device))
    for _ in range(2):
        outcomes.append(finetune(loaded, prepared, 1, "bf16", lambda *_: None))
    first, second = outcomes
    return {
        "same_predictions": first.predictions == second.predictions,
        "same_losses": first.record.curve == second.record.curve,
        "paths": list(loaded.encoder.paths),
    }


def whole_run(setting: Setting) -> dict[str, Any]:
    """`biobench.run` on a demo task; the second time it finds the run."""
    folder = checkpoint(setting, BASE, num_hidden_layers=2).folder
    results = setting.work / "results"
    shutil.rmtree(results, ignore_errors=True)
    options: dict[str, Any] = {
        "tasks": ["demo_ner"],
        "seeds": [1],
        "overrides": ["training.epochs=1"],
        "limit": 32,
        "device": setting.device,
        "results_dir": results,
    }
    statuses = [biobench.run(str(folder), **options)[0].status for _ in range(2)]
    return {"statuses": statuses, "sound": statuses == ["done", "skipped"]}


def resumed_pretraining(setting: Setting) -> dict[str, Any]:
    """The toy recipe in one go, and stopped by a signal and resumed; their last losses."""
    folder = setting.work / "toy"
    shutil.rmtree(folder, ignore_errors=True)
    overrides = [*TOY, f"engine.device={setting.device}"]

    def stop(tick: Tick) -> None:
        if tick.done == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = api.pretrain("toy_detour", out=folder / "whole", overrides=overrides, progress="none")
    parts: dict[str, Any] = {"out": folder / "parts", "overrides": overrides}
    stopped = api.pretrain("toy_detour", progress=stop, **parts)
    resumed = api.pretrain("toy_detour", progress="none", resume=True, **parts)
    statuses = [whole.status, stopped.status, resumed.status]
    losses = [run.ledger.phases[-1].train_loss for run in (whole, resumed) if run.ledger]
    return {
        "statuses": statuses,
        "last_losses": losses,
        "sound": statuses == ["done", "preempted", "done"],
    }
