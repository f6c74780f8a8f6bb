"""Container files, read: what they copy, their users, commands and variables. `.ci/images` builds
and runs them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from biobench.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
Steps = list[tuple[str, str]]
"""(instruction, what follows it), in order."""


@pytest.fixture(params=["biobench/Containerfile", "leaderboard/Containerfile"])
def file(request: pytest.FixtureRequest) -> Steps:
    """Each instruction with its continued lines joined; comments between continued lines are no
    part of them.
    """
    text = re.sub(r"^\s*(#.*)?\n", "", text_of(request.param), flags=re.MULTILINE)
    instructions = re.findall(r"^(\w+) (.*)$", text.replace("\\\n", ""), re.MULTILINE)
    return [(word, rest.strip()) for word, rest in instructions]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def of(file: Steps, word: str) -> list[str]:
    return [rest for name, rest in file if name == word]


def test_images_are_of_a_version_and_pip_is_pinned(file: Steps) -> None:
    arguments = dict(rest.split("=", 1) for rest in of(file, "ARG") if "=" in rest)
    stages = [rest.partition(" AS ")[2] for rest in of(file, "FROM")]
    for rest in of(file, "FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], rest).partition(" AS ")[0]
        assert image in stages or re.fullmatch(r"[\w./-]+:(?!latest)[\w.-]+", image), image
    for command in re.findall(r"pip (?:install|wheel) [^&;]*", " & ".join(of(file, "RUN"))):
        assert "--no-deps" in command or "-c /wheels/constraints.txt" in command, command


def locked(name: str) -> dict[str, list[str]]:
    """`package==version` to its hashes."""
    text = text_of(name)
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
    return {
        package.split()[0]: sorted(re.findall(r"--hash=\S+", package))
        for package in packages
        if "==" in package.partition("\n")[0] and not package.startswith("#")
    }


def test_images_install_files_by_hashes_of_the_lock_file() -> None:
    everything = locked("requirements.lock")
    run, board = locked(".ci/locks/run.txt"), locked(".ci/locks/board.txt")
    assert run.items() <= everything.items()
    assert board.items() <= everything.items()
    assert all(everything.values())
    text = text_of("leaderboard/Containerfile")
    (names,) = re.findall(r"^        (altair .*);", text, flags=re.MULTILINE)
    of_board = {package.partition("==")[0] for package in board}
    assert {name.lower().replace("_", "-") for name in names.split()} <= of_board
    assert not {"torch", "transformers"} & of_board


def test_what_is_copied_is_tracked_and_enough_for_a_wheel(file: Steps) -> None:
    """Each path is one that git tracks or has tracked files below it; all that pyproject.toml names
    is copied.
    """
    copied = []
    for rest in of(file, "COPY"):
        if not rest.startswith("--from"):
            copied += rest.split()[:-1]
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--", *copied]
        tracked = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert [
            p for p in copied if not any(name == p or name.startswith(f"{p}/") for name in tracked)
        ] == []
    project = tomllib.loads(text_of("pyproject.toml"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    named = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]}
    first_run = next(i for i, (word, _) in enumerate(file) if word == "RUN")
    before = {
        path for word, rest in file[:first_run] if word == "COPY" for path in rest.split()[:-1]
    }
    assert {*named, *project["project"]["license-files"]} <= before


def test_it_runs_without_rights_and_with_a_command_that_exists(file: Steps) -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", of(file, "USER")[-1]), (
        "a number, so that the host needs no such name"
    )
    words = [word for word, _ in file]
    assert not {"RUN", "COPY"} & set(words[len(words) - words[::-1].index("USER") :])
    (start,) = (rest for word, rest in file if word in ("CMD", "ENTRYPOINT"))
    program, *options = json.loads(start)
    assert program == "biobench"
    if options:
        command = get_command(app).commands[options[0]]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in options if word.startswith("--")} <= known
        assert of(file, "EXPOSE") == [options[options.index("--port") + 1]]
    values = dict(re.findall(r"(BIOBENCH_\w+)=(\S+)", " ".join(of(file, "ENV"))))
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "biobench").rglob("*.py"))
    assert [name for name in values if f'"{name}"' not in sources] == []
    assert os.path.isabs(values["BIOBENCH_RESULTS_DIR"])


def test_every_image_is_built_and_run_in_ci() -> None:
    text = text_of(".ci/images")
    built = dict(re.findall(r"^build (\S+) (\S+)$", text, flags=re.MULTILINE))
    assert sorted(built.values()) == ["biobench/Containerfile", "leaderboard/Containerfile"]
    assert set(built) <= set(re.findall(r"^begin (\S+)\nbuildah run ", text, flags=re.MULTILINE))
    assert "bash .ci/images" in text_of(".github/workflows/ci.yml")
