"""Print exact pins of what `biobench[test,real,browser,docs]` needs, from the environment that runs
this.

python .ci/constraints.py > constraints.txt
"""

from __future__ import annotations

import sys
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("test", "real", "browser", "docs")

HEADER = """\
# Exact versions that BioBench is tested with (Python 3.11, Linux).
# Made by: python .ci/constraints.py
# Install torch first and pinned; a later `pip install` then leaves it alone:
#   pip install torch=={torch} -c constraints.txt && pip install -e . -c constraints.txt
"""


def closure(name: str, extras: tuple[str, ...]) -> dict[str, str]:
    """Project name to version of everything that `name[extras]` pulls in here, itself left out."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()

    def walk(project: str, wanted: tuple[str, ...]) -> None:
        if (project, wanted) in seen:
            return
        seen.add((project, wanted))
        found = metadata.distribution(project)
        versions[project] = found.version
        for line in found.requires or []:
            need = Requirement(line)
            if need.marker is None or any(
                need.marker.evaluate({"extra": e}) for e in ("", *wanted)
            ):
                walk(canonicalize_name(need.name), tuple(sorted(need.extras)))

    walk(canonicalize_name(name), extras)
    del versions[canonicalize_name(name)]
    return versions


def main() -> None:
    """Print the file. A local version label (`+cpu`) is dropped: the pin holds for every build of a
    version.
    """
    pins = {name: version.split("+")[0] for name, version in closure("biobench", EXTRAS).items()}
    sys.stdout.write(HEADER.format(torch=pins["torch"]))
    for name in sorted(pins):
        sys.stdout.write(f"{name}=={pins[name]}\n")


if __name__ == "__main__":
    main()
