"""A run whose phases cannot be adopted says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import StoreError, UsageError
from trainer import api
from trainer.train.run_folder import read_recipe


def train(out: Path, overrides: list[str]) -> None:
    api.pretrain("toy_detour", out=out, overrides=overrides, progress="none")


@pytest.mark.parametrize(
    ("keep", "what", "hint"),
    [
        ("false", r"did not keep its state at the end of phase 'detour' \(checkpoints.keep_phases is false\)", "train"),
        ("true", "has no state at the end of phase 'detour'", "finish that run with --resume, or restore"),
    ],
)
def test_a_phase_end_that_is_not_there(keep: str, what: str, hint: str, small: list[str], tmp_path: Path) -> None:
    donor = tmp_path / "donor"
    train(donor, [*small, f"checkpoints.keep_phases={keep}"])
    end = donor / "checkpoints" / "end-1-detour"
    if end.is_dir():
        end.rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=what) as caught:
        train(tmp_path / "branch", [*small, f"reuse={{run: {donor}, through: detour}}"])
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "not the folder of a run"),
        ("{", "the run's recipe cannot be taken up: the file: Invalid JSON"),
        ("{}", "the run's recipe cannot be taken up: the file: 'name' is missing"),
        ('{"name": "a", "batch": {"sequences": 0}}', "the run's recipe cannot be taken up: "),
    ],
)
def test_a_recipe_that_cannot_be_taken_up_is_one_line(content: str | None, what: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "recipe.json").write_text(content)
    with pytest.raises(StoreError) as caught:
        read_recipe(tmp_path)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "recipe.json") in str(caught.value)
