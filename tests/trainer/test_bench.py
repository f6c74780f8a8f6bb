"""The speed of a machine, measured through the real loop."""

from __future__ import annotations

import pytest
import torch

from trainer import api
from trainer.cost import bench as benchmarks


def test_speed_and_parts_of_each_phase(small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "_SIDE", {"cpu": 128})
    speed = api.bench("toy_detour", overrides=small, steps=4)
    assert [p.name for p in speed.phases] == ["detour", "decay"]
    plan = api.plan("toy_detour", overrides=small)
    for phase, planned in zip(speed.phases, plan.phases, strict=True):
        assert phase.tokens_per_second > 0
        assert phase.utilisation == pytest.approx(phase.tokens_per_second * planned.flops_per_token / speed.peak_flops)
        assert sum(phase.parts.values()) == pytest.approx(1.0)
        assert len(phase.parts) == 5
        assert min(phase.parts.values()) > 0, "every part of a step was seen"
        assert list(phase.parts.values()) == sorted(phase.parts.values(), reverse=True)
    assert (speed.device, speed.precision) == ("cpu", "fp32")
    assert "toy_detour on cpu (fp32, peak" in speed.lines()[0]
    assert "tokens/s" in speed.lines()[1]


def test_the_matrix_rate_is_that_of_the_product() -> None:
    rate = benchmarks.matrix_rate(torch.device("cpu"), torch.float32, side=64, rounds=3)
    assert 1e6 < rate < 1e14
