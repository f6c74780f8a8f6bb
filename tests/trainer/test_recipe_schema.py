"""The JSON Schema that editors complete recipes by takes what the trainer takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from biobench.schema import yaml12
from biobench.schema.strict import plain
from tests.helpers.trainer_make import GOOD
from trainer.recipe.library import recipe_schema, shipped

EXTENDING = "extends: toy_detour\nname: mine\nbatch: {micro: 2}\noptimizer: {beta2: 0.95}\n"


def complaints(text: str) -> list[str]:
    schema: dict[str, Any] = recipe_schema()
    Draft202012Validator.check_schema(schema)
    found = Draft202012Validator(schema).iter_errors(plain(yaml12.parse(text).data))
    return [f"{error.json_path}: {error.message}" for error in found]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_recipe_fits_the_schema(name: str) -> None:
    assert complaints(Path(shipped()[name]).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "what"),
    [
        (GOOD, "batch:", "bacth:", "bacth"),
        (GOOD, "sequences: 8", "sequenzes: 8", "sequenzes"),
        (GOOD, "tokens: 10k", "tokens: 10 kilo", "10 kilo"),
        (GOOD, "tokens: 10k", "tokens: 0", "0 is less than the minimum"),
        (GOOD, "tokens: 10k", "schedule: {warmup: forty}, tokens: 10k", "forty"),
        (EXTENDING, "micro", "mikro", "mikro"),
        (EXTENDING, "extends: toy_detour", "extends: [toy_detour]", "is not of type 'string'"),
        (EXTENDING, "batch: {micro: 2}", "arms: {low: {phases: {a: {tokns: 2}}}}", "tokns"),
    ],
)
def test_mistakes_do_not(text: str, old: str, new: str, what: str) -> None:
    assert old in text
    assert any(what in complaint for complaint in complaints(text.replace(old, new)))
