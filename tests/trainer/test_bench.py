"""The speed of a machine, measured through the real loop."""

from __future__ import annotations

import pytest

from trainer import api


def test_speed_and_parts_of_each_phase(small: list[str]) -> None:
    speed = api.bench("toy_detour", overrides=small, steps=4)
    assert [(p.name, p.objective) for p in speed.phases] == [("detour", "clm"), ("decay", "mlm")]
    for phase in speed.phases:
        assert phase.tokens_per_second > 0
        assert phase.utilisation is None, "no data sheet of a CPU"
        assert sum(phase.parts.values()) == pytest.approx(1.0)
        assert len(phase.parts) == 5
        assert min(phase.parts.values()) > 0, "every part of a step was seen"
        assert list(phase.parts.values()) == sorted(phase.parts.values(), reverse=True)
    assert speed.lines()[0] == "toy_detour on cpu"
    assert "tokens/s; " in speed.lines()[1]
