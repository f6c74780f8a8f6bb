"""What other installed packages bring by entry points: readers, kinds of task, metrics and folders of task specs.

A package declares, for example, `[project.entry-points."biobench.readers"] my_format = "my_package.my_format"`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from biobench.core.text import first_line
from biobench.errors import SpecError

READERS, KINDS, METRICS, TASKS = "biobench.readers", "biobench.kinds", "biobench.metrics", "biobench.tasks"


@cache
def plugins(group: str) -> tuple[tuple[str, Any], ...]:
    """(name, what it names) of every entry point of the group, loaded, in order of name.

    Raises SpecError naming the package of one that cannot be loaded: leaving it out could change what is run.
    """
    loaded = []
    for point in sorted(entry_points(group=group), key=lambda p: p.name):
        try:
            loaded.append((point.name, point.load()))
        except Exception as error:  # a stranger's module may raise anything
            owner = "an installed package" if point.dist is None else f"package {point.dist.name}"
            raise SpecError(
                f"plug-in '{point.name}' ({point.value}) of {owner} cannot be loaded: {first_line(error)}",
                hint="repair or uninstall that package",
            ) from error
    return tuple(loaded)
