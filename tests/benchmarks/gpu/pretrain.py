"""Pretraining of ModernBERT base as the recipes say, then with one switch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch.nn.attention import SDPBackend

from tests.benchmarks.gpu.flex import flex_kernel
from tests.benchmarks.gpu.material import BASE
from tests.benchmarks.gpu.pretraining import measure_pretraining
from tests.benchmarks.gpu.setting import Measurement, Setting
from trainer.model import attention
from trainer.train.phase import PreparedPhase


def eager_loss(training: PreparedPhase) -> None:
    """Compute the loss without compiled kernels."""
    training.module.compiled_loss = False


@contextmanager
def full_attention_by(backend: SDPBackend) -> Iterator[None]:
    """Inside, this backend is the first that attention over all keys asks."""
    order = (backend, *(other for other in attention.ORDER if other != backend))
    with patch.object(attention, "ORDER", order):
        yield


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Both objectives as they are, then the switches on the causal one."""
    for objective in ("clm", "mlm"):
        yield objective, lambda o=objective: measure_pretraining(setting, BASE, o)

    def with_change() -> dict[str, Any]:
        return measure_pretraining(setting, BASE, "clm", change=eager_loss)

    yield "clm, loss eager", with_change

    def with_flash() -> dict[str, Any]:
        with full_attention_by(SDPBackend.FLASH_ATTENTION):
            return measure_pretraining(setting, BASE, "clm")

    yield "clm, flash before cuDNN", with_flash
    plain = "engine.compile=false"
    yield "clm, layers and loss plain", lambda: measure_pretraining(setting, BASE, "clm", plain)

    def with_flex() -> dict[str, Any]:
        with patch.object(attention, "KERNELS", (flex_kernel(),)):
            return measure_pretraining(setting, BASE, "clm", plain)

    if setting.device == "cuda":  # flex attention has no gradients on a CPU
        yield "clm, windows by flex, layers and loss plain", with_flex
    for micro in setting.pick((4, 2), (4,)):
        change = f"batch.micro={micro}"
        yield (
            f"clm, {micro} windows a forward pass",
            lambda c=change: measure_pretraining(setting, BASE, "clm", c),
        )
