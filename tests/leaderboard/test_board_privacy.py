"""No view of the board shows a word of data under an agreement, even where the data lies at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import biobench
from leaderboard.launch import DATA_VARIABLE, TASKS_VARIABLE
from tests.helpers.app_make import PATHS, open_app
from tests.helpers.marked import marked
from tests.helpers.private_make import WORD, private_tasks
from tests.helpers.tiny import make_tiny_encoder

SPECS = ("own_notes.yaml", "own_spans.yaml")


def leaves(block: Any) -> Iterator[bytes]:
    """What the page sends to the browser, element by element; tables are Arrow without compression."""
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from leaves(child)
        if (proto := getattr(child, "proto", None)) is not None:
            yield proto.SerializeToString()


def board(folder: Path, access: str | None, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Each view on two models' runs of the two tasks, their data laid and named to the board."""
    private_tasks(folder, **({} if access is None else {"access": access}))
    for name in ("one", "two"):
        make_tiny_encoder(folder / name)
        biobench.run(
            str(folder / name), [str(folder / spec) for spec in SPECS], results_dir=folder / "results",
            data_dir=folder / "data", device="cpu", gate=False, seeds="1",
        )  # fmt: skip
    monkeypatch.setenv(DATA_VARIABLE, str(folder / "data"))
    monkeypatch.setenv(TASKS_VARIABLE, os.pathsep.join(str(folder / spec) for spec in SPECS))
    shown = {}
    for view in PATHS:
        for task in ("own_notes", "own_spans"):
            query = {"model": "one", "task": task, "models": ["one", "two"]}
            shown[f"{view} {task}"] = b"\n".join(leaves(open_app(monkeypatch, folder / "results", view, **query).main))
    return shown


def test_no_view_shows_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = board(tmp_path, None, monkeypatch)
    assert b"own_notes" in shown["errors own_notes"]
    assert [view for view, content in shown.items() if WORD.lower().encode() in content.lower()] == []
    assert marked(tmp_path, WORD, (tmp_path / "data",)) == [], "the index of the folder holds none either"


def test_texts_of_open_data_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = board(tmp_path, "open", monkeypatch)
    assert WORD.encode() in shown["errors own_notes"], "the search sees what a page shows"
