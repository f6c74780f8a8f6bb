"""Whether a GPU computes what the host computes: states, gradients, losses, whole runs."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

import biobench
from biobench.finetune.engine import finetune, load_encoder
from tests.benchmarks.gpu import attention_errors
from tests.benchmarks.gpu.material import BASE, checkpoint, training_task
from tests.benchmarks.gpu.one_seed import sentences
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer import api
from trainer.train.progress import Tick

LARGEST_LOSS_ERROR = 1e-3
"""Between fp32 on a GPU and on the host, relative, after twenty steps."""
LARGEST_RESUMED_ERROR = 0.02
"""Between the last losses in bf16 of a run and of one that was resumed, relative."""
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
    """Whole runs, then losses, then attention by attention."""
    yield "a run from end to end, twice", partial(whole_run, setting)
    yield "pretraining, stopped and resumed", partial(resumed_pretraining, setting)
    yield "twenty losses in fp32 against the host", partial(loss_errors, setting)
    yield "two runs in bf16", partial(repeated_run, setting)
    yield from attention_errors.measurements(setting)


def whole_run(setting: Setting) -> dict[str, Any]:
    """`biobench.run` on a demo task; the second time it finds the run."""
    folder = checkpoint(setting, BASE, num_hidden_layers=2).folder
    options: dict[str, Any] = {
        "tasks": ["demo_ner"],
        "seeds": [1],
        "overrides": ["training.epochs=1"],
        "limit": 32,
        "device": setting.device,
        "results_dir": tempfile.mkdtemp(dir=setting.work),
    }
    statuses = [biobench.run(str(folder), **options)[0].status for _ in range(2)]
    return {"statuses": statuses, "sound": statuses == ["done", "skipped"]}


def resumed_pretraining(setting: Setting) -> dict[str, Any]:
    """The toy recipe in one go, and stopped by a signal and resumed; their last losses."""
    folder = Path(tempfile.mkdtemp(dir=setting.work))
    overrides = [*TOY, f"engine.device={setting.device}"]
    train = partial(api.pretrain, "toy_detour", overrides=overrides)

    def stop(tick: Tick) -> None:
        if tick.done == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = train(out=folder / "whole", progress="none")
    stopped = train(out=folder / "parts", progress=stop)
    resumed = train(out=folder / "parts", progress="none", resume=True)
    statuses = [run.status for run in (whole, stopped, resumed)]
    losses = [run.ledger.phases[-1].train_loss for run in (whole, resumed) if run.ledger]
    sound = statuses == ["done", "preempted", "done"]
    sound = sound and max(losses) / min(losses) - 1 < LARGEST_RESUMED_ERROR
    return {"statuses": statuses, "last_losses": losses, "sound": sound}


def loss_errors(setting: Setting) -> dict[str, Any]:
    """Largest relative difference of a training loss, over twenty steps without dropout."""
    made_for = checkpoint(setting, BASE, num_hidden_layers=2)
    prepared = training_task(
        made_for,
        "ncbi_disease_single",
        [24] * 8 * setting.pick(20, 3),
        8,
        "training.evaluate_every=1",
        "head.dropout=0",
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
    prepared = sentences(setting, made_for)
    loaded = load_encoder(made_for, torch.device(setting.device))
    once, again = (finetune(loaded, prepared, 1, "bf16", lambda *_: None) for _ in range(2))
    return {
        "same_predictions": once.predictions == again.predictions,
        "same_losses": once.record.curve == again.record.curve,
        "paths": list(loaded.encoder.paths),
    }
