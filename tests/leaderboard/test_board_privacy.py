"""No view of the board shows a word of data under an agreement, even where the data lies at
hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import biobench
from leaderboard.launch import DATA_VARIABLE, TASKS_VARIABLE
from tests.helpers.app_make import PATHS, open_app
from tests.helpers.marked import marked
from tests.helpers.private_make import WORD, private_tasks
from tests.helpers.tiny import make_tiny_encoder


def leaves(block: Any) -> Iterator[bytes]:
    """What the page sends to the browser, element by element; tables are Arrow without
    compression."""
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from leaves(child)
        if (proto := getattr(child, "proto", None)) is not None:
            yield proto.SerializeToString()


def views(
    folder: Path, monkeypatch: pytest.MonkeyPatch, paths: Sequence[str], **access: str
) -> dict[str, bytes]:
    """Each view on two models' runs of the two tasks, their data laid and named to the board."""
    specs = [str(path) for path in private_tasks(folder, **access)]
    for name in ("one", "two"):
        make_tiny_encoder(folder / name)
        options = {
            "results_dir": folder / "results",
            "data_dir": folder / "data",
            "device": "cpu",
            "gate": False,
        }
        biobench.run(str(folder / name), specs, seeds="1", **options)
    monkeypatch.setenv(DATA_VARIABLE, str(folder / "data"))
    monkeypatch.setenv(TASKS_VARIABLE, os.pathsep.join(specs))
    shown = {}
    for view in paths:
        for task in ("own_notes", "own_spans"):
            query = {"model": "one", "task": task, "models": ["one", "two"]}
            shown[f"{view} {task}"] = b"\n".join(
                leaves(open_app(monkeypatch, folder / "results", view, **query).main)
            )
    return shown


def test_no_view_shows_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = views(tmp_path, monkeypatch, PATHS)
    assert b"own_notes" in shown["errors own_notes"]
    assert [
        view for view, content in shown.items() if WORD.lower().encode() in content.lower()
    ] == []
    assert marked(tmp_path, WORD, (tmp_path / "data",)) == [], (
        "the index of the folder holds none either"
    )
    shown = views(tmp_path / "open", monkeypatch, ("errors",), access="open")
    assert WORD.encode() in shown["errors own_notes"], "the search sees what a page shows"
