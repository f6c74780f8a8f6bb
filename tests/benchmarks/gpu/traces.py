"""Profiler traces of a fine-tuning and a pretraining step, to be opened in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from biobench.finetune.engine import load_encoder
from tests.benchmarks.gpu.clock import Clock, Train
from tests.benchmarks.gpu.fine_tuning import product
from tests.benchmarks.gpu.material import BASE, checkpoint
from tests.benchmarks.gpu.one_seed import sentences
from tests.benchmarks.gpu.pretraining import steps_by
from tests.benchmarks.gpu.setting import Measurement, Setting

LARGEST_MIB = 8.0
"""Of a trace; both together stay below 16 MB."""


def measurements(setting: Setting) -> Iterator[Measurement]:
    """A file each."""
    device = torch.device(setting.device)
    span = setting.pick((10, 12), (2, 3))

    def one_seed() -> dict[str, Any]:
        made_for = checkpoint(setting, BASE)
        prepared, loaded = sentences(setting, made_for), load_encoder(made_for, device)

        def train(clock: Clock) -> None:
            product(loaded, prepared, clock)

        return traced(train, device, span, setting.out / "one-seed.json.gz")

    yield "one-seed", one_seed

    def pretraining() -> dict[str, Any]:
        train, *_ = steps_by(setting, BASE, "clm")
        shorter = setting.pick((8, 9), (2, 3))
        return traced(train, device, shorter, setting.out / "pretrain.json.gz")

    yield "pretrain", pretraining


def traced(train: Train, device: torch.device, span: tuple[int, int], file: Path) -> dict[str, Any]:
    """Train once to compile, then write the trace of the steps between the two of `span`."""
    train(Clock(device))
    clock = Clock(device, span)
    train(clock)
    assert clock.profiler is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    clock.profiler.export_chrome_trace(str(file))
    mib = file.stat().st_size / 2**20
    if mib > LARGEST_MIB:
        file.unlink()
    return {"file": file.name, "mib": round(mib, 2), "sound": mib <= LARGEST_MIB}
