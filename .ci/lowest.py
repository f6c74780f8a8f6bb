"""Print the lowest version that pyproject.toml allows of each package that BioBench runs on, as pip
constraints.

python .ci/lowest.py > lowest.txt

torch is left out: its pin in constraints.txt names the build that is at hand.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def main() -> int:
    """One line a package; exit 1 where a dependency has no lower bound."""
    project = tomllib.loads(
        (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]
    for dependency in project["dependencies"]:
        found = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<[\d.]+)?", dependency)
        if found is None:
            raise SystemExit(f"'{dependency}' has no lower bound")
        if found[1] != "torch":
            print(f"{found[1]}=={found[2]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
