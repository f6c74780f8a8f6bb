"""Finding and reading recipes: a path, or the name of one that comes with the package.

A recipe may say ``extends: NAME_OR_PATH``: its fields are laid over the other's, groups field by
field, lists whole; phases may also be a group of phase names, each laid over the phase of that
name. The other must be valid by itself, so a complaint always concerns the file that is read.
`arms` are named sets of fields that are laid over a recipe in the same way when asked for; an arm
may extend another arm, and several are laid in turn.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from biobench.errors import SpecError, UsageError
from biobench.schema import yaml12
from biobench.schema.source import below
from biobench.schema.strict import FieldError, apply_overrides, json_schema, suggest, validate
from biobench.schema.yaml12 import LocatedYaml
from trainer.recipe.spec import Recipe

_DEPTH = 5


def shipped() -> dict[str, Path]:
    """Name to file of every recipe in the package."""
    folder = Path(str(files("trainer") / "recipes"))
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def arms_of(name_or_path: str | Path) -> list[str]:
    """The arms that a recipe declares. Raises SpecError, UsageError."""
    path, _ = find(name_or_path)
    return list(_arms(yaml12.parse_file(path)))


def find(name_or_path: str | Path) -> tuple[Path, list[str]]:
    """The file of a recipe, and the arms that its name says: fr_base_twin_decay_20 is fr_base with
    twin and decay_20.

    Raises UsageError with the closest shipped name.
    """
    path = Path(name_or_path)
    if os.path.isfile(path):  # False for what is too long to be a name
        return path, []
    recipes = shipped()
    name = str(name_or_path).removesuffix(".yaml")
    if name in recipes:
        return recipes[name], []
    recipes["toy"] = recipes["toy_detour"]
    for stem, file in recipes.items():
        if not name.startswith(f"{stem}_"):
            continue
        arms = _arms(yaml12.parse_file(file))
        longest_first = sorted(arms, key=len, reverse=True)
        arm = f"_({'|'.join(map(re.escape, longest_first))})"
        if longest_first and re.fullmatch(f"{stem}({arm})+", name):
            return file, re.findall(f"{arm}(?=_|$)", name.removeprefix(stem))
    nearest = suggest(name, list(shipped()))
    raise UsageError(f"no recipe '{name_or_path}'", hint=f"{nearest}; or give a file's path")


def load_recipe(
    recipe: str | Path | Recipe, overrides: Sequence[str] = (), arms: Sequence[str] = ()
) -> Recipe:
    """Read a recipe, with arms of it, then ``KEY=VALUE`` overrides by the same YAML rules.

    Its name is the file's with the arms'. A recipe that is read already is given back. Raises
    SpecError, UsageError.
    """
    if isinstance(recipe, Recipe):
        assert not (*overrides, *arms)
        return recipe
    located = _read(recipe, _DEPTH, arms)
    read = _valid(located)
    if not overrides:
        return read
    try:
        return _valid(apply_overrides(located, overrides))
    except SpecError as error:
        complaint = f"--set {' --set '.join(overrides)}: {error.what}"
        raise SpecError(complaint, hint=error.hint) from None


def _valid(located: LocatedYaml) -> Recipe:
    try:
        return validate(located, Recipe)
    except SpecError as error:
        error.hint = error.hint.replace("biobench tasks schema", "biobench pretrain schema")
        raise


def _read(name_or_path: str | Path, depth: int, wanted: Sequence[str] = ()) -> LocatedYaml:
    """A recipe's fields with those of the recipe that it extends below them and its arms above
    them.
    """
    path, named_arms = find(name_or_path)
    located = yaml12.parse_file(path)
    declared = _arms(located)
    if not isinstance(located.data, dict):
        return located
    data = {key: value for key, value in located.data.items() if key not in ("extends", "arms")}
    if "extends" in located.data:
        data = _lay(_extended(located, path, depth), data, located)
    for arm in (*named_arms, *wanted):
        if arm not in declared:
            raise UsageError(
                f"recipe '{name_or_path}' has no arm '{arm}'",
                hint=suggest(arm, list(declared)) if declared else "it declares none: drop --arm",
            )
        _valid(replace(located, data=data))
        data = _with_arm({**data, "name": f"{data['name']}_{arm}"}, declared, arm, located)
        try:
            _valid(replace(located, data=data))
        except SpecError as error:
            raise _fault(located, f"arm '{arm}': {error.what}", error.hint, "arms", arm) from None
    if named_arms:
        data["name"] = str(name_or_path).removesuffix(".yaml")
    return replace(located, data=data)


def _extended(located: LocatedYaml, path: Path, depth: int) -> dict[str, Any]:
    """The fields of the valid recipe that the file `path` extends: one beside it, or by name.
    Raises SpecError.
    """
    name = located.data["extends"]
    try:
        if not isinstance(name, str) or depth == 0:
            message = "extends must name one recipe, and not in a circle"
            raise UsageError(message, hint="write `extends: NAME`")
        below(name)
        sibling = path.parent / f"{name.removesuffix('.yaml')}.yaml"
        parent = _read(sibling if os.path.isfile(sibling) else name, depth - 1)
    except FieldError as error:
        raise _fault(located, f"extends: {error.what}", error.hint, "extends") from None
    except UsageError as error:
        raise _fault(located, error.what, error.hint, "extends") from None
    _valid(parent)
    fields: dict[str, Any] = parent.data
    return fields


def _fault(located: LocatedYaml, complaint: str, hint: str, *keys: str) -> SpecError:
    return SpecError(complaint, hint=hint, file=located.file, line=located.line_of(keys))


def _arms(located: LocatedYaml) -> dict[str, Any]:
    """The arms that a file declares. Raises SpecError where they are not groups of fields."""
    declared = located.data.get("arms", {}) if isinstance(located.data, dict) else {}
    groups = declared if isinstance(declared, dict) else {"": declared}
    for name, fields in groups.items():
        if not isinstance(fields, dict):
            raise _fault(
                located,
                "arms must be named groups of fields",
                "write `arms: {freeze_low: {phases: {detour: {freeze: {layers: 0-7}}}}}`",
                "arms",
                name,
            )
    return groups


def _with_arm(
    data: Any, declared: dict[str, Any], arm: str, located: LocatedYaml, depth: int = _DEPTH
) -> Any:
    """A recipe's fields with an arm's over them, and below these those of the arm that it
    extends."""
    fields = dict(declared[arm])
    if "extends" in fields:
        lower_arm = fields.pop("extends")
        if lower_arm not in declared or depth == 0:
            raise _fault(
                located,
                f"arm '{arm}' must extend another arm of this recipe, and not in a circle",
                f"name one of: {', '.join(name for name in declared if name != arm)}",
                "arms",
                arm,
                "extends",
            )
        data = _with_arm(data, declared, lower_arm, located, depth - 1)
    return _lay(data, fields, located, "arms", arm)


def _lay(
    lower: dict[str, Any], upper: dict[str, Any], located: LocatedYaml, *keys: str
) -> dict[str, Any]:
    """`upper` over `lower`; a group of phases changes the phases of these names. keys: where
    `upper` stands in its file.
    """
    changes = upper.get("phases")
    if isinstance(changes, dict) and isinstance(lower.get("phases"), list):
        phases = {str(phase["name"]): phase for phase in lower["phases"]}
        for name, fields in changes.items():
            if name not in phases:
                raise _fault(
                    located,
                    f"there is no phase '{name}' to change",
                    f"phases below: {', '.join(phases)}",
                    *keys,
                    "phases",
                    name,
                )
            phases[name] = _merge(phases[name], fields)
        upper = {**upper, "phases": list(phases.values())}
    merged: dict[str, Any] = _merge(lower, upper)
    return merged


def _merge(lower: Any, upper: Any) -> Any:
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return upper
    return lower | {key: _merge(lower.get(key), value) for key, value in upper.items()}


def recipe_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of recipes and their arms, for editors. No field is required:
    others may be below.
    """
    schema: dict[str, Any] = _optional(json_schema(Recipe))
    schema["properties"]["phases"] |= {
        "type": ["array", "object"],
        "additionalProperties": {"$ref": "#/$defs/Phase"},
        "description": "A list of phases; where there are fields below, also changes of their "
        "phases by name.",
    }
    schema["properties"] |= {
        "extends": {
            "type": "string",
            "description": "The recipe that this one extends; in an arm, another arm.",
        },
        "arms": {
            "type": "object",
            "additionalProperties": {"$ref": "#"},
            "description": "Named sets of fields that are laid over the recipe by `--arm NAME`.",
        },
    }
    return schema


def _optional(node: Any) -> Any:
    if isinstance(node, list):
        return list(map(_optional, node))
    if isinstance(node, dict):
        return {key: _optional(inside) for key, inside in node.items() if key != "required"}
    return node
