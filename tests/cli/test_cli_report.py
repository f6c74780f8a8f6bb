"""`report`: a filter that names nothing is refused, what only results have is a name too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli_make import Run
from tests.helpers.report_make import save_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A run on a shipped task and one on a task that only the results know, in a suite of its own."""
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    save_run(tmp_path / "results", "own-encoder", "my_task", 42, 0.7)
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--task", "gda", "did you mean 'gad'?"),
        ("--suite", "frr", "did you mean 'fr'?"),
        ("--suite", "de", "known: en, fr, needle"),
        ("--source", "runs", "did you mean 'run'?"),
        ("--model", "own-encodr", "did you mean 'own-encoder'?"),
    ],
)
def test_an_unknown_value_is_refused(option: str, value: str, hint: str, biobench: Run, results: Path) -> None:
    said = biobench("report", "--task", "gad", option, value)
    assert said.refusal() == f"{option} '{value}' is not known"
    assert said.err.splitlines()[1] == f"hint: {hint}"


def test_without_results_the_published_rows_are_shown(biobench: Run, tmp_path: Path) -> None:
    said = biobench("report", "--source", "published", "--format", "json")
    assert (said.status, said.err) == (0, "")
    models = {row["model"] for row in said.json()}
    assert models
    assert biobench("report", "--model", min(models), "--format", "json").json()
    biobench("report", "--suite", "needle").ok()
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_only_results_have(biobench: Run, results: Path) -> None:
    (row, *_) = biobench("report", "--task", "my_task", "--format", "json").json()
    assert row["model"] == "own-encoder"
    assert biobench("report", "--suite", row["suite"], "--format", "json").json()
