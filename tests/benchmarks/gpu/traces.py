"""Profiler traces of a fine-tuning and a pretraining step, to be opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from biobench.finetune.engine import load_encoder
from tests.benchmarks.gpu.clock import Train, profiled
from tests.benchmarks.gpu.fine_tuning import product
from tests.benchmarks.gpu.material import BASE, checkpoint
from tests.benchmarks.gpu.one_seed import sentences
from tests.benchmarks.gpu.pretrain import steps_by
from tests.benchmarks.gpu.setting import Measurement, Setting

LARGEST_MIB = 8.0
"""Of a trace; both together stay below 16 MB."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """A file each."""

    def one_seed() -> dict[str, Any]:
        made_for = checkpoint(setting, BASE)
        prepared = sentences(setting, made_for, steps=12)
        loaded = load_encoder(made_for, torch.device(setting.device))
        return traced(setting, partial(product, loaded, prepared), "one-seed.json.gz")

    yield "one-seed", one_seed
    yield "pretrain", lambda: traced(setting, steps_by(setting, BASE, "clm")[0], "pretrain.json.gz")


def traced(setting: Setting, train: Train, name: str) -> dict[str, Any]:
    """Write the trace of a training's last steps."""
    file = setting.out / name
    profiled(train, torch.device(setting.device)).profiler.export_chrome_trace(str(file))
    mib = file.stat().st_size / 2**20
    if mib > LARGEST_MIB:
        file.unlink()
    return {"file": name, "mib": round(mib, 2), "sound": mib <= LARGEST_MIB}
