"""Pretraining of ModernBERT large as the recipes say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.benchmarks.gpu.material import LARGE
from tests.benchmarks.gpu.pretrain import measure_pretraining
from tests.benchmarks.gpu.setting import Measurement, Setting


def measurements(setting: Setting) -> Iterator[Measurement]:
    """Both objectives."""
    for objective in ("clm", "mlm"):
        yield objective, partial(measure_pretraining, setting, LARGE, objective)
