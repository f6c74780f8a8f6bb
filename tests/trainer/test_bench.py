"""The speed of a machine, measured through the real loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.errors import BioBenchError
from trainer import api
from trainer.cost import bench as benchmarks
from trainer.cost.plan import UTILISATION
from trainer.cost.speed import MachineSpeed, read_speed, write_speed


@pytest.fixture(scope="module")
def measured(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[MachineSpeed, Path]:
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmarks, "_SIDE", {"cpu": 128})
        speed = api.bench("toy_detour", overrides=small, steps=4, trace=folder / "trace.json")
    write_speed(speed, folder / "speed.json")
    return speed, folder


def test_speed_and_parts_of_each_phase(measured: tuple[MachineSpeed, Path]) -> None:
    speed, _ = measured
    assert [p.name for p in speed.phases] == ["detour", "decay"]
    for phase in speed.phases:
        assert phase.tokens_per_second > 0
        assert phase.utilisation == pytest.approx(phase.tokens_per_second * phase.flops_per_token / speed.matrix_flops)
        assert sum(phase.parts.values()) == pytest.approx(1.0)
        assert min(phase.parts.values()) > 0, "every part of a step was seen"
    assert speed.device == "cpu"
    assert speed.precision == "fp32"


def test_the_trace_is_one_of_chrome(measured: tuple[MachineSpeed, Path]) -> None:
    _, folder = measured
    for phase in ("detour", "decay"):
        trace = json.loads((folder / f"trace-{phase}.json").read_text(encoding="utf-8"))
        names = {event.get("name") for event in trace["traceEvents"]}
        assert {"step: forward", "step: backward", "step: loss", "step: update", "step: data"} <= names


def test_the_plan_reckons_with_the_measurement(measured: tuple[MachineSpeed, Path], small: list[str]) -> None:
    speed, folder = measured
    assert read_speed(folder / "speed.json") == speed
    assumed = api.plan("toy_detour", overrides=small)
    planned = api.plan("toy_detour", overrides=small, speed=folder / "speed.json")
    assert assumed.utilisation == UTILISATION
    assert planned.utilisation == speed.utilisation()
    phase = planned.phases[0]
    assert phase.seconds == pytest.approx(phase.flops / (speed.matrix_flops * speed.utilisation()))
    assert "as measured" in planned.lines()[-1]
    assert "assumed" in assumed.lines()[-1]


def test_a_file_that_is_no_measurement_is_named(tmp_path: Path, small: list[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(BioBenchError, match="no measurement"):
        api.plan("toy_detour", overrides=small, speed=file)


def test_the_matrix_rate_is_that_of_the_product() -> None:
    rate = benchmarks.matrix_rate(torch.device("cpu"), torch.float32, side=64, rounds=3)
    assert 1e6 < rate < 1e14


def test_the_command_prints_and_writes(small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "_SIDE", {"cpu": 64})
    sets = [part for override in small for part in ("--set", override)]
    out = tmp_path / "speed.json"
    result = CliRunner().invoke(app, ["pretrain", "bench", "toy_detour", "--steps", "3", "--out", str(out), *sets])
    assert result.exit_code == 0, result.output
    assert "tokens/s" in result.output
    assert "backward" in result.output
    assert read_speed(out).recipe == "toy_detour"
