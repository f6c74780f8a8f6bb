"""`report` as a stranger meets it: short, own runs first, readable at 80 columns, everything on demand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from biobench.report.frame import build
from biobench.report.printers import to_text
from biobench.report.results import load
from tests.helpers.cli_make import Run
from tests.helpers.report_make import save_runs

GOLDEN = Path(__file__).parent / "golden"


def same_as_golden(text: str, name: str) -> None:
    """`UPDATE_GOLDEN=1` writes the file anew; then look at it."""
    path = GOLDEN / name
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
    score = "| gad" if format_ == "md" else "gad"
    assert score in out
    assert out.index("my-encoder") < out.index("PubMedBERT")
    for absent in ("jnlpba", "DrBERT"):
        assert absent not in out
    assert "jnlpba" in biobench("report", "--source", "published", "--average", "paper", "--format", format_).out


@pytest.mark.parametrize("option", ["--per-seed", "--per-label", "--probabilities"])
def test_what_only_data_formats_hold_is_refused_elsewhere(option: str, biobench: Run, results: Path) -> None:
    assert biobench("report", option).refusal() == f"{option} has no place in a table"


def test_a_list_with_commas_is_several_tasks_and_sources(biobench: Run, results: Path) -> None:
    apart = biobench("report", "--results-dir", results, "--task", "gad", "--task", "hoc", "--source", "run")
    assert biobench("report", "--results-dir", results, "--task", "gad,hoc", "--source", "run") == apart
    assert "hoc" in apart.out
    assert " hoc " not in biobench("report", "--results-dir", results, "--task", "gad,bc5cdr", "--source", "run").out
