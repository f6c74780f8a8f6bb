"""The CKA report on tiny checkpoints: sampling, states, refusals, table, JSON and figure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from biobench.cli.main import app
from tests.helpers.ledger_make import ledger
from tests.helpers.trainer_make import TEXTS, write
from trainer.analysis.cka import compare, groups
from trainer.analysis.states import draw


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A start, a twin near to it and one further away."""
    root = tmp_path_factory.mktemp("models")
    return {name: write(root / name, seed=5, moved=moved) for name, moved in (("a", 0.0), ("near", 0.05), ("far", 0.5))}


def test_report_with_noise(models: dict[str, Path]) -> None:
    a, near, far = models["a"], models["near"], models["far"]
    drawn = draw(TEXTS, 40, [42, 43])
    assert len(drawn.texts) > 40
    report = compare(a, far, lambda: drawn, noise=(a, near), max_length=64)
    assert [x.where for x in report.lines if x.estimator == "biased"] == [*"0123", "low", "mid", "late", "all"]
    for line in report.lines:
        assert line.noise is not None
        assert line.ratio is not None
        assert line.ratio.value > 1
        assert line.divergence.low <= line.divergence.value <= line.divergence.high
        assert set(line.seeds) == {42, 43}
    every = report.of("all", "debiased")
    layers = [report.of(str(n), "debiased").divergence.value for n in range(4)]
    assert every.divergence.value == pytest.approx(np.mean(layers))
    assert every.ratio is not None
    assert every.noise is not None
    assert every.ratio.value == pytest.approx(every.divergence.value / every.noise.value)
    alone = compare(a, near, lambda: drawn, max_length=64).of("all", "debiased")
    assert alone.divergence.value == pytest.approx(every.noise.value)
    assert alone.noise is None
    assert abs(compare(a, a, lambda: drawn, max_length=64).of("all", "biased").divergence.value) < 1e-12


def test_a_noise_pair_that_its_ledgers_deny_is_named(models: dict[str, Path], tmp_path: Path) -> None:
    def run(name: str, *, training: int, steps: int = 1) -> Path:
        folder = shutil.copytree(models["a"], tmp_path / name)
        seeds = {"data": 1, "training": training, "init": 1}
        held = ledger("a").model_copy(update={"seeds": seeds, "steps": steps})
        (folder / "ledger.json").write_text(held.model_dump_json(), encoding="utf-8")
        return folder

    first, seed = run("first", training=17), run("seed", training=42)
    same, longer = run("same", training=17), run("longer", training=42, steps=2)
    drawn = draw(TEXTS, 20, [42])

    def notes(other: Path) -> str:
        return " ".join(compare(models["a"], models["near"], lambda: drawn, noise=(first, other), max_length=32).notes)

    assert "noise pair" not in notes(seed)
    assert "no noise pair" in notes(same)
    assert "no noise pair: not matched: total steps" in notes(longer)


def test_groups_are_the_papers() -> None:
    assert groups(22) == {"low": tuple(range(8)), "mid": tuple(range(8, 15)), "late": tuple(range(15, 22))}


def test_the_command_prints_json_and_a_table(models: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, near, far = (str(models[name]) for name in ("a", "near", "far"))
    options = f"--noise {a} {near} --texts embedded --n 12 --seeds 42,43 --max-length 48"
    arguments = ["analyze", "cka", a, far, *options.split()]
    app([*arguments, "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["per_seed"] == 12
    assert len(found["lines"]) == 16
    app(arguments, standalone_mode=False)
    printed = capsys.readouterr().out
    assert "noise (debiased)" in printed
    assert "95% jackknife intervals over texts" in printed
