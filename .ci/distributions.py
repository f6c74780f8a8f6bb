"""Check what a built wheel and a source archive hold: everything that a user needs, nothing that is
ours alone.

python .ci/distributions.py dist/*.whl dist/*.tar.gz
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("biobench", "trainer", "leaderboard")
NEVER = ("tests/", ".ci/", ".venv/", "results/runs/", "__pycache__/")


def files_of(folder: str, suffix: str = "") -> set[str]:
    """Files of the checkout below `folder`, relative to it."""
    base = ROOT / folder
    found = (p for p in base.rglob(f"*{suffix}") if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(base).as_posix() for p in found if p.name != ".keep"}


def check_wheel(path: Path) -> list[str]:
    """What is wrong with the wheel, one line each."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        meta_name = next(n for n in names if n.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(meta_name).decode("utf-8"))
        scripts = archive.read(meta_name.replace("METADATA", "entry_points.txt")).decode("utf-8")
    wrong = []
    expected = {f"{package}/{name}" for package in PACKAGES for name in files_of(package)}
    expected |= {f"biobench/bundled/tasks/{name}" for name in files_of("tasks")}
    expected |= {f"biobench/bundled/published/{name}" for name in files_of("results/published")}
    wrong += [f"wheel: {name} is missing" for name in sorted(expected - names)]
    wrong += [
        f"wheel: {name} does not belong there" for name in sorted(names) if name.startswith(NEVER)
    ]
    if not any(name.endswith("licenses/LICENSE") for name in names):
        wrong.append("wheel: the licence is missing")
    if metadata["License-Expression"] != "Apache-2.0":
        wrong.append(f"wheel: License-Expression is {metadata['License-Expression']}")
    extras = set(metadata.get_all("Provides-Extra") or [])
    wrong += [
        f"wheel: extra '{extra}' is missing"
        for extra in ("test", "flash", "real")
        if extra not in extras
    ]
    if "biobench = biobench.__main__:main" not in scripts:
        wrong.append("wheel: the console script is missing")
    if not str(metadata.get_payload()).lstrip().startswith("# BioBench"):
        wrong.append("wheel: the README is not the description")
    return wrong


def check_sdist(path: Path) -> list[str]:
    """What is wrong with the source archive, one line each."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    expected = {
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "CHANGELOG.md",
        "CITATION.cff",
        "constraints.txt",
    }
    expected |= {f"{package}/{name}" for package in PACKAGES for name in files_of(package)}
    expected |= {f"tasks/{name}" for name in files_of("tasks")}
    wrong = [f"source archive: {name} is missing" for name in sorted(expected - names)]
    never = (".ci/", ".venv/", "results/runs/")
    return wrong + [
        f"source archive: {name} does not belong there"
        for name in sorted(names)
        if name.startswith(never)
    ]


def main() -> None:
    """Check every archive named on the command line; exit 1 when something is wrong."""
    wrong: list[str] = []
    for name in sys.argv[1:]:
        path = Path(name)
        wrong += check_wheel(path) if path.suffix == ".whl" else check_sdist(path)
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    if wrong or len(sys.argv) < 2:
        sys.exit(1)
    sys.stdout.write(f"{len(sys.argv) - 1} distributions hold what they should\n")


if __name__ == "__main__":
    main()
