"""Commands that write a file: one that cannot be written is refused in one line."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tests.helpers.cli_make import Run
from tests.helpers.report_make import save_run


@pytest.fixture(params=["report", "new"])
def command(request: pytest.FixtureRequest, fixtures: Path) -> list[str]:
    """A command that writes, without its --output."""
    new = ["tasks", "new", str(fixtures / "iob" / "train.tsv"), "--id", "made", "--force"]
    return new if request.param == "new" else ["report", "--format", "md"]


@pytest.mark.parametrize("name", ["nowhere/x.md", f"{'x' * 300}.md"])
def test_a_file_that_cannot_be_written(name: str, command: list[str], biobench: Run) -> None:
    said = biobench(*command, "--output", name)
    assert said.refusal().startswith(f"{name} cannot be written: ")
    assert said.err.splitlines()[1] == "hint: choose another --output"


def test_a_file_stays_what_it_was_where_the_new_one_cannot_be_written(
    command: list[str], biobench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is full: before, the file was empty afterwards."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "x.out").write_text("yesterday's")
    with monkeypatch.context() as patch:
        patch.setattr("biobench.core.files.os.fsync", full)
        assert biobench(*command, "--output", "x.out").refusal() == "x.out cannot be written: No space left on device"
    assert (tmp_path / "x.out").read_text() == "yesterday's"
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")] == []
    biobench(*command, "--output", "x.out").ok()
    assert (tmp_path / "x.out").stat().st_size > 100


def test_a_pipe_or_a_link_is_written_to_and_not_replaced(biobench: Run, tmp_path: Path) -> None:
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    pipe, link, text = tmp_path / "pipe", tmp_path / "link", list[str]()
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "behind.md")
    reader = threading.Thread(target=lambda: text.append(pipe.read_text()))
    reader.start()
    biobench("export", "own-encoder", "--output", pipe).ok()
    reader.join(timeout=60)
    biobench("export", "own-encoder", "--output", link).ok()
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert text == [(tmp_path / "behind.md").read_text()]
    assert len(text[0]) > 100


def test_a_folder_for_the_models_is_refused_before_anything_is_trained(biobench: Run, tmp_path: Path) -> None:
    """Before, after the first run had been trained, and its state was the only thing left of it."""
    (tmp_path / "file").touch()
    said = biobench(
        "run", "dummy", "--task", "demo_topic", "--seeds", "1", "--device", "cpu", "--keep-model", "file/below"
    )
    assert said.refusal().startswith("file/below: cannot be written: ")
    assert said.err.endswith("hint: check the path, or choose another --keep-model\n")
    assert "started" not in said.err
