"""Suites: what they hold, how they are picked, and that their printed means are those of the copied values."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import biobench
from biobench.cli.main import app
from biobench.data.catalog import load_task
from biobench.data.suite import load_suite, matching, picked, pool, skipped, suite_tasks
from biobench.errors import SpecError, UsageError
from biobench.report.results import load
from biobench.report.suite import build_suite


def test_the_suites_have_their_tasks_and_each_has_a_spec_or_a_reason() -> None:
    sizes = {}
    for name in ("blurb", "drbenchmark"):
        declared = load_suite(name)
        assert declared is not None
        sizes[name] = len(declared.tasks)
        for member in declared.tasks:
            assert (member.task is None) == (member.needs is not None)
            if member.task is not None:
                loaded = load_task(member.task)
                assert loaded.spec.access == member.access, member.name
                assert member.metric is not None
    assert sizes == {"blurb": 13, "drbenchmark": 20}


def test_what_a_suite_leaves_out_is_named() -> None:
    lines = skipped("blurb")
    assert [line.split()[0] for line in lines] == ["ebm_pico", "bioasq"]
    assert skipped("fr") == []


def test_patterns_and_filters_pick_tasks() -> None:
    assert matching(["bc5*", "gad,hoc"]) == ["bc5_chem", "bc5_disease", "bc5cdr", "gad", "hoc"]
    assert matching(["*_synonyms"]) == ["bc5cdr_synonyms", "ncbi_disease_synonyms", "quaero_medline_synonyms"]
    with pytest.raises(UsageError, match="no task matches 'bc6"):
        matching(["bc6*"])
    french = picked(pool(), languages=["fr"], types=["token_ner"])
    assert {t.spec.language for t in french} == {"fr"}
    assert "mantra_emea" in {t.id for t in french}
    clinical = {t.id for t in picked(pool(), languages=["fr"], types=["token_ner"], tags=["clinical"])}
    assert "mantra_emea" in clinical
    assert "mantra_patents" not in clinical
    assert picked(pool(), tags=["no such tag"]) == []


def test_a_wrong_suite_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown suite 'blurp'") as caught:
        suite_tasks("blurp")
    assert caught.value.hint == "did you mean 'blurb'?"
    path = tmp_path / "mine.yaml"
    path.write_text("id: mine\ntasks: [gad, gad]\n", encoding="utf-8")
    with pytest.raises(SpecError, match="task 'gad' stands twice in the suite"):
        load_suite(str(path))
    path.write_text("id: mine\ntasks: [{name: x}]\n", encoding="utf-8")
    with pytest.raises(SpecError, match="'x' needs either a task or a reason"):
        load_suite(str(path))


def test_a_suite_of_ones_own_runs_and_is_reported_with_its_own_mean(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "id: mine\nname: Mine\nmean: types\ntasks:\n  - {name: topic, task: demo_topic, type: a, metric: accuracy}\n"
        "  - {name: ner, task: demo_ner, type: b, metric: micro_f1}\n",
        encoding="utf-8",
    )
    fast = {"overrides": ["training.epochs=1"], "device": "cpu", "gate": False}
    made = biobench.run("dummy", suite=str(path), seeds=1, results_dir=tmp_path / "out", **fast)  # type: ignore[arg-type]
    assert sorted(r.task for r in made) == ["demo_ner", "demo_topic"]
    declared = load_suite(str(path))
    assert declared is not None
    report = build_suite(load(tmp_path / "out"), declared, str(path))
    assert {(r.task, r.metric) for r in report.rows} == {("topic", "accuracy"), ("ner", "micro_f1")}
    (average,) = report.averages
    assert average.mean == pytest.approx(sum(r.mean for r in report.rows) / 2)
    assert (average.task, average.complete) == ("avg_mine", True)
    shown = CliRunner().invoke(app, ["report", "--results-dir", str(tmp_path / "out"), "--suite", str(path)])
    assert shown.exit_code == 0
    assert "Scores of Mine in percent, accuracy: topic; micro F1: ner" in " ".join(shown.output.split())


def test_a_part_of_a_suite_has_no_average_unless_asked_for(tmp_path: Path) -> None:
    declared = load_suite("blurb")
    assert declared is not None
    (tmp_path / "out").mkdir()
    results = load(tmp_path / "out")
    whole = build_suite(results, declared, "blurb")
    assert {r.complete for r in whole.averages} == {True}
    assert all(r.tasks == 13 for r in whole.averages)
    parts = build_suite(results, declared, "blurb", incomplete=True)
    partial = [r for r in parts.averages if not r.complete]
    assert partial
    assert all("of 13 blurb tasks" in r.notes[0] for r in partial)
    assert any("ebm_pico cannot be run" in note for note in whole.notes)
