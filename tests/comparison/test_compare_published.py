"""Published means alone, as computed by hand; `compare --suite` with a declared suite and its own
scores.
"""

from __future__ import annotations

import pytest
from scipy.stats import ttest_ind_from_stats

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from tests.helpers.cli_make import call
from tests.helpers.compare_make import SEEDS, save

DETOUR = "ModernCamemBERT-bio-base CLM detour (10B)"
TWIN = "ModernCamemBERT-bio-base MLM twin (10B)"

# Printed percentages, copied by hand from the published French table: task -> (detour, twin), by
# corpus.
PRINTED = {
    "fracco": {"fracco_30": (74.8, 69.9), "fracco_100": (60.1, 56.8), "cantemist": (71.0, 64.9)},
    "distemist": {"distemist": (25.5, 23.5)},
    "meddialog_fr": {"meddialog_fr": (63.6, 62.5)},
    "diamed": {"diamed": (67.4, 63.4)},
    "quaero_emea": {"quaero_emea": (68.6, 68.5)},
    "quaero_medline": {"quaero_medline": (61.9, 61.4)},
}


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    return compare(DETOUR, TWIN, results_dir=tmp_path_factory.mktemp("empty"))


def test_printed_means_are_not_tested(held):
    means = [sum(a - b for a, b in tasks.values()) / len(tasks) for tasks in PRINTED.values()]
    (pair,) = held.pairs
    assert (
        100 * pair.difference
        == pytest.approx(sum(means) / len(means))
        == pytest.approx(2.078, abs=5e-4)
    )
    assert (pair.wins, pair.ties, pair.losses) == (8, 0, 0)
    assert (pair.here, pair.beyond, pair.verdict.here) == (None, None, "not tested")
    assert held.verdict[0] == (
        f"On the mean of 8 tasks over 6 corpora (each task's own average), {DETOUR}'s mean of "
        f"printed scores is 2.1 points above the mean of printed scores of {TWIN}; both models "
        f"have a printed mean without spread, so not tested."
    )

    lines = {line.task: line for line in held.pairs[0].tasks}
    for corpus, tasks in PRINTED.items():
        for task, (a, b) in tasks.items():
            line = lines.pop(task)
            assert line.corpus == corpus
            assert (100 * line.first, 100 * line.second) == (pytest.approx(a), pytest.approx(b))
            assert (line.n_first, line.n_second) == (0, 0)
            assert line.seeds is line.documents is line.total is None
    assert not lines


def test_published_values_are_compared_only_under_their_own_average(tmp_path):
    with pytest.raises(UsageError) as caught:
        compare(DETOUR, TWIN, results_dir=tmp_path, average="macro")
    assert "macro" in str(caught.value)
    assert "--average paper" in caught.value.hint
    micro = compare(DETOUR, TWIN, results_dir=tmp_path, average="micro")
    assert "diamed" not in micro.tasks
    assert any("diamed" in note for note in micro.notes)


TASKS = {name: name for name in ("bc5_chem", "bc5_disease", "ddi", "pubmedqa")} | {
    "hoc_documents": "hoc"
}
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
        "bc5_chem": "micro_f1",
        "bc5_disease": "micro_f1",
        "ddi": "micro_f1_positive",
        "hoc_documents": "micro_f1",
        "pubmedqa": "accuracy",
    }


def test_printed_models_of_a_suite_are_compared_by_the_printed_score(tmp_path):
    result = compare(
        "PubMedBERT-abstracts [gu2021]", "BERT-base-uncased", results_dir=tmp_path, suite="blurb"
    )
    assert len(result.tasks) == 13
    assert "'s mean of printed scores is " in result.verdict[0]
    assert "both models have a printed mean without spread, so not tested" in result.verdict[0]


def test_printed_spreads_over_seeds_are_tested_without_test_set_noise(tmp_path):
    """The numbers of the INDUS paper's table on one task, by Welch's t."""
    names, tasks = ("INDUS-base", "RoBERTa-base [indus]"), ["jnlpba_single"]
    result = compare(names, results_dir=tmp_path, suite="blurb", tasks=tasks)
    (pair,) = result.pairs
    expected = ttest_ind_from_stats(0.803, 0.002, 10, 0.791, 0.002, 10, equal_var=False)
    assert pair.here.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert pair.verdict.here == "shown"
    assert "over seeds alone: test-set noise is not in it" in result.verdict[0]
    text = result.text()
    assert "without spread" not in text


def test_a_suite_of_ones_own_and_another_average(store, tmp_path, monkeypatch, capfd):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "id: mine\ntasks:\n  - {name: chem, task: bc5_chem, metric: macro_f1}\n  - {name: hoc, "
        "task: hoc_documents}\n"
    )
    shown = call(monkeypatch, capfd, "compare", "a", "b", "--results-dir", store, "--suite", path)
    assert "On the mean of bc5_chem and hoc_documents" in " ".join(shown.out.split())
    result = compare("a", "b", results_dir=store, suite=str(path))
    assert result.metrics == {"bc5_chem": "macro_f1", "hoc_documents": "micro_f1"}
    with pytest.raises(UsageError, match="by the score that it declares, not by macro"):
        compare("a", "b", results_dir=store, suite="blurb", average="macro")
    with pytest.raises(UsageError, match="unknown suite 'blrb'"):
        compare("a", "b", results_dir=store, suite="blrb")
