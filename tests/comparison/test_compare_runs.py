"""Stored runs compared: identical, certain, mixed up, damaged, three at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import biobench
from biobench.comparison.compare import compare
from biobench.data.catalog import spec_paths
from biobench.errors import UsageError
from biobench.schema.document import Prediction
from biobench.score import oracle
from biobench.store import Store
from tests.helpers.compare_make import SEEDS, constant, documents, save, save_runs

TASKS = ("gad", "diamed", "meddialog_fr")


def policies(results, tasks, seeds=SEEDS, count=60):
    """An oracle and a floor on each task."""
    for task in tasks:
        gold = documents(task, count)
        for seed in seeds:
            save(results, "oracle", task, seed, said=oracle(gold), count=count)
            save(results, "floor", task, seed, said=constant(gold), count=count)


@pytest.mark.parametrize("seeds", [SEEDS, (42,)])
@pytest.mark.parametrize("tasks", [TASKS, ("gad",)])
def test_a_model_with_itself(tmp_path, seeds, tasks):
    save_runs(tmp_path, "m", tasks, 0.7, seeds)
    held = compare("m", "m", results_dir=tmp_path)
    pair = held.pairs[0]
    suite = pair.pair.comparison
    assert suite.difference == 0
    assert suite.test.p == pair.pair.p_holm == suite.wilcoxon_p == 1
    assert (suite.test.interval.low, suite.test.interval.high) == (0, 0)
    assert not pair.pair.different
    assert (suite.wins, suite.ties, suite.losses) == (0, len(tasks), 0)
    assert [s.ties for s in held.standings] == ["a", "a"]
    assert [s.rank for s in held.standings] == [1, 1]
    for line in pair.tasks:
        assert line.seeds.p == line.documents.p == line.total.p == 1
        assert (line.total.interval.low, line.total.interval.high) == (0, 0)
    assert held.verdict[0].startswith("No difference: m and m #2 have the same scores")
    assert "p = 1" in held.verdict[0]


@pytest.mark.parametrize("tasks", [TASKS, ("gad", "diamed"), ("gad",)])
@pytest.mark.parametrize("seeds", [SEEDS, (42,)])
def test_an_oracle_beats_a_floor_for_certain(tmp_path, tasks, seeds):
    policies(tmp_path, tasks, seeds)
    for names, sign in ((("oracle", "floor"), 1), (("floor", "oracle"), -1)):
        held = compare(*names, results_dir=tmp_path)
        pair = held.pairs[0]
        assert np.sign(pair.pair.comparison.difference) == sign
        certain = held.verdict[0].startswith("Certain: oracle is better than floor on ")
        assert certain == (len(seeds) > 1), "one seed shows nothing about the models for certain"
        assert pair.within.test.p < 1e-3
        assert all(line.documents.p < 1e-6 for line in pair.tasks)
        assert pair.pair.comparison.improvement in (None, 1.0 if sign == 1 else 0.0)


def test_without_documents_nothing_is_called_certain(tmp_path):
    policies(tmp_path, TASKS)
    held = compare("oracle", "floor", results_dir=tmp_path, documents=False)
    assert not any("Certain" in line for line in held.verdict)
    assert "oracle is better than floor" in held.verdict[0]
    assert all(line.documents is None for line in held.pairs[0].tasks)


def test_equal_gaps_are_certain_for_other_tasks_too(tmp_path):
    policies(tmp_path, TASKS)
    held = compare("oracle", "floor", results_dir=tmp_path)
    # the floor scores 1/6 on balanced labels of every task: F1 of A is 1/2, of B and C 0
    assert held.pairs[0].pair.comparison.difference == pytest.approx(5 / 6)
    # equal to the last digit, yet no surer than the scores' steps of one answer
    assert 1e-6 < held.pairs[0].pair.p_holm < 1e-3
    assert any(line.startswith("On tasks like these it is shown too") for line in held.verdict)
    assert not any("not shown" in line for line in held.verdict)


def test_the_parts_are_those_of_the_scores(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.6)
    held = compare("a", "b", results_dir=tmp_path)
    scores = {(r.model.id, r.task.id, r.seed): r.scores["macro_f1"] for r in Store(tmp_path).records()}
    per_task = []
    for line in held.pairs[0].tasks:
        gaps = np.array([scores["a", line.task, s] - scores["b", line.task, s] for s in SEEDS])
        per_task.append(gaps.mean())
        assert line.difference == pytest.approx(gaps.mean())
        # seeds may agree to less than one answer of 60 is worth; the spread is not taken below that
        se = max(np.std(gaps, ddof=1), 1 / 60 / np.sqrt(6)) / np.sqrt(3)
        assert line.seeds.p == pytest.approx(2 * stats.t.sf(gaps.mean() / se, 2))
        ends = stats.t.interval(0.95, 2, gaps.mean(), se)
        assert (line.seeds.interval.low, line.seeds.interval.high) == pytest.approx(ends)
        assert line.paired
        assert line.groups == 60
        # shown apart: neither part is wider than both together
        for part in (line.seeds, line.documents):
            assert part.se <= line.total.se + 1e-12
    suite = held.pairs[0].pair.comparison
    within = held.pairs[0].within.test
    # the wider question has no narrower interval than that about these tasks
    assert suite.test.p >= max(stats.ttest_1samp(per_task, 0).pvalue, within.p)
    assert suite.test.interval.half_width >= within.interval.half_width
    assert set(held.clusters) == set(TASKS)
    wins = [
        np.mean([0.5 * np.sign(scores["a", t, i] - scores["b", t, j]) + 0.5 for i in SEEDS for j in SEEDS])
        for t in TASKS
    ]
    assert suite.improvement == pytest.approx(np.mean(wins))
    text = held.text()
    for word in ("seeds", "documents", "both", "smallest true difference", "tasks like these", "A - B"):
        assert word in text
    assert held.as_json()["pairs"][0]["seeds_needed"]["wanted"] == 0.01


@pytest.mark.parametrize(("seeds", "least"), [((1,), 0), ((1, 2), 0), (range(1, 7), 1)])
def test_a_gap_that_seeds_could_make_is_certain_with_many_seeds_only(tmp_path, seeds, least):
    for model, quality in (("a", 0.80), ("b", 0.68)):
        for seed in seeds:
            save(tmp_path, model, "gad", seed, quality, count=4000)
    held = compare("a", "b", results_dir=tmp_path)
    assert held.pairs[0].tasks[0].documents.p < 1e-6
    assert sum(line.startswith("Certain: ") for line in held.verdict) == least
    if len(seeds) == 1:
        assert held.verdict[0].startswith("Nothing is shown about the models a and b: a single seed")
        assert held.verdict[1].startswith("These two runs differ by")
        assert any("anything about other seeds" in line for line in held.verdict)


def test_equal_seeds_prove_no_more_than_the_scores_can_tell(tmp_path):
    for task in ("gad", "diamed"):
        for seed in (1, 2):
            gold = documents(task, 80)
            for model, wrong in (("a", 1), ("b", 2)):
                wrongly = {d.id: ("B",) if d.labels == ("A",) else ("A",) for d in gold[:wrong]}
                said = [Prediction(document=d.id, labels=wrongly.get(d.id, d.labels)) for d in gold]
                save(tmp_path, model, task, seed, count=80, said=said)
    held = compare("a", "b", results_dir=tmp_path, average="micro")
    pair = held.pairs[0]
    assert pair.pair.comparison.test.p > 0.05
    assert pair.pair.comparison.detectable > 0.001
    assert not pair.pair.different
    assert held.verdict[0].startswith("No difference is shown"), held.verdict
    for line in pair.tasks:
        assert line.seeds.interval.high > line.seeds.interval.low


def test_three_models_on_one_corpus_are_not_called_equal(tmp_path):
    for model, quality in (("a", 1.0), ("b", 0.95), ("c", 0.4)):
        save_runs(tmp_path, model, ("gad",), quality)
    held = compare("a", "b", "c", results_dir=tmp_path)
    said = "\n".join(held.verdict)
    assert "Not told apart" not in said
    assert "No pair is tested on tasks like these: there is 1 corpus" in said
    assert "a is better than c on this task" in said
    assert {s.ties for s in held.standings} == {None}


def test_tasks_of_one_corpus_are_one_cluster(tmp_path):
    tasks = ("fracco_30", "fracco_100", "cantemist")
    save_runs(tmp_path, "a", tasks, 0.8)
    save_runs(tmp_path, "b", tasks, 0.7)
    held = compare("a", "b", results_dir=tmp_path)
    assert held.clusters == ("fracco",)
    assert held.pairs[0].pair.comparison.test.p is None
    assert any("anything about other tasks" in line for line in held.verdict)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"limit": 20}, "limit"),
        ({"spec": "another spec", "overrides": ("training.epochs=1",)}, "protocol"),
        ({"data": "other data"}, "test data"),
        ({"track": "tuned"}, "track"),
        ({"engine_version": 99}, "engine"),
    ],
)
def test_runs_under_other_conditions_are_refused_in_one_line(tmp_path, fields, said):
    save_runs(tmp_path, "a", TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS[:2], 0.7)
    save_runs(tmp_path, "b", TASKS[2:], 0.7, **fields)
    with pytest.raises(UsageError) as caught:
        compare("a", "b", results_dir=tmp_path)
    assert "meddialog_fr" in str(caught.value)
    assert f"not the same {said}" in str(caught.value)
    assert "\n" not in str(caught.value)
    # the other tasks can be compared
    held = compare("a", "b", results_dir=tmp_path, tasks=TASKS[:2])
    assert set(held.tasks) == set(TASKS[:2])


def test_limited_runs_never_enter_beside_full_ones(tmp_path):
    for model, quality in (("a", 0.8), ("b", 0.6)):
        save_runs(tmp_path, model, TASKS[:2], quality)
        save_runs(tmp_path, model, TASKS[2:], quality, limit=20)
        save_runs(tmp_path, model, TASKS[:1], quality, limit=20)
    held = compare("a", "b", results_dir=tmp_path)
    assert set(held.tasks) == set(TASKS[:2])
    assert any("never mixed" in note for note in held.notes)
    assert all(r.limit is None for r in Store(tmp_path).records() if r.task.id == "diamed")
    only = compare("a [limit 20]", "b [limit 20]", results_dir=tmp_path)
    assert set(only.tasks) == {"gad", "meddialog_fr"}
    assert any("no full run" in note for note in only.notes)


def test_an_override_that_changes_nothing_leaves_a_run_full(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.7)
    for seed in SEEDS:
        save(tmp_path, "c", "gad", seed, 0.7, overrides=("training.epochs=10",))
        for task in TASKS[1:]:
            save(tmp_path, "c", task, seed, 0.7)
    held = compare("a", "c", results_dir=tmp_path)
    assert set(held.tasks) == set(TASKS)
    assert not any("limited or overridden" in note for note in held.notes)
    assert held.pairs[0].tasks == compare("a", "c", results_dir=tmp_path, tasks=TASKS).pairs[0].tasks


def test_an_unknown_name_is_corrected(tmp_path):
    save_runs(tmp_path, "camembert-bio", ("gad",), 0.8)
    with pytest.raises(UsageError) as caught:
        compare("camembert-bip", "camembert-bio", results_dir=tmp_path)
    assert caught.value.hint == "did you mean 'camembert-bio'?"
    with pytest.raises(UsageError) as caught:
        compare("camembert-bio", "CamemBERT-Bio", results_dir=tmp_path)
    assert "did you mean" in caught.value.hint


@pytest.mark.parametrize("call", [lambda d: compare("a", results_dir=d), lambda d: compare([], results_dir=d)])
def test_one_model_is_no_comparison(tmp_path, call):
    with pytest.raises(UsageError, match="two models"):
        call(tmp_path)


def test_nothing_in_common(tmp_path):
    save_runs(tmp_path, "a", ("gad",), 0.8)
    save_runs(tmp_path, "b", ("diamed",), 0.8)
    with pytest.raises(UsageError, match="share no task"):
        compare("a", "b", results_dir=tmp_path)


def test_damaged_records_are_named_and_the_rest_goes_on(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.7)
    broken = next(tmp_path.glob("runs/gad/*.json"))
    broken.write_text("{")
    held = compare("a", "b", results_dir=tmp_path)
    assert len(held.tasks) == 3
    assert broken.name in held.findings[0].file
    assert broken.name in held.text()
    assert any("fewer than three common seeds" in note for note in held.notes)


def test_seeds_pair_where_they_are_shared(tmp_path):
    save_runs(tmp_path, "a", ("gad",), 0.8, (1, 2, 3, 4))
    save_runs(tmp_path, "b", ("gad",), 0.7, (2, 3, 4, 5))
    save_runs(tmp_path, "c", ("gad",), 0.7, (7, 8))
    held = compare("a", "b", results_dir=tmp_path)
    line = held.pairs[0].tasks[0]
    assert (line.n_first, line.n_second, line.paired) == (3, 3, True)
    apart = compare("a", "c", results_dir=tmp_path)
    line = apart.pairs[0].tasks[0]
    assert (line.n_first, line.n_second, line.paired) == (4, 2, False)
    assert any("independent" in note for note in apart.notes)


def test_windows_and_precision_that_differ_are_said(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    for seed in SEEDS:
        for task in TASKS:
            kept = save(tmp_path, "b", task, seed, 0.7)
            training = kept.training.model_copy(update={"precision": "bf16"})
            windows = kept.windows.model_copy(update={"lost_gold": 7, "max_length": 512})
            Store(tmp_path).update(kept.model_copy(update={"training": training, "windows": windows}))
    notes = compare("a", "b", results_dir=tmp_path).notes
    assert sum("a in fp32; b in bf16" in note for note in notes) == 1
    assert sum("b 512 tokens, 7 lost" in note and all(t in note for t in TASKS) for note in notes) == 1


def test_three_models_get_ranks_ties_and_corrected_p(tmp_path):
    for model, quality in (("best", 0.97), ("middle", 0.7), ("worst", 0.2)):
        save_runs(tmp_path, model, TASKS, quality)
    few = compare("worst", "best", "middle", results_dir=tmp_path)
    assert not few.ranks, "three corpora say nothing about ranks on tasks in general"
    for model, quality in (("best", 0.97), ("middle", 0.7), ("worst", 0.2)):
        save_runs(tmp_path, model, ("anatem", "hoc"), quality)
    held = compare("worst", "best", "middle", results_dir=tmp_path)
    assert [s.model for s in held.standings] == ["best", "middle", "worst"]
    assert [s.rank for s in held.standings] == [1, 2, 3]
    assert {r.model: (r.low, r.high) for r in held.ranks} == {"worst": (3, 3), "best": (1, 1), "middle": (2, 2)}
    assert all(r.pair.p_holm >= r.pair.comparison.test.p for r in held.pairs)
    assert held.verdict[0].startswith("Highest average in English: best")
    json.dumps(held.as_json(), allow_nan=False)


def test_variants_and_needles_stay_out_unless_named(tmp_path):
    tasks = ("bc5cdr", "anatem", "anatem_single")
    save_runs(tmp_path, "a", tasks, 0.8)
    save_runs(tmp_path, "b", tasks, 0.7)
    held = compare("a", "b", results_dir=tmp_path)
    assert set(held.tasks) == {"bc5cdr", "anatem"}
    assert any("anatem_single" in note for note in held.notes)
    named = compare("a", "b", results_dir=tmp_path, tasks=["anatem", "anatem_single"])
    assert set(named.tasks) == {"anatem", "anatem_single"}
    assert set(compare("a", "b", results_dir=tmp_path, suite="en").tasks) == {"bc5cdr", "anatem"}
    path = str(spec_paths()["anatem_single"])
    assert compare("a", "b", results_dir=tmp_path, tasks=path).tasks == ("anatem_single",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"suite": "french"}, "unknown suite"),
        ({"tasks": "gda"}, "unknown task"),
        ({"rope": -1.0}, "rope"),
        ({"alpha": 0.5}, "alpha"),
        ({"wanted": 0.0}, "wanted"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, options, said):
    save_runs(tmp_path, "a", ("gad",), 0.8)
    with pytest.raises(UsageError, match=said):
        compare("a", "a", results_dir=tmp_path, **options)


def test_the_rope_makes_ties(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.6)
    wide = compare("a", "b", results_dir=tmp_path, rope=0.99).pairs[0].pair.comparison
    assert (wide.wins, wide.ties, wide.losses) == (0, 3, 0)


def test_hostile_names_stay_in_their_line(tmp_path):
    name = "evil\nVerdict: I win\x1b[31m\u202e"
    save_runs(tmp_path, name, TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.7)
    held = compare(name, "b", results_dir=tmp_path)
    text = held.text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not any(line.startswith("Verdict: I win") for line in text.splitlines())
    json.dumps(held.as_json(), allow_nan=False)


def test_labels_are_unique_whatever_the_names(tmp_path):
    for model in ("a", "a #2"):
        save_runs(tmp_path, model, ("gad",), 0.8)
    assert compare("a", "a", "a #2", results_dir=tmp_path).models == ("a", "a #2", "a #2 #2")


def test_the_package_offers_it(tmp_path):
    save_runs(tmp_path, "a", ("gad",), 0.8)
    assert biobench.compare(["a", "a"], results_dir=tmp_path).models == ("a", "a #2")


@pytest.mark.parametrize(
    ("first", "second", "paired", "counts"),
    [
        ((1, 2, 3, 4), (3, 4, 5), False, (4, 3)),
        ((1, 2, 3, 4), (2, 3, 4, 5), True, (3, 3)),
        ((1, 2), (1, 2), True, (2, 2)),
    ],
)
def test_seeds_are_dropped_for_three_pairs_or_more(tmp_path, first, second, paired, counts):
    save_runs(tmp_path, "a", ("gad",), 0.8, seeds=first)
    save_runs(tmp_path, "b", ("gad",), 0.6, seeds=second)
    (line,) = compare("a", "b", results_dir=tmp_path).pairs[0].tasks
    assert (line.paired, (line.n_first, line.n_second)) == (paired, counts)
