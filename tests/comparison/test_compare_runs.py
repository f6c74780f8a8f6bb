"""Stored runs compared: identical, far apart, under other conditions, damaged, refused by the gate,
three at a time.
"""

from __future__ import annotations

import json
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

from biobench.comparison.compare import compare
from biobench.data.catalog import spec_paths
from biobench.errors import UsageError
from biobench.kinds.needle import within_window
from biobench.reporting.tasks import NEEDLE, shipped
from biobench.score import oracle
from tests.helpers import report_make
from tests.helpers.baselines_make import play
from tests.helpers.compare_make import (
    SEEDS,
    constant,
    documents,
    predictions,
    save,
    save_errors,
    save_pair,
    save_runs,
)
from tests.helpers.store_make import RECORD

TASKS = ("gad", "diamed", "meddialog_fr")


@pytest.mark.parametrize("seeds", [SEEDS, (42,)])
def test_models_that_say_the_same(tmp_path, seeds):
    for task in TASKS:
        gold = documents(task, 60)
        for seed in seeds:
            said = predictions(gold, 0.7, f"{task} {seed}")
            for model in ("m", "n"):
                save(tmp_path, model, task, seed, said=said, count=60)
    held = compare("m", "n", results_dir=tmp_path)
    for pair in held.pairs:
        assert pair.difference == 0
        assert pair.verdict.equal
        assert "shown" not in (pair.verdict.here, pair.verdict.beyond)
        assert (pair.wins, pair.losses) == (0, 0)
        if len(seeds) > 1:
            assert pair.here.p == 1
            assert pair.here.interval.low == -pair.here.interval.high
    assert [s.rank for s in held.ranking] == [1] * len(held.ranking)
    assert {s.ranks for s in held.ranking} == {(1, 2)}
    assert "both models have the same scores. Not" in held.verdict[0]


@pytest.mark.parametrize("tasks", [TASKS, ("gad",)])
@pytest.mark.parametrize("seeds", [SEEDS, (42,)])
def test_all_right_against_one_answer_for_everything(tmp_path, tasks, seeds):
    for task in tasks:
        gold = documents(task, 60)
        for seed in seeds:
            save(tmp_path, "oracle", task, seed, said=oracle(gold), count=60)
            save(tmp_path, "constant", task, seed, said=constant(gold), count=60)
    heads = set()
    for names in (("oracle", "constant"), ("constant", "oracle")):
        held = compare(*names, results_dir=tmp_path, pooled=True)
        heads.add(held.verdict[0])
        assert held._repr_html_() == f"<pre>{escape(str(held))}</pre>"
        assert repr(held).splitlines()[:-1] == list(held.verdict)
        (pair,) = held.pairs
        assert (pair.better, pair.worse) == ("oracle", "constant")
        assert all(line.documents.p < 1e-6 for line in pair.tasks)
        if len(seeds) > 1:
            assert pair.verdict.here == "shown"
        else:
            assert (pair.verdict.here, pair.verdict.beyond) == ("not tested", "not tested")
            assert "both models have one seed" in held.verdict[0]
    assert len(heads) == 1, "the sign is that of the better one, whoever is named first"


def test_a_failed_run_is_said_in_the_same_sentence(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.9, (1, 2, 3, 4))
    save_runs(tmp_path, "b", TASKS, 0.8, (1, 2, 3))
    for task in TASKS:
        save(tmp_path, "b", task, 4, 0.1 if task == "gad" else 0.8)
    held = compare("a", "b", results_dir=tmp_path, pooled=True)
    assert [(f.model, f.task, f.seed) for f in held.failed] == [("b", "gad", 4)]
    assert "over seeds and test sets, counting 1 failed run (b on gad, seed 4)." in held.verdict[0]


@pytest.mark.parametrize(("level", "guessing"), [(0.55, True), (0.5, True), (0.1, False)])
def test_a_model_that_is_not_above_guessing_never_leads(tmp_path, level, guessing):
    for task in TASKS:
        play(tmp_path, task, level)
    save_pair(tmp_path, TASKS, 0.5, 0.2, (1, 2, 3, 4))
    held = compare("a", "b", results_dir=tmp_path, pooled=True)
    (pair,) = held.pairs
    assert pair.here.p < 0.05
    assert pair.verdict.guessing == guessing
    assert (pair.verdict.here == "shown") != guessing
    assert ("Not shown: a is not above guessing." in held.verdict[0]) == guessing
    assert {s.ranks for s in held.ranking} == ({(1, 2)} if guessing else {(1, 1), (2, 2)})


def test_equal_seeds_prove_no_more_than_the_scores_can_tell(tmp_path):
    for seed in (1, 2, 3):
        save_errors(tmp_path, "a", "gad", seed, range(1), 80)
        save_errors(tmp_path, "b", "gad", seed, range(2), 80)
    pair = compare("a", "b", results_dir=tmp_path, average="micro").pairs[0]
    assert pair.here.p > 0.05
    assert pair.detectable > 0.001
    assert (pair.verdict.here, pair.verdict.beyond) == ("not shown", "not tested")
    assert all(line.seeds.interval().half_width > 0 for line in pair.tasks)


def test_tasks_of_one_corpus_are_one_cluster(tmp_path):
    tasks = ("fracco_30", "fracco_100", "cantemist")
    save_pair(tmp_path, tasks, 0.8, 0.7)
    held = compare("a", "b", results_dir=tmp_path)
    assert {line.corpus for line in held.pairs[0].tasks} == {"fracco"}
    assert held.pairs[0].here is not None
    assert held.pairs[0].beyond is None
    assert "Not tested for other tasks like these: one corpus." in held.verdict[0]


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


def test_limited_runs_are_never_mixed_with_full_ones(tmp_path):
    for model, quality in (("a", 0.8), ("b", 0.6)):
        save_runs(tmp_path, model, TASKS[:2], quality)
        save_runs(tmp_path, model, TASKS[2:], quality, limit=20)
        save_runs(tmp_path, model, TASKS[:1], quality, limit=20)
    held = compare("a", "b", results_dir=tmp_path)
    assert set(held.tasks) == set(TASKS[:2])
    assert any("never mixed" in note for note in held.notes)
    only = compare("a [limit 20]", "b [limit 20]", results_dir=tmp_path)
    assert set(only.tasks) == {"gad", "meddialog_fr"}
    assert any("no full run" in note for note in only.notes)
    for model in "ab":
        save_runs(tmp_path, model, ("needle_fr",), 0.7)
    held = compare("a", "b", results_dir=tmp_path)
    assert "needle_fr" not in held.tasks
    assert any("needle tasks are excluded" in note for note in held.notes)
    assert compare("a", "b", results_dir=tmp_path, suite="needle").tasks == ("needle_fr",)


def test_damaged_records_are_named_and_the_rest_goes_on(tmp_path):
    results = tmp_path / ("a-long-name-" * 12)  # of which the file's name is not cut off
    save_pair(results, TASKS, 0.8, 0.7)
    broken = next(results.glob("runs/gad/*.json"))
    broken.write_text("{")
    held = compare("a", "b", results_dir=results)
    assert len(held.tasks) == 3
    assert broken.name in held.findings[0].file
    assert broken.name in held.text()
    untested = next(pair for pair in held.pairs if pair.here is None)
    assert untested.reason.endswith("has two seeds on gad")


def test_windows_and_precision_that_differ_are_said(tmp_path):
    save_runs(tmp_path, "a", TASKS, 0.8)
    training = RECORD.training.model_copy(update={"precision": "bf16"})
    windows = RECORD.windows.model_copy(update={"lost_gold": 7, "max_length": 512})
    save_runs(tmp_path, "b", TASKS, 0.7, training=training, windows=windows)
    notes = compare("a", "b", results_dir=tmp_path).notes
    assert sum("a in fp32; b in bf16" in note for note in notes) == 1
    (note,) = (note for note in notes if "b 512 tokens, 7 lost" in note)
    assert all(task in note for task in TASKS)


def test_variants_are_excluded_unless_named(tmp_path):
    tasks = ("bc5cdr", "anatem", "anatem_single")
    save_pair(tmp_path, tasks, 0.8, 0.7)
    held = compare("a", "b", results_dir=tmp_path)
    assert set(held.tasks) == {"bc5cdr", "anatem"}
    assert any("anatem_single" in note for note in held.notes)
    named = compare("a", "b", results_dir=tmp_path, tasks=["anatem", "anatem_single"])
    assert set(named.tasks) == {"anatem", "anatem_single"}
    assert set(compare("a", "b", results_dir=tmp_path, suite="en").tasks) == {"bc5cdr", "anatem"}
    path = str(spec_paths()["anatem_single"])
    assert compare("a", "b", results_dir=tmp_path, tasks=path).tasks == ("anatem_single",)


@pytest.mark.parametrize(("options", "said"), [({"rope": -1.0}, "rope"), ({"alpha": 0.5}, "alpha")])
def test_wrong_options_are_one_line(tmp_path, options, said):
    save_runs(tmp_path, "a", ("gad",), 0.8)
    with pytest.raises(UsageError, match=said):
        compare("a", "a", results_dir=tmp_path, **options)


@pytest.mark.parametrize(
    ("seeds", "tasks", "said"),
    [
        (
            range(1, 5),
            15,
            "not tested whether models are the same within 5 points where one has not 5 seeds",
        ),
        (range(1, 6), 11, "not tested whether models are the same within 5 points"),
        (range(1, 6), 12, "Shown to be the same within 5 points on these tasks (90% interval "),
    ],
)
def test_sameness_needs_five_seeds_and_enough_runs(tmp_path, seeds, tasks, said):
    chosen = [info.id for info in shipped().values() if info.type != NEEDLE and info.in_suite]
    chosen = chosen[:tasks]
    for model in "ab":
        save_runs(tmp_path, model, chosen, 0.9, tuple(seeds), count=200)
    held = compare("a", "b", results_dir=tmp_path, rope=0.05, pooled=True)
    assert any(line.startswith(said) for line in (*held.verdict, *held.notes)), held.verdict
    assert (held.pairs[0].wins, held.pairs[0].ties, held.pairs[0].losses) == (0, tasks, 0)
    tight = compare("a", "b", results_dir=tmp_path, rope=0.001, pooled=True)
    assert not any(line.startswith("Shown to be") for line in tight.verdict)


def test_hostile_names_stay_in_their_line(tmp_path):
    name = "evil\nVerdict: I win\x1b[31m\u202e"
    save_runs(tmp_path, name, TASKS, 0.8)
    save_runs(tmp_path, "b", TASKS, 0.7)
    held = compare(name, "b", results_dir=tmp_path)
    assert not {"\x1b", "\u202e"} & set(held.text())
    assert not any(line.startswith("Verdict: I win") for line in held.text().splitlines())
    json.dumps(held.as_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ((1, 2, 3, 4), (3, 4, 5), ""),
        ((1, 2, 3), range(10, 19), ""),
        ((1, 2), (1, 2, 3), "a has two seeds on gad"),
        ((1, 2, 3), (1,), "b has one seed on gad"),
    ],
)
def test_all_seeds_of_both_models_count_and_three_are_needed(tmp_path, first, second, reason):
    save_runs(tmp_path, "a", ("gad",), 0.8, seeds=first)
    save_runs(tmp_path, "b", ("gad",), 0.6, seeds=second)
    (pair,) = compare("a", "b", results_dir=tmp_path).pairs
    (line,) = pair.tasks
    assert (line.n_first, line.n_second) == (len(first), len(second))
    assert pair.reason == reason
    assert (pair.here is None) == (line.total is None) == bool(reason)
    assert line.documents is not None


def test_runs_of_the_shipped_spec_go_before_those_of_an_older_one(tmp_path):
    save_pair(tmp_path, ("gad",), 0.9, 0.4)
    save_pair(tmp_path, ("gad",), 0.2, 0.7, spec="f" * 64)
    (line,) = compare("a", "b", results_dir=tmp_path).pairs[0].tasks
    assert line.first > 0.8 > 0.5 > line.second


def test_of_two_sets_of_weights_by_one_name_one_must_be_named(tmp_path):
    for digit, score in (("1", 0.5), ("2", 0.9)):
        report_make.save_run(tmp_path, "a", "gad", 42, score, weights=digit * 64)
    report_make.save_run(tmp_path, "b", "gad", 42, 0.7)
    with pytest.raises(UsageError, match="gad: 'a' has runs of different weights") as caught:
        compare("a", "b", results_dir=tmp_path)
    assert caught.value.hint == "name one: 'a [weights 11111111]', 'a [weights 22222222]'"
    (line,) = compare("a [weights 22222222]", "b", results_dir=tmp_path).pairs[0].tasks
    assert line.difference == pytest.approx(0.2)


def test_only_needle_examples_of_whole_tokens_are_cut_by_the_window():
    plans = [None]
    for length, fit in ((512, "tokens"), (513, "tokens"), (511, "tokens"), (9999, "words")):
        plans.append(SimpleNamespace(length=length, fit=fit))
    documents = [SimpleNamespace(plan=plan) for plan in plans]
    assert within_window(documents, 512) == [documents[i] for i in (0, 1, 3, 4)]


@pytest.mark.parametrize("seeds", [(1, 2), (3, 4, 5, 6)])
def test_fewer_or_other_seeds_of_a_third_take_nothing_from_a_pair(tmp_path, seeds):
    save_pair(tmp_path, TASKS, 0.8, 0.7, (1, 2, 3, 4, 5))
    save_runs(tmp_path, "c", TASKS, 0.6, seeds)
    alone = compare("a", "b", results_dir=tmp_path, pooled=True)
    many = compare("a", "b", "c", results_dir=tmp_path, pooled=True)
    assert [(p.first, p.second) for p in many.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert many.pairs[0].tasks == alone.pairs[0].tasks
    assert many.pairs[0].answer == alone.pairs[0].answer
    assert many.pairs[0].wider_answer == alone.pairs[0].wider_answer
    ranked = next(m for m in many.ranking if m.model == "a")
    assert ranked.score == pytest.approx(np.mean([line.first for line in alone.pairs[0].tasks]))
    assert {line.n_second for line in many.pairs[1].tasks} == {len(seeds)}


def test_runs_that_the_gate_refuses_are_named_with_the_reason(tmp_path):
    for model in ("a", "b"):
        save_runs(tmp_path, model, ("gad", "diamed"), 0.7)
    play(tmp_path, "gad", 0.3)
    play(tmp_path, "diamed", 0.1, why="offsets are shifted", made="2026-02-01T00:00:00+00:00")
    held = compare("a", "b", results_dir=tmp_path)
    assert held.tasks == ("gad",)
    line = "diamed fails its gate, its runs are not compared: offsets are shifted"
    assert held.text().count(line) == 1
    assert not any(
        "diamed" in note for note in compare("a", "b", results_dir=tmp_path, tasks=["gad"]).notes
    )
    with pytest.raises(UsageError) as caught:
        compare("a", "b", results_dir=tmp_path, tasks=["diamed"])
    assert line in caught.value.hint
    play(tmp_path, "gad", 0.3, why="labels are shuffled", made="2026-02-01T00:00:00+00:00")
    with pytest.raises(
        UsageError, match="all runs of 'a' \\(diamed, gad\\) are on data that fails its gate"
    ) as caught:
        compare("a", "b", results_dir=tmp_path)
    assert caught.value.hint == "offsets are shifted; labels are shuffled"
