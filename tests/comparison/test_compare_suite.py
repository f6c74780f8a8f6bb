"""`compare --suite` with a declared suite: its own scores, its own mean, and what was published for it."""

from __future__ import annotations

import math

import pytest

from biobench.comparison.compare import compare
from biobench.data.suite import load_suite
from biobench.errors import UsageError
from biobench.report.suite import suite_mean
from tests.helpers.cli_make import call
from tests.helpers.compare_make import SEEDS, save

TASKS = {name: name for name in ("bc5_chem", "bc5_disease", "ddi", "pubmedqa")} | {"hoc_documents": "hoc"}
"""Task to its name in the suite."""


@pytest.fixture
def store(tmp_path):
    for model, quality in (("a", 0.8), ("b", 0.6)):
        for task in TASKS:
            for seed in SEEDS:
                save(tmp_path, model, task, seed, quality, identity={"negative_label": "A"})
        save(tmp_path, model, "gad_folds", 42, quality)  # not of the suite
        save(tmp_path, model, "anatem", 42, quality)
    return tmp_path


def test_the_suites_scores_mean_and_pairs(store):
    result = compare("a", "b", results_dir=store, suite="blurb")
    assert set(result.tasks) == set(TASKS)
    assert result.metrics == {
        "bc5_chem": "micro_f1", "bc5_disease": "micro_f1", "ddi": "micro_f1_positive", "hoc_documents": "micro_f1",
        "pubmedqa": "accuracy",
    }  # fmt: skip
    declared = load_suite("blurb")
    lines = {line.task: line for line in result.pairs[0].tasks}
    for side, model in (("first", "a"), ("second", "b")):
        scores = {TASKS[task]: getattr(line, side) for task, line in lines.items()}
        assert result.declared.means[model] == pytest.approx(suite_mean(declared, scores))
    # two tasks of entities share their type's quarter, each other type has one task
    weights = {"bc5_chem": 1 / 8, "bc5_disease": 1 / 8, "ddi": 1 / 4, "hoc_documents": 1 / 4, "pubmedqa": 1 / 4}
    test = result.declared.tests["a", "b"]
    assert test.estimate == pytest.approx(result.declared.means["a"] - result.declared.means["b"])
    assert test.se == pytest.approx(math.sqrt(sum((w * lines[t].total.se) ** 2 for t, w in weights.items())))
    assert (result.declared.tasks, result.declared.needed, result.declared.is_whole) == (5, 13, False)
    assert "Mean of BLURB, over types of their tasks' means (5 of 13 tasks: not the suite's score)" in result.text()
    assert result.as_json()["suite"]["means"]["a"] == result.declared.means["a"]


def test_printed_models_are_compared_by_the_printed_score(tmp_path):
    result = compare("PubMedBERT-abstracts [gu2021]", "BERT-base-uncased", results_dir=tmp_path, suite="blurb")
    assert len(result.tasks) == 13
    assert result.declared.is_whole
    means = {model: round(100 * mean, 2) for model, mean in result.declared.means.items()}
    assert means == {"PubMedBERT-abstracts [gu2021]": 81.16, "BERT-base-uncased": 76.11}
    assert result.declared.tests["PubMedBERT-abstracts [gu2021]", "BERT-base-uncased"] is None
    assert "not the suite's score" not in result.text()


def test_a_suite_of_ones_own_and_another_average(store, tmp_path, monkeypatch, capfd):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "id: mine\ntasks:\n  - {name: chem, task: bc5_chem, metric: macro_f1}\n  - {name: hoc, task: hoc_documents}\n"
    )
    shown = call(monkeypatch, capfd, "compare", "a", "b", "--results-dir", store, "--suite", path)
    assert "Mean of mine, over tasks" in shown.out
    result = compare("a", "b", results_dir=store, suite=str(path))
    assert result.metrics == {"bc5_chem": "macro_f1", "hoc_documents": "micro_f1"}
    with pytest.raises(UsageError, match="by the score that it declares, not by macro"):
        compare("a", "b", results_dir=store, suite="blurb", average="macro")
    with pytest.raises(UsageError, match="unknown suite 'blrb'"):
        compare("a", "b", results_dir=store, suite="blrb")
