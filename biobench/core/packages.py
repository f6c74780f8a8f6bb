"""Import names that other distributions use too."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from biobench.errors import UsageError

_HERE = Path(__file__).resolve().parents[2]


def check_ours(name: Literal["trainer", "leaderboard"]) -> None:
    """Raise UsageError where another distribution's package would be imported by this name."""
    spec = find_spec(name)
    file = None if spec is None else spec.origin
    if file is None or Path(file).resolve().parents[1] != _HERE:
        raise UsageError(
            f"the import name '{name}' belongs to another package here ({file})",
            hint="uninstall that package, or install biobench in an environment of its own",
        )
