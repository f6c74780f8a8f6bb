"""A run whose phases cannot be adopted says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import StoreError, UsageError
from trainer import api
from trainer.train.run_folder import read_recipe


def train(out: Path, overrides: list[str]) -> None:
    api.pretrain("toy_detour", out=out, overrides=overrides, progress="none")


def test_a_phase_end_that_is_not_there(small: list[str], tmp_path: Path) -> None:
    donor = tmp_path / "donor"
    train(donor, [*small, "checkpoints.keep_phases=false"])
    with pytest.raises(UsageError, match="has no state at the end of phase 'detour'") as caught:
        train(tmp_path / "branch", [*small, f"reuse={{run: {donor}, through: detour}}"])
    assert "checkpoints.keep_phases=true" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "what"), [(None, "No such file"), ("{", "cannot be read"), ("{}", "cannot be read")]
)
def test_a_recipe_that_cannot_be_taken_up_is_one_line(content: str | None, what: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "recipe.json").write_text(content)
    with pytest.raises(StoreError, match=what) as caught:
        read_recipe(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "recipe.json") in str(caught.value)
