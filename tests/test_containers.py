"""The container files, read as a builder reads them: stages, copied paths, shell lines, users, commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.main import get_command

from biobench.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
FILES = ("biobench/Containerfile", "leaderboard/Containerfile")
KNOWN = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "CMD", "ENTRYPOINT"}


class Step(NamedTuple):
    """One instruction with its continued lines joined, and where it begins."""

    word: str
    rest: str
    line: int


def steps(text: str) -> list[Step]:
    """Instructions of a container file; comments between continued lines are no part of them. Raises ValueError."""
    read: list[Step] = []
    begun: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not line.strip() and not begun):
            continue
        first = first if begun else number
        begun.append(line.removesuffix("\\"))
        if line.endswith("\\"):
            continue
        word, _, rest = "".join(begun).partition(" ")
        if word not in KNOWN:
            raise ValueError(f"line {first}: unknown instruction {word!r}")
        read.append(Step(word, rest.strip(), first))
        begun = []
    if begun:
        raise ValueError(f"line {first}: the last line is continued")
    return read


def stages(file: str) -> list[tuple[str, str | None, list[Step]]]:
    """Image, name and steps of each stage, with the arguments before the first one put in."""
    arguments: dict[str, str] = {}
    parts: list[tuple[str, str | None, list[Step]]] = []
    for step in steps((ROOT / file).read_text(encoding="utf-8")):
        if step.word == "FROM":
            image, _, name = step.rest.partition(" AS ")
            for argument, value in arguments.items():
                image = image.replace(f"${{{argument}}}", value)
            parts.append((image, name or None, []))
        elif not parts:
            assert step.word == "ARG", f"{file}:{step.line}: {step.word} before the first FROM"
            name, _, value = step.rest.partition("=")
            arguments[name] = value
        else:
            parts[-1][2].append(step)
    return parts


def of(parts: list[tuple[str, str | None, list[Step]]], word: str) -> list[Step]:
    return [step for _, _, group in parts for step in group if step.word == word]


def test_the_reader_refuses_what_a_builder_would() -> None:
    assert steps("# x\nRUN a \\\n  # y\n  && b\n\nUSER 1") == [Step("RUN", "a   && b", 2), Step("USER", "1", 6)]
    with pytest.raises(ValueError, match="line 1: unknown instruction 'RUm'"):
        steps("RUm x")
    with pytest.raises(ValueError, match="line 2: the last line is continued"):
        steps("USER 1\nRUN a \\")


@pytest.mark.parametrize("file", FILES)
def test_images_are_of_a_version_and_stages_are_known(file: str) -> None:
    parts = stages(file)
    names: list[str | None] = []
    for image, name, group in parts:
        assert image in names or re.fullmatch(r"[\w./-]+:(?!latest)[\w.-]+", image), image
        for step in group:
            if match := re.match(r"--from=(\S+)", step.rest):
                assert match[1] in names, f"{file}:{step.line}: no stage {match[1]} before"
        names.append(name)


@pytest.mark.parametrize("file", FILES)
def test_what_is_copied_is_there_and_named(file: str) -> None:
    """Each path is one that git tracks or has tracked files below it: nothing of a working copy beside them."""
    copied: list[str] = []
    for step in of(stages(file), "COPY"):
        words = step.rest.split()
        if words[0].startswith("--from"):
            continue
        assert len(words) == 2 or words[-1].endswith("/"), f"{file}:{step.line}: several files need a folder"
        copied += words[:-1]
    for path in copied:
        assert (ROOT / path).exists(), path
        assert not re.search(r"[*?]|^\.*/?$", path), "by name"
    if (ROOT / ".git").exists():
        tracked = subprocess.run(
            ["git", "ls-files", "--", *copied], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for path in copied:
            assert any(name == path or name.startswith(f"{path}/") for name in tracked), path


@pytest.mark.parametrize("file", FILES)
def test_a_wheel_can_be_made_of_what_is_copied(file: str) -> None:
    """Whatever pyproject.toml names for the wheel is copied before the wheel is made."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    named = {
        *wheel["packages"],
        *wheel["force-include"],
        project["project"]["readme"],
        *project["project"]["license-files"],
    }
    (first, *_) = stages(file)
    before = next(step.line for step in first[2] if step.word == "RUN")
    copied = {w for s in first[2] if s.word == "COPY" and s.line < before for w in s.rest.split()[:-1]}
    assert named <= copied, named - copied


@pytest.mark.parametrize("file", FILES)
def test_a_shell_reads_every_line_and_pip_is_pinned(file: str) -> None:
    for step in of(stages(file), "RUN"):
        done = subprocess.run(["sh", "-n"], input=step.rest, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{file}:{step.line}: {done.stderr}"
        for command in re.findall(r"pip (?:install|wheel) [^&]*", step.rest):
            assert "--no-cache-dir" in command
            assert "--no-deps" in command or "-c /wheels/constraints.txt" in command, f"{file}:{step.line}"
        assert "apt-get" not in step.rest or "rm -rf /var/lib/apt/lists" in step.rest


@pytest.mark.parametrize("file", FILES)
def test_it_runs_without_rights_and_with_a_command_that_exists(file: str) -> None:
    *_, (_, _, last) = stages(file)
    users = [step for step in last if step.word == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1].rest), "a number, so that the host needs no such name"
    assert users[-1].line > max(step.line for step in last if step.word in ("RUN", "COPY"))
    (start,) = [step for step in last if step.word in ("CMD", "ENTRYPOINT")]
    program, *words = json.loads(start.rest)
    assert program == "biobench"
    if words:
        commands = get_command(app).commands  # type: ignore[attr-defined]
        known = {option for parameter in commands[words[0]].params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
        assert [s.rest for s in last if s.word == "EXPOSE"] == [words[words.index("--port") + 1]]


@pytest.mark.parametrize("file", FILES)
def test_its_variables_are_read_by_the_program(file: str) -> None:
    names = {n for s in of(stages(file), "ENV") for n in re.findall(r"(\w+)=", s.rest) if n.startswith("BIOBENCH_")}
    assert names
    sources = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "biobench").rglob("*.py"))
    assert all(f'"{name}"' in sources for name in names), names
    assert os.path.isabs(dict(p.split("=", 1) for p in of(stages(file), "ENV")[0].rest.split())["BIOBENCH_RESULTS_DIR"])


def test_every_image_is_built_and_run_in_ci() -> None:
    """`.ci/images`, which the workflow starts; a shell reads it."""
    script = ROOT / ".ci" / "images"
    text = script.read_text(encoding="utf-8")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    built = dict(re.findall(r"^build (\S+) (\S+)$", text, flags=re.MULTILINE))
    assert sorted(built.values()) == sorted(FILES)
    for name in built:
        after = text.partition(f"build {name} ")[2]
        assert re.search(rf"^begin {name}\n(buildah run .*\\?\n)+", after, flags=re.MULTILINE), name
    workflow = ROOT / ".github" / "workflows" / "ci.yml"
    assert "bash .ci/images" in workflow.read_text(encoding="utf-8")
