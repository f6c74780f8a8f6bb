"""Finding and reading recipes: a path, or the name of one that comes with the package.

A recipe may say ``extends: NAME_OR_PATH``: its fields are laid over the other's, groups field by field,
lists whole. The other must be valid by itself, so a complaint always concerns the file that is read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from biobench.errors import SpecError, UsageError
from biobench.schema import yaml12
from biobench.schema.strict import apply_overrides, suggest, validate
from biobench.schema.yaml12 import LocatedYaml
from trainer.recipe.spec import Recipe

_DEPTH = 5


def shipped() -> dict[str, Path]:
    """Name to file of every recipe in the package."""
    folder = files("trainer") / "recipes"
    recipes = {Path(str(f)).stem: Path(str(f)) for f in folder.iterdir() if f.name.endswith(".yaml")}
    return dict(sorted(recipes.items()))


def find(name_or_path: str | Path) -> Path:
    """The file of a recipe. Raises UsageError with the closest shipped name."""
    path = Path(name_or_path)
    if os.path.isfile(path):  # False for what is too long to be a name
        return path
    known = shipped()
    name = str(name_or_path).removesuffix(".yaml")
    if name in known:
        return known[name]
    raise UsageError(f"no recipe '{name_or_path}'", hint=f"{suggest(name, list(known))}; or give a file's path")


def load_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe, with ``KEY=VALUE`` overrides by the same YAML rules. Raises SpecError, UsageError."""
    located = _read(find(name_or_path), _DEPTH)
    if not overrides:
        return _valid(located)
    changed = apply_overrides(located, overrides)
    try:
        return _valid(changed)
    except SpecError as error:
        _valid(located)  # where the recipe itself is at fault, it is said of the file
        raise SpecError(f"--set {' --set '.join(overrides)}: {error.what}", hint=error.hint) from None


def _valid(located: LocatedYaml) -> Recipe:
    try:
        return validate(located, Recipe)
    except SpecError as error:
        error.hint = error.hint.replace("biobench tasks schema", "biobench pretrain-schema")
        raise


def _read(path: Path, depth: int) -> LocatedYaml:
    located = yaml12.parse_file(path)
    if not isinstance(located.data, dict) or "extends" not in located.data:
        return located
    data = dict(located.data)
    parent_name = data.pop("extends")
    line = located.line_of(("extends",))
    if not isinstance(parent_name, str) or depth == 0:
        raise SpecError(
            "extends must name one recipe, and not in a circle", hint="write `extends: NAME`", file=path, line=line
        )
    beside = path.parent / (parent_name if parent_name.endswith(".yaml") else f"{parent_name}.yaml")
    try:
        parent_path = beside if os.path.isfile(beside) else find(parent_name)
    except UsageError as error:
        raise SpecError(f"extends: {error.what}", hint=error.hint, file=path, line=line) from None
    parent = _read(parent_path, depth - 1)
    _valid(parent)
    return LocatedYaml(_merge(parent.data, data), located.lines, located.file)


def _merge(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{k: _merge(below[k], v) if k in below else v for k, v in above.items()}}
    return above
