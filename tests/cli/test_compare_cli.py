"""`compare` and `export` as commands: what is printed, where, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from tests.helpers.cli_make import Run
from tests.helpers.compare_make import save_runs

DETOUR = "ModernCamemBERT-bio-base CLM detour (10B)"
TWIN = "ModernCamemBERT-bio-base MLM twin (10B)"
TASKS = ("gad", "diamed")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two models of unequal quality."""
    save_runs(tmp_path / "results", "good", TASKS, 0.9)
    save_runs(tmp_path / "results", "bad", TASKS, 0.5)
    return tmp_path / "results"


def test_json_stands_alone_and_equals_the_library(biobench: Run, results: Path) -> None:
    said = biobench("compare", "good", "bad", "--json", "--rope", "1", "--average", "micro")
    assert said.err == ""
    held = compare("good", "bad", results_dir=results, rope=0.01, average="micro")
    assert said.json() == json.loads(json.dumps(held.as_json()))
    assert said.json()["pairs"][0]["rope"] == 0.01


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (("good",), "two models", "biobench compare A B"),
        (("good", "bda"), "'bda'", "did you mean 'bad'?"),
        (("good", "bad", "--task", "gda"), "unknown task 'gda'", "gad"),
        (("good", "bad", "--suite", "germ"), "unknown suite 'germ'", "en"),
        (("good", "bad", "--average", "mikro"), "'mikro' is not one of", "--help"),
        (("good", "bad", "--alpha", "2"), "alpha 2", "0.05"),
        ((DETOUR, TWIN, "--average", "macro"), "share no task", "--average paper"),
    ],
)
def test_wrong_input_is_one_line(
    biobench: Run, results: Path, arguments: tuple[str, ...], what: str, hint: str
) -> None:
    said = biobench("compare", *arguments)
    assert what in said.refusal()
    assert hint in said.err
