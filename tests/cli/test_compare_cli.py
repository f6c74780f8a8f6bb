"""`compare` and `export` as commands: what is printed, where, and with which exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from biobench.comparison.compare import compare
from tests.helpers.cli_make import Said
from tests.helpers.compare_make import save_runs

Run = Callable[..., Said]
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
        (("good", "bad", "--average", "mikro"), "unknown average 'mikro'", "micro"),
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


def test_exports_read_back(biobench: Run, results: Path, tmp_path: Path) -> None:
    card = ModelCard(biobench("export", "good", "--format", "model-card").out)
    assert {r.dataset_type for r in card.data.eval_results} == set(TASKS)
    entries = parse_eval_result_entries(yaml.safe_load(biobench("export", "good", "--format", "eval-results").out))
    assert {e.task_id for e in entries} == set(TASKS)
    assert json.loads(biobench("export", "good", "--format", "every-eval-ever").out)["schema_version"] == "0.3.0"
    assert "@misc{" in biobench("export", "good", "--format", "bibtex").out
    target = tmp_path / "card.md"
    said = biobench("export", "good", "--output", target)
    assert (said.status, said.out) == (0, "")
    assert ModelCard(target.read_text()).data.model_name == "good"
    assert "unknown format 'pdf'" in biobench("export", "good", "--format", "pdf").refusal()
    assert "did you mean 'good'" in biobench("export", "goood").err
    assert "cannot be written" in biobench("export", "good", "--output", tmp_path).refusal()
