"""`compare --suite` with a declared suite: its own scores, and what was published for it."""

from __future__ import annotations

import pytest

from biobench.comparison.compare import compare
from biobench.errors import UsageError
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


def test_the_scores_that_the_suite_declares(store):
    result = compare("a", "b", results_dir=store, suite="blurb")
    assert set(result.tasks) == set(TASKS)
    assert result.metrics == {
        "bc5_chem": "micro_f1", "bc5_disease": "micro_f1", "ddi": "micro_f1_positive", "hoc_documents": "micro_f1",
        "pubmedqa": "accuracy",
    }  # fmt: skip


def test_printed_models_are_compared_by_the_printed_score(tmp_path):
    result = compare("PubMedBERT-abstracts [gu2021]", "BERT-base-uncased", results_dir=tmp_path, suite="blurb")
    assert len(result.tasks) == 13
    assert "printed mean is " in result.verdict[0]


def test_a_suite_of_ones_own_and_another_average(store, tmp_path, monkeypatch, capfd):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "id: mine\ntasks:\n  - {name: chem, task: bc5_chem, metric: macro_f1}\n  - {name: hoc, task: hoc_documents}\n"
    )
    shown = call(monkeypatch, capfd, "compare", "a", "b", "--results-dir", store, "--suite", path)
    assert "On the mean of bc5_chem and hoc_documents" in " ".join(shown.out.split())
    result = compare("a", "b", results_dir=store, suite=str(path))
    assert result.metrics == {"bc5_chem": "macro_f1", "hoc_documents": "micro_f1"}
    with pytest.raises(UsageError, match="by the score that it declares, not by macro"):
        compare("a", "b", results_dir=store, suite="blurb", average="macro")
    with pytest.raises(UsageError, match="unknown suite 'blrb'"):
        compare("a", "b", results_dir=store, suite="blrb")
