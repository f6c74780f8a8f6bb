"""Commands that write a file: one that cannot be written is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cli_make import Said
from tests.helpers.report_make import save_run

Run = Callable[..., Said]


@pytest.fixture
def data(fixtures: Path) -> Path:
    return fixtures / "iob" / "train.tsv"


@pytest.fixture(params=["report", "export", "new"])
def command(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> list[str]:
    """A command that writes, without its --output."""
    if request.param == "export":
        save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    commands = {
        "report": ["report", "--format", "md"],
        "export": ["export", "own-encoder"],
        "new": ["tasks", "new", str(data), "--id", "made", "--force"],
    }
    return commands[str(request.param)]


@pytest.mark.parametrize("name", ["nowhere/x.md", ".", f"{'x' * 300}.md"])
def test_a_file_that_cannot_be_written(name: str, command: list[str], biobench: Run) -> None:
    said = biobench(*command, "--output", name)
    assert said.refusal().startswith(f"{name} cannot be written: ")
    assert said.err.splitlines()[1] == "hint: choose another --output"


def test_it_is_written_where_it_can_be(command: list[str], biobench: Run, tmp_path: Path) -> None:
    said = biobench(*command, "--output", "x.out")
    assert said.status == 0, said.err
    assert (tmp_path / "x.out").stat().st_size > 100


def test_an_id_that_is_none_writes_nothing(biobench: Run, data: Path, tmp_path: Path) -> None:
    said = biobench("tasks", "new", data, "--id", "My Task")
    assert said.refusal() == "'My Task' is not a task id"
    assert "my_task" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_the_list_of_tasks_keeps_its_columns_on_any_terminal(
    width: str, biobench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    first, *rows = biobench("tasks", "list").out.splitlines()
    assert first.split() == ["id", "data", "language", "type", "access", "version", "name"]
    (deid,) = (row.split() for row in rows if row.split()[0] == "deid")
    assert deid[:5] == ["deid", "agreement", "en", "token_ner", "agreement"]
    assert deid[5].isdigit()
