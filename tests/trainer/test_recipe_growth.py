"""Recipes gain fields; what was made from recipes without them keeps its hashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.recipe.library import load_recipe, shipped
from trainer.recipe.spec import Recipe
from trainer.train.run_folder import recipe_hash

GOLDEN: dict[str, str] = json.loads(Path(__file__).with_name("golden_recipe_hashes.json").read_text())


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_shipped_recipe_keeps_its_hash(name: str) -> None:
    assert name in shipped()
    assert recipe_hash(load_recipe(name)) == GOLDEN[name]


def test_later_fields_are_written_only_when_they_say_something() -> None:
    plain = load_recipe("toy_detour")
    assert "deterministic" not in plain.model_dump(mode="json")["engine"]
    chosen = load_recipe("toy_detour", ["engine.deterministic=true"])
    assert chosen.model_dump(mode="json")["engine"]["deterministic"] is True
    again = Recipe.model_validate_json(chosen.model_dump_json())
    assert again == chosen
    assert recipe_hash(again) == recipe_hash(plain), "the machine's business"
