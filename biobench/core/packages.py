"""Installed packages: import names that others use too, what others bring by entry points, and data
files of our own.

A package declares, for example, `[project.entry-points."biobench.readers"] my_format =
"my_package.my_format"`.
"""

from __future__ import annotations

import json
import traceback
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from biobench.core.text import first_line
from biobench.errors import SpecError, UsageError

READERS = "biobench.readers"
KINDS = "biobench.kinds"
METRICS = "biobench.metrics"
TASKS = "biobench.tasks"
_HERE = Path(__file__).resolve().parents[2]


def check_ours(name: Literal["trainer", "leaderboard"]) -> None:
    """Raise UsageError where another distribution's package would be imported by this name."""
    file = getattr(find_spec(name), "origin", None)
    if file is None or Path(file).resolve().parents[1] != _HERE:
        raise UsageError(
            f"the import name '{name}' belongs to another package here ({file})",
            hint="uninstall that package, or install biobench in an environment of its own",
        )


@cache
def plugins(group: str) -> tuple[tuple[str, Any], ...]:
    """(name, what it names) of every entry point of the group, loaded, in order of name.

    Raises SpecError naming the package of one that cannot be loaded: leaving it out could change
    what is run.
    """
    loaded = []
    for point in sorted(entry_points(group=group), key=lambda p: p.name):
        try:
            loaded.append((point.name, point.load()))
        except Exception as error:  # a module of another package may raise anything
            owner = "an installed package"
            if point.dist is not None:
                owner = f"package {point.dist.name}"
            raise SpecError(
                f"plug-in '{point.name}' ({point.value}) of {owner} cannot be loaded: "
                f"{first_line(error)}",
                hint="repair or uninstall that package",
            ) from error
    return tuple(loaded)


def read_words(package: str, name: str) -> Any:
    """The content of the file `name` in a package."""
    return json.loads((files(package) / name).read_text(encoding="utf-8"))


def from_package(error: BaseException, package: ModuleType) -> bool:
    """Whether an error was raised by the package itself: by its code, or by torch on its call."""
    home = Path(str(package.__file__)).resolve().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if "torch" not in file.parts:
            return file.is_relative_to(home)
    return False
