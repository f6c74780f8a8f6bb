"""JSON Schema of recipes as they are written: whole ones, and ones that extend another.

A recipe that extends another may leave out any field of a group, for the other's is laid below it; lists
replace the other's, so their items are whole (`trainer.recipe.library`).
"""

from __future__ import annotations

from typing import Any

from biobench.schema.strict import json_schema
from trainer.recipe.spec import Recipe

_PLACE = "#/$defs/"


def recipe_schema() -> dict[str, Any]:
    """The schema (draft 2020-12). Fields are required where the recipe says no ``extends``."""
    whole = json_schema(Recipe)
    parts: dict[str, Any] = {}
    schema = _part(whole, whole["$defs"], parts)
    schema["properties"]["extends"] = {
        "type": "string",
        "description": "Name of a shipped recipe, or path of one, whose fields stand below this one's.",
    }
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {"required": whole["required"], "properties": whole["properties"]}
    schema["$defs"] = {**whole["$defs"], **parts}
    return schema


def _part(node: dict[str, Any], whole: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """`node` with nothing required in it, nor in the groups that it refers to; those are added to `parts`."""
    partial = {key: value for key, value in node.items() if key != "required"}
    if "$ref" in partial:
        name = str(partial["$ref"]).removeprefix(_PLACE)
        partial["$ref"] = f"{_PLACE}{name}Part"
        if f"{name}Part" not in parts:
            parts[f"{name}Part"] = {}
            parts[f"{name}Part"] = _part(whole[name], whole, parts)
    if "properties" in partial:
        partial["properties"] = {key: _part(value, whole, parts) for key, value in partial["properties"].items()}
    if "anyOf" in partial:
        partial["anyOf"] = [_part(value, whole, parts) for value in partial["anyOf"]]
    return partial
