"""The layers of docs/architecture.md, read from the source: who imports whom, what stays free of
torch, file sizes.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("biobench", "leaderboard", "trainer")

_LOW = {"errors", "version", "stats", "core", "schema"}
_DATA = {*_LOW, "kinds", "data", "store"}
BELOW = {
    "errors": set[str](),
    "version": set[str](),
    "stats": {"errors"},
    "core": {"errors"},
    "schema": {"errors", "stats", "core"},
    "encode": _LOW,
    "models": _LOW,
    "kinds": {*_LOW, "encode", "models"},
    "data": {*_LOW, "kinds"},
    "store": _LOW,
    "score": _DATA,
    "finetune": {*_DATA, "score", "encode", "models"},
    "baselines": {*_DATA, "score"},
    "runs": {*_DATA, "score", "encode", "models", "finetune", "baselines"},
    "reporting": {*_DATA, "score", "trainer"},  # trainer: its ledgers, for twins
    "comparison": {*_DATA, "score", "reporting", "trainer"},
    "export": {*_DATA, "score", "reporting"},
    "submission": {*_DATA, "score", "reporting"},
    "workflows": {*_DATA, "score", "models", "runs", "reporting", "submission", "trainer"},
    "cli": {
        *(*_DATA, "score", "encode", "models", "finetune", "baselines", "runs", "workflows"),
        *("reporting", "comparison", "export", "submission", "trainer", "leaderboard"),
    },
    "__main__": {"cli"},
    "trainer": {"errors", "version", "core", "schema"},
    "leaderboard": {*_DATA, "score", "reporting", "comparison", "export", "submission"},
}
"""Package to the packages that it may import; besides them only itself."""

NO_TORCH = (
    *(
        "errors",
        "stats",
        "core",
        "schema",
        "encode",
        "kinds",
        "data",
        "store",
        "score",
        "baselines",
    ),
    *("reporting", "comparison", "export", "submission", "leaderboard"),
)
"""Packages where importing every module must load neither torch nor transformers."""
NEVER_TORCH = tuple(room for room in NO_TORCH if room not in ("encode", "kinds", "data"))
"""Packages that may not name them even inside a function; a kind's head and loss need torch, its
scores do not.
"""
HEAVY = {"torch", "transformers", "datasets", "accelerate"}
CORE_WITH_TORCH = {"biobench.core.attention", "biobench.core.machine", "biobench.core.tokenizer"}
"""The modules of `core` that may name them; no package of `NEVER_TORCH` may name these."""

ABSENT_FROM_GPU_MACHINES = (
    *("datasets", "seqeval", "loky", "statsmodels", "flash_attn", "accelerate"),
    *("streamlit", "altair", "vl_convert", "pytest", "hypothesis"),
)
"""What a bare GPU machine may lack (docs/performance.md), tools of tests among it."""

LIMIT = 400
"""Lines of a file."""
MOST_MODULES = 26
"""Of one folder, without its `__init__.py`; more want a folder of their own."""

Import = tuple[str, int, str]
"""(dotted name, line, importing module)"""


def sources() -> list[Path]:
    """Every Python file of the three packages."""
    return [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]


def module_of(path: Path) -> str:
    """Dotted name of a source file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of(module: str) -> str | None:
    """The package of a dotted name; None for foreign ones and for `biobench` itself."""
    first, _, rest = module.partition(".")
    if first == "biobench":
        return rest.split(".")[0] or None
    return first if first in PACKAGES else None


def is_package(dotted: str) -> bool:
    """True where the name is a module or package of ours (and not a name inside one)."""
    path = ROOT.joinpath(*dotted.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def imports(path: Path) -> Iterator[Import]:
    """All imports of a file, wherever they stand; `from x import y` is x.y where that is a
    module."""
    module = module_of(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, module
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                base = ".".join(
                    [*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])]
                )
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield (whole if is_package(whole) else base), node.lineno, module


def test_every_package_is_a_known_layer_and_no_two_import_each_other() -> None:
    names = {p.name for p in (ROOT / "biobench").iterdir() if p.is_dir() and list(p.glob("*.py"))}
    names |= {p.stem for p in (ROOT / "biobench").glob("*.py") if p.name != "__init__.py"}
    assert names <= set(BELOW) - {"trainer", "leaderboard"}, (
        "a new package needs its layer in BELOW and docs"
    )
    assert [str(path) for path in sources() if not (path.parent / "__init__.py").is_file()] == []
    assert [
        (name, lower) for name, below in BELOW.items() for lower in below if name in BELOW[lower]
    ] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count: a circle that is hidden there is one all the same."""
    needs: dict[str, set[str]] = {}
    for path in sources():
        module = module_of(path)
        # the names that a package hands on from its modules are no dependence of these on it
        needs[module] = {
            name
            for name, _, _ in imports(path)
            if is_package(name) and not module.startswith(f"{name}.")
        }
    try:
        TopologicalSorter({m: n - {m} for m, n in needs.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_nothing_imports_upwards() -> None:
    wrong = []
    for path in sources():
        room = room_of(module_of(path))
        for name, line, module in imports(path):
            target = room_of(name)
            if target is None or room is None or target == room or target in BELOW[room]:
                continue
            if is_package(name) or name.split(".")[0] in PACKAGES:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {module} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_light_packages_never_name_torch() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sources()
        if room_of(module_of(path)) in NEVER_TORCH and module_of(path) not in CORE_WITH_TORCH
        for name, line, _ in imports(path)
        if name.split(".")[0] in HEAVY or name in CORE_WITH_TORCH
    ]
    assert not wrong, "\n".join(wrong)


def loaded_by(modules: list[str], without: tuple[str, ...] = ()) -> set[str]:
    """Top-level packages that are loaded after importing `modules` in a new process.

    without: packages that are missing there.
    """
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({without!r}))\n"
        f"for name in {modules!r}:\n    importlib.import_module(name)\n"
        "print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("room", NO_TORCH)
def test_light_packages_load_no_torch(room: str) -> None:
    # The Streamlit pages run at import; they are opened by the leaderboard's own tests.
    modules = [
        module_of(p)
        for p in sources()
        if room_of(module_of(p)) == room
        and p.name != "__main__.py"
        and module_of(p) not in CORE_WITH_TORCH
        and not (room == "leaderboard" and ("pages" in p.parts or p.name == "app.py"))
    ]
    assert modules, f"{room} is empty"
    assert not loaded_by(modules) & HEAVY


def test_fine_tuning_and_pretraining_import_without_what_a_bare_gpu_machine_lacks() -> None:
    script = ROOT / "tests" / "benchmarks" / "gpu"
    modules = ["biobench.runs.workers", "biobench.finetune.engine", "trainer.api"]
    modules += ["biobench.runs.api", "trainer.pretrain"]
    modules += [f"tests.benchmarks.gpu.{path.stem}" for path in script.glob("[!_]*.py")]
    assert "torch" in loaded_by(modules, without=ABSENT_FROM_GPU_MACHINES)


def test_command_line_modules_load_no_torch_at_import() -> None:
    heavy = {*HEAVY, "pandas", "scipy", "sklearn", "streamlit", "pyarrow"}
    assert not loaded_by(["biobench.cli.main"]) & heavy


def test_files_and_folders_are_of_a_size_that_a_reader_can_survey() -> None:
    lengths = {
        p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines())
        for p in sources()
    }
    assert {name: length for name, length in lengths.items() if length > LIMIT} == {}
    modules = Counter(str(p.parent.relative_to(ROOT)) for p in sources() if p.name != "__init__.py")
    assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


IMPORTED_AS = {
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "vl-convert-python": "vl_convert",
}
"""Project name to the name that is imported, where they differ by more than case and dashes."""
FOR_TRANSFORMERS = {"sentencepiece", "protobuf", "accelerate"}
"""transformers imports them, we do not."""
TOOLS = {"pytest-xdist", "ruff", "mypy", "pandas-stubs", "types-pyyaml", "scipy-stubs", "build"}
"""Commands, plug-ins and stubs: nothing imports them."""
OPTIONAL = ("flash", "ray", "corpus", "adapters", "charts")
"""Extras whose packages our code uses where they are installed."""


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return table["project"]  # type: ignore[no-any-return]


def declared(needs: list[str]) -> dict[str, str]:
    """Project name of each requirement -> the name that is imported."""
    names = [re.split(r"[^A-Za-z0-9._-]", need)[0].lower() for need in needs]
    return {name: IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def imported_by(folders: tuple[str, ...]) -> set[str]:
    """Top-level names that the Python files of these folders import, by statement or by name."""
    found = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found |= {name.split(".")[0] for name, _, _ in imports(path)}
        found |= set(re.findall(r'(?:import_module|importorskip)\("(\w+)', text))
    return found


def test_the_product_depends_on_what_it_imports_and_on_nothing_else() -> None:
    extras = project()["optional-dependencies"]
    needs = declared(project()["dependencies"])
    used = imported_by(PACKAGES)
    unused = {name for name, module in needs.items() if module not in used}
    assert unused <= FOR_TRANSFORMERS, "move to the extra whose code imports it"
    optional = declared([need for name in OPTIONAL for need in extras[name]])
    foreign = used - set(sys.stdlib_module_names) - {*PACKAGES, "pydantic_core"}
    assert foreign - set(needs.values()) - set(optional.values()) == set()


def test_the_test_extra_holds_what_tests_import_and_their_tools_alone() -> None:
    of_tests = declared(project()["optional-dependencies"]["test"])
    used = imported_by((*PACKAGES, "tests", ".ci"))
    unused = {name for name, module in of_tests.items() if module not in used}
    assert unused <= TOOLS | FOR_TRANSFORMERS
