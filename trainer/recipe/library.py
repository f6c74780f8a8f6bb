"""Finding and reading recipes: a path, or the name of one that comes with the package.

A recipe may say ``extends: NAME_OR_PATH``: its fields are laid over the other's, groups field by field, lists whole;
phases may also be a group of phase names, each laid over the phase of that name. The other must be valid by itself, so
a complaint always concerns the file that is read. `arms` are named sets of fields that are laid over a recipe in the
same way when asked for; an arm may extend another arm, and several are laid in turn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from biobench.errors import SpecError, UsageError
from biobench.schema import yaml12
from biobench.schema.strict import apply_overrides, json_schema, suggest, validate
from biobench.schema.yaml12 import LocatedYaml
from trainer.recipe.spec import Recipe

_DEPTH = 5
_FORMER = {"toy": "toy_detour"}
"""Names before the arm in older names of arms, where they are not the recipe's own: toy_freeze_low."""


def shipped() -> dict[str, Path]:
    """Name to file of every recipe in the package."""
    folder = files("trainer") / "recipes"
    recipes = {Path(str(f)).stem: Path(str(f)) for f in folder.iterdir() if f.name.endswith(".yaml")}
    return dict(sorted(recipes.items()))


def arms_of(name_or_path: str | Path) -> list[str]:
    """The arms that a recipe declares. Raises SpecError, UsageError."""
    path, _ = find(name_or_path)
    return list(_arms(yaml12.parse_file(path)))


def find(name_or_path: str | Path) -> tuple[Path, tuple[str, ...]]:
    """The file of a recipe, and the arms that its name says: fr_base_twin_decay_20 is fr_base with twin and decay_20.

    Raises UsageError with the closest shipped name.
    """
    path = Path(name_or_path)
    if os.path.isfile(path):  # False for what is too long to be a name
        return path, ()
    known = shipped()
    name = str(name_or_path).removesuffix(".yaml")
    if name in known:
        return known[name], ()
    for stem, file in (known | {short: known[whole] for short, whole in _FORMER.items()}).items():
        rest, arms = name.removeprefix(stem), list[str]()
        longest_first = sorted(_arms(yaml12.parse_file(file)), key=len, reverse=True) if rest.startswith("_") else []
        while arm := next((a for a in longest_first if f"{rest}_".startswith(f"_{a}_")), None):
            arms.append(arm)
            rest = rest.removeprefix(f"_{arm}")
        if arms and not rest:
            return file, tuple(arms)
    raise UsageError(f"no recipe '{name_or_path}'", hint=f"{suggest(name, list(known))}; or give a file's path")


def load_recipe(recipe: str | Path | Recipe, overrides: Sequence[str] = (), arms: Sequence[str] = ()) -> Recipe:
    """Read a recipe, with arms of it, then ``KEY=VALUE`` overrides by the same YAML rules.

    Its name is the file's with the arms'. A recipe that is read already is given back. Raises SpecError, UsageError.
    """
    if isinstance(recipe, Recipe):
        assert not overrides
        assert not arms
        return recipe
    located = _read(recipe, _DEPTH, arms)
    if not overrides:
        return _valid(located)
    _valid(located)  # where the recipe itself is at fault, it is said of the file
    try:
        return _valid(apply_overrides(located, overrides))
    except SpecError as error:
        raise SpecError(f"--set {' --set '.join(overrides)}: {error.what}", hint=error.hint) from None


def _valid(located: LocatedYaml) -> Recipe:
    try:
        return validate(located, Recipe)
    except SpecError as error:
        error.hint = error.hint.replace("biobench tasks schema", "biobench pretrain schema")
        raise


def _read(name_or_path: str | Path, depth: int, wanted: Sequence[str] = ()) -> LocatedYaml:
    """A recipe's fields with those of the recipe that it extends below them and its arms above them."""
    path, named = find(name_or_path)
    located = yaml12.parse_file(path)
    declared = _arms(located)
    if not isinstance(located.data, dict):
        return located
    data = {key: value for key, value in located.data.items() if key not in ("extends", "arms")}
    if "extends" in located.data:
        name, line = located.data["extends"], located.line_of(("extends",))
        if not isinstance(name, str) or depth == 0:
            what = "extends must name one recipe, and not in a circle"
            raise SpecError(what, hint="write `extends: NAME`", file=path, line=line)
        beside = path.parent / (name if name.endswith(".yaml") else f"{name}.yaml")
        try:
            parent = _read(beside if os.path.isfile(beside) else name, depth - 1)
        except UsageError as error:
            raise SpecError(f"extends: {error.what}", hint=error.hint, file=path, line=line) from None
        _valid(parent)
        data = _lay(parent.data, data, located, ())
    base = LocatedYaml(data, located.lines, located.file)
    for arm in (*named, *wanted):
        if arm not in declared:
            hint = suggest(arm, list(declared)) if declared else "it declares none: leave --arm out"
            raise UsageError(f"recipe '{name_or_path}' has no arm '{arm}'", hint=hint)
        _valid(base)
        with_name = {"name": f"{base.data['name']}_{arm}"} | declared[arm]
        changed = _with_arm(base.data, declared | {arm: with_name}, arm, located)
        base = LocatedYaml(changed, located.lines, located.file)
        try:
            _valid(base)
        except SpecError as error:
            line = located.line_of(("arms", arm))
            raise SpecError(f"arm '{arm}': {error.what}", hint=error.hint, file=path, line=line) from None
    if named:
        base.data["name"] = str(name_or_path).removesuffix(".yaml")
    return base


def _arms(located: LocatedYaml) -> dict[str, Any]:
    """The arms that a file declares. Raises SpecError where they are not groups of fields."""
    declared = located.data.get("arms", {}) if isinstance(located.data, dict) else {}
    groups = declared if isinstance(declared, dict) else {"": declared}
    for name, fields in groups.items():
        if not isinstance(fields, dict):
            raise SpecError(
                "arms must be named groups of fields",
                hint="write `arms: {freeze_low: {phases: {detour: {freeze: {layers: 0-7}}}}}`",
                file=located.file,
                line=located.line_of(("arms", name)),
            )
    return groups


def _with_arm(data: Any, declared: dict[str, Any], arm: str, located: LocatedYaml, depth: int = _DEPTH) -> Any:
    """A recipe's fields with an arm's over them, and below these those of the arm that it extends."""
    fields = dict(declared[arm])
    if "extends" in fields:
        other = fields.pop("extends")
        if other not in declared or depth == 0:
            raise SpecError(
                f"arm '{arm}' must extend another arm of this recipe, and not in a circle",
                hint=f"name one of: {', '.join(name for name in declared if name != arm)}",
                file=located.file,
                line=located.line_of(("arms", arm, "extends")),
            )
        data = _with_arm(data, declared, other, located, depth - 1)
    return _lay(data, fields, located, ("arms", arm))


def _lay(below: dict[str, Any], above: dict[str, Any], located: LocatedYaml, place: tuple[str, ...]) -> dict[str, Any]:
    """`above` over `below`; a group of phases changes the phases of these names. place: of `above` in its file."""
    named = above.get("phases")
    if isinstance(named, dict) and isinstance(below.get("phases"), list):
        phases = {str(phase["name"]): phase for phase in below["phases"]}
        for name in named:
            if name not in phases:
                raise SpecError(
                    f"there is no phase '{name}' to change",
                    hint=f"phases below: {', '.join(phases)}",
                    file=located.file,
                    line=located.line_of((*place, "phases", name)),
                )
        above = above | {"phases": [_merge(p, named[n]) if n in named else p for n, p in phases.items()]}
    merged: dict[str, Any] = _merge(below, above)
    return merged


def _merge(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{k: _merge(below[k], v) if k in below else v for k, v in above.items()}}
    return above


def recipe_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of recipes as they are written.

    A recipe that extends another, and an arm, may leave out any field of a group; lists are whole.
    """
    whole = json_schema(Recipe)
    schema: dict[str, Any] = _partial({name: part for name, part in whole.items() if name != "$defs"})
    schema["properties"]["phases"] |= {
        "type": ["array", "object"],
        "additionalProperties": {"$ref": "#/$defs/PhasePart"},
        "description": "A list of phases; where there are fields below, also changes of their phases by name.",
    }
    name = {"type": "string", "description": "Name of a shipped recipe, or path of one, whose fields stand below."}
    other = {"type": "string", "description": "Another arm, laid below this one."}
    arm = {"type": "object", "properties": {**schema["properties"], "extends": other}, "additionalProperties": False}
    schema["properties"] |= {
        "extends": name,
        "arms": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/Arm"},
            "description": "Named sets of fields that are laid over the recipe by `--arm NAME`.",
        },
    }
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {"required": whole["required"], "properties": whole["properties"]}
    partial = {f"{part}Part": _partial(fields) for part, fields in whole["$defs"].items()}
    return schema | {"$defs": {**whole["$defs"], **partial, "Arm": arm}}


def _partial(node: Any) -> Any:
    """The same schema with nothing required, but in the items of lists."""
    if isinstance(node, list):
        return [_partial(inside) for inside in node]
    if not isinstance(node, dict):
        return node
    return {
        key: inside if key == "items" else f"{inside}Part" if key == "$ref" else _partial(inside)
        for key, inside in node.items()
        if key != "required"
    }
