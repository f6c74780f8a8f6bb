"""The container files, read as a builder reads them: stages, copied paths, shell lines, users, commands."""

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
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "CMD", "ENTRYPOINT"}
Steps = list[tuple[str, str]]
"""(instruction, what follows it), in order."""


def steps(file: str) -> Steps:
    """Each instruction with its continued lines joined; comments between continued lines are no part of them."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if line.strip() and not line.lstrip().startswith("#")).replace("\\\n", "")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines())]


@pytest.fixture(params=["biobench/Containerfile", "leaderboard/Containerfile"])
def file(request: pytest.FixtureRequest) -> Steps:
    return steps(request.param)


def of(file: Steps, word: str) -> list[str]:
    return [rest for name, rest in file if name == word]


def test_images_are_of_a_version_and_stages_are_known(file: Steps) -> None:
    assert {word for word, _ in file} <= KNOWN
    arguments = dict(rest.split("=", 1) for rest in of(file, "ARG") if "=" in rest)
    names: list[str] = []
    for word, rest in file:
        if word == "FROM":
            image, _, name = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], rest).partition(" AS ")
            assert image in names or re.fullmatch(r"[\w./-]+:(?!latest)[\w.-]+", image), image
            names.append(name)
        elif match := re.match(r"--from=(\S+)", rest):
            assert match[1] in names[:-1], f"no stage {match[1]} before"


def test_what_is_copied_is_tracked_and_enough_for_a_wheel(file: Steps) -> None:
    """Each path is one that git tracks or has tracked files below it; all that pyproject.toml names is copied."""
    copies = [rest.split() for rest in of(file, "COPY") if not rest.startswith("--from")]
    assert all(len(words) == 2 or words[-1].endswith("/") for words in copies), "several files need a folder"
    copied = [path for words in copies for path in words[:-1]]
    assert [path for path in copied if not (ROOT / path).exists() or re.search(r"[*?]|^\.*/?$", path)] == []
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "--", *copied]
        tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
        assert [p for p in copied if not any(name == p or name.startswith(f"{p}/") for name in tracked)] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    named = {*wheel["packages"], *wheel["force-include"], project["project"]["readme"]}
    first_run = next(i for i, (word, _) in enumerate(file) if word == "RUN")
    before = {path for word, rest in file[:first_run] if word == "COPY" for path in rest.split()[:-1]}
    assert {*named, *project["project"]["license-files"]} <= before


def test_a_shell_reads_every_line_and_pip_is_pinned(file: Steps) -> None:
    for line in of(file, "RUN"):
        assert subprocess.run(["sh", "-n"], input=line, text=True, check=False).returncode == 0, line
        for command in re.findall(r"pip (?:install|wheel) [^&]*", line):
            assert "--no-cache-dir" in command
            assert "--no-deps" in command or "-c /wheels/constraints.txt" in command, command
        assert "apt-get" not in line or "rm -rf /var/lib/apt/lists" in line


def test_it_runs_without_rights_and_with_a_command_that_exists(file: Steps) -> None:
    last = file[max(i for i, (word, _) in enumerate(file) if word == "FROM") :]
    words = [word for word, _ in last]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", of(last, "USER")[-1]), "a number, so that the host needs no such name"
    assert not {"RUN", "COPY"} & set(words[len(words) - words[::-1].index("USER") :])
    (start,) = (rest for word, rest in last if word in ("CMD", "ENTRYPOINT"))
    program, *options = json.loads(start)
    assert program == "biobench"
    if options:
        command = get_command(app).commands[options[0]]  # type: ignore[attr-defined]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in options if word.startswith("--")} <= known
        assert of(last, "EXPOSE") == [options[options.index("--port") + 1]]


def test_its_variables_are_read_by_the_program(file: Steps) -> None:
    values = dict(re.findall(r"(BIOBENCH_\w+)=(\S+)", " ".join(of(file, "ENV"))))
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "biobench").rglob("*.py"))
    assert [name for name in values if f'"{name}"' not in sources] == []
    assert os.path.isabs(values["BIOBENCH_RESULTS_DIR"])


def test_every_image_is_built_and_run_in_ci() -> None:
    """`.ci/images`, which the workflow starts; a shell reads it."""
    script = ROOT / ".ci" / "images"
    text = script.read_text(encoding="utf-8")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    built = dict(re.findall(r"^build (\S+) (\S+)$", text, flags=re.MULTILINE))
    assert sorted(built.values()) == ["biobench/Containerfile", "leaderboard/Containerfile"]
    for name in built:
        after = text.partition(f"build {name} ")[2]
        assert re.search(rf"^begin {name}\n(buildah run .*\\?\n)+", after, flags=re.MULTILINE), name
    assert "bash .ci/images" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
