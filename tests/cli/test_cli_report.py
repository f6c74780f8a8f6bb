"""`report` and `compare`: short, own runs first; filters that name nothing and wrong input are refused in one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.report.frame import build
from biobench.report.printers import to_text
from biobench.report.results import load
from tests.helpers.cli_make import Run
from tests.helpers.compare_make import save_runs as save_compared
from tests.helpers.report_make import save_run, save_runs


@pytest.fixture
def known(tmp_path: Path) -> Path:
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
def test_an_unknown_value_is_refused(option: str, value: str, hint: str, biobench: Run, known: Path) -> None:
    said = biobench("report", "--task", "gad", option, value)
    assert said.refusal() == f"{option} '{value}' is not known"
    assert said.err.splitlines()[1] == f"hint: {hint}"


def test_without_results_the_published_rows_are_shown(biobench: Run, tmp_path: Path) -> None:
    said = biobench("report", "--source", "published", "--format", "json").ok()
    assert said.err == ""
    models = {row["model"] for row in said.json()}
    assert biobench("report", "--model", min(models), "--format", "json").json()
    biobench("report", "--suite", "needle").ok()
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_only_results_have(biobench: Run, known: Path) -> None:
    (row, *_) = biobench("report", "--task", "my_task", "--format", "json").json()
    assert row["model"] == "own-encoder"
    assert biobench("report", "--suite", row["suite"], "--format", "json").json()


def same_as_golden(text: str, name: str) -> None:
    """`UPDATE_GOLDEN=1` writes the file anew; then look at it."""
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    save_runs(folder, "my-org/my-encoder", "gad", {42: 0.790, 43: 0.801, 44: 0.795})
    save_runs(folder, "my-org/my-encoder", "hoc", {42: 0.690, 43: 0.681, 44: 0.686})
    save_runs(folder, "my-org/baseline", "gad", {42: 0.770, 43: 0.751, 44: 0.765})
    return folder


def test_published_and_own_rows_at_80_columns(results: Path, tmp_path: Path) -> None:
    same_as_golden(to_text(build(load(tmp_path / "none"), "paper"), width=80), "report_published_80.txt")
    same_as_golden(to_text(build(results, "paper", tasks=["gad", "hoc"]), width=80), "report_own_80.txt")


@pytest.mark.parametrize("suite", ["blurb", "drbenchmark"])
def test_a_declared_suite_folds(suite: str, biobench: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_runs(results, "my-org/my-encoder", "quaero_medline", {42: 0.601, 43: 0.611})
    monkeypatch.setenv("COLUMNS", "80")
    same_as_golden(biobench("report", "--suite", suite).out, f"report_{suite}_80.txt")


@pytest.mark.parametrize("format_", ["table", "md", "latex", "html"])
def test_own_rows_come_first_and_published_ones_for_their_tasks_alone(
    format_: str, biobench: Run, results: Path
) -> None:
    out = biobench("report", "--average", "paper", "--format", format_).out
    assert ("| gad" if format_ == "md" else "gad") in out
    assert out.index("my-encoder") < out.index("PubMedBERT")
    assert "jnlpba" not in out
    assert "DrBERT" not in out
    assert "jnlpba" in biobench("report", "--source", "published", "--average", "paper", "--format", format_).out


@pytest.mark.parametrize("option", ["--per-seed", "--per-label", "--probabilities"])
def test_what_only_data_formats_hold_is_refused_elsewhere(option: str, biobench: Run, results: Path) -> None:
    assert biobench("report", option).refusal() == f"{option} has no place in a table"


def test_a_list_with_commas_is_several_tasks_and_sources(biobench: Run, results: Path) -> None:
    report = ("report", "--source", "run", "--task")
    apart = biobench(*report, "gad", "--task", "hoc")
    assert biobench(*report, "gad,hoc") == apart
    assert "hoc" in apart.out
    assert " hoc " not in biobench(*report, "gad,bc5cdr").out


DETOUR, TWIN = (f"ModernCamemBERT-bio-base {name} (10B)" for name in ("CLM detour", "MLM twin"))


@pytest.fixture
def unequal(tmp_path: Path) -> Path:
    """Two models of unequal quality."""
    for model, quality in (("good", 0.9), ("bad", 0.5)):
        save_compared(tmp_path / "results", model, ("gad", "diamed"), quality)
    return tmp_path / "results"


def test_json_stands_alone_and_equals_the_library(biobench: Run, unequal: Path) -> None:
    said = biobench("compare", "good", "bad", "--json", "--rope", "1", "--average", "micro")
    assert said.err == ""
    held = compare("good", "bad", results_dir=unequal, rope=0.01, average="micro")
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
    biobench: Run, unequal: Path, arguments: tuple[str, ...], what: str, hint: str
) -> None:
    said = biobench("compare", *arguments)
    assert what in said.refusal()
    assert hint in said.err
