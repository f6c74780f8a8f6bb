"""Checkpoints that do not belong together: one clear line and a hint from the commands, and nothing written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cli_make import Said, call
from tests.helpers.trainer_make import write

OTHERS = {
    "depth": ({"num_hidden_layers": 3}, "has 4 layers, ", "num_hidden_layers is 4 in "),
    "width": ({"hidden_size": 16}, "has 32 dimensions, ", "hidden_size is 32 in "),
    "tokenizer": ({"vocabulary": 420}, "the tokenizers of ", "the checkpoints do not fit: "),
}
TEXTS = ("--texts", "embedded", "--n", "8", "--max-length", "32")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One checkpoint, and one other in each respect."""
    root = tmp_path_factory.mktemp("models")
    return {"a": write(root / "a", seed=5)} | {
        name: write(root / name, seed=5, **changes) for name, (changes, *_) in OTHERS.items()
    }


@pytest.fixture
def analyze(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Said]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, "analyze", *map(str, arguments))


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoints_that_do_not_fit_are_refused_and_nothing_is_written(
    other: str, models: dict[str, Path], analyze: Callable[..., Said], tmp_path: Path
) -> None:
    a, b = models["a"], models[other]
    line = analyze("cka", a, b, *TEXTS).refusal()
    assert OTHERS[other][1] in line
    assert str(b) in line
    assert OTHERS[other][1] in analyze("cka", a, a, "--noise", a, b, *TEXTS).refusal()
    assert OTHERS[other][2] in analyze("transplant", a, b, "--layers", "0", "--out", tmp_path / "hybrid").refusal()
    assert not list(tmp_path.iterdir())


def test_a_run_s_folder_is_answered_with_its_model(
    models: dict[str, Path], analyze: Callable[..., Said], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(models["a"], run / "model")
    for command in (("cka", *TEXTS), ("transplant", "--layers", "0", "--out", tmp_path / "out")):
        assert f"give {run / 'model'}" in analyze(command[0], models["a"], run, *command[1:]).err
