"""`--config run.yaml`: options written down once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from biobench.cli.console.config import expanded, respelled
from biobench.cli.main import app
from biobench.errors import BioBenchError, SpecError, UsageError
from tests.helpers.cli_make import Said

ROOT = get_command(app)


def words(folder: Path, text: str, *line: str) -> list[str]:
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    return expanded([*line, "--config", str(folder / "run.yaml")], ROOT)


def test_options_stand_before_those_of_the_command_line(tmp_path: Path) -> None:
    text = (
        "suite: en\nseeds: 42-44\nset: [training.learning_rate=5e-5, training.epochs=3]\noffline: true\nlimit: null\n"
    )
    assert words(tmp_path, text, "run", "org/m") == [
        *("run", "--suite", "en", "--seeds", "42-44", "--set", "training.learning_rate=5e-5"),
        *("--set", "training.epochs=3", "--offline", "org/m"),
    ]


def test_what_is_on_the_command_line_replaces_the_files(tmp_path: Path) -> None:
    text = "task: [gad, hoc]\nresults_dir: there\noffline: true\n"
    got = words(tmp_path, text, "run", "org/m", "--task=bc5cdr", "--results-dir", "here")
    assert got == ["run", "--offline", "org/m", "--task=bc5cdr", "--results-dir", "here"]


def test_numbers_stay_as_they_are_written_and_false_is_the_other_switch(tmp_path: Path) -> None:
    assert words(tmp_path, "limit: 0x10\n", "run", "m") == ["run", "--limit", "0x10", "m"]
    assert words(tmp_path, "exclude-tasks: false\n", "pretrain", "r") == ["pretrain", "--no-exclude-tasks", "r"]
    assert words(tmp_path, "offline: false\n", "run", "m") == ["run", "m"]


def test_sections_are_for_several_commands(tmp_path: Path) -> None:
    text = "run:\n  suite: en\nreport:\n  format: md\ntasks gate:\n  slow: true\n"
    assert words(tmp_path, text, "report") == ["report", "--format", "md"]
    assert words(tmp_path, text, "tasks", "gate", "gad") == ["tasks", "gate", "--slow", "gad"]
    assert words(tmp_path, text, "compare", "a", "b") == ["compare", "a", "b"]


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("suite: en\nsedes: 42\n", "`run` has no option 'sedes'", 2),
        ("offline: maybe\n", "'offline' is yes or no", 1),
        ("suite: {a: 1}\nseeds: 42\n", "'suite' is no text or number", 1),
        ("rnu:\n  suite: en\n", "'rnu' is no command", 1),
        ("- suite\n", "holds no options", None),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, what: str, line: int | None, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=what) as caught:
        words(tmp_path, text, "run", "org/m")
    assert "run.yaml" in str(caught.value)
    assert line is None or f":{line}" in str(caught.value)


def test_the_option_itself(tmp_path: Path) -> None:
    assert expanded(["run", "--", "--config", "x"], ROOT) == ["run", "--", "--config", "x"]
    for line in (
        ["run", "--config"],
        ["run", "--config=a", "--config=b"],
        ["--config", "x"],
        ["tasks", "--config", "x"],
    ):
        with pytest.raises((UsageError, BioBenchError)):
            expanded(line, ROOT)


def test_it_works_from_the_command_line(biobench: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "show.yaml").write_text("json: true\n", encoding="utf-8")
    assert biobench("tasks", "list", "--config", tmp_path / "show.yaml").json()
    (tmp_path / "show.yaml").write_text("jsno: true\n", encoding="utf-8")
    assert (
        "`tasks list` has no option 'jsno'" in biobench("tasks", "list", "--config", tmp_path / "show.yaml").refusal()
    )


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("tasks list --format json", "tasks list --json"),
        ("tasks list --format=json", "tasks list --json"),
        ("report --format json", "report --format json"),
        ("pretrain r --output runs/x", "pretrain r --out runs/x"),
        ("data bundle gad --out=x.zip", "data bundle gad --output=x.zip"),
        ("report --out x", "report --out x"),
        ("compare a b --format html", "compare a b --format html"),
        ("run m -- --format json", "run m -- --format json"),
        ("nothing --output x", "nothing --output x"),
    ],
)
def test_one_language_of_options(line: str, read: str) -> None:
    assert respelled(line.split(), ROOT) == read.split()


def test_a_format_that_a_command_does_not_have_is_refused(biobench: Callable[..., Said]) -> None:
    assert biobench("tasks", "list", "--format", "json").json() == biobench("tasks", "list", "--json").json()
    assert "--format" in biobench("tasks", "list", "--format", "html").refusal()
