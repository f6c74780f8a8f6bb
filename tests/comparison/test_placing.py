"""The ranks of the board and the verdict of `compare` are of one kind: no pair is told apart in one place alone."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from biobench.comparison.compare import compare
from biobench.comparison.placing import MOST, differ_within, holds_elsewhere, place
from biobench.comparison.standing import first_pair, suite_order
from biobench.report.results import load
from biobench.report.tasks import shipped
from biobench.store import Store
from tests.helpers.report_make import save_run, save_runs

FRENCH = [i.id for i in shipped().values() if i.suite == "fr" and i.in_suite]
MODELS = ("alpha", "beta", "gamma", "delta")


@pytest.mark.parametrize(("seed", "runs", "gap"), [(1, 5, 0.004), (2, 3, 0.002), (3, 2, 0.01), (4, 1, 0.05)])
def test_board_and_compare_agree_on_every_pair(tmp_path, seed, runs, gap):
    chance = random.Random(seed)
    for place_, model in enumerate(MODELS):
        for task in FRENCH:
            level = 0.6 - gap * place_ + chance.gauss(0, gap)
            save_runs(tmp_path, model, task, {42 + s: level + chance.gauss(0, 0.01) for s in range(runs)})
    placed = place(load(tmp_path), MODELS, "macro", suite="fr")
    for i, first in enumerate(MODELS):
        for second in MODELS[i + 1 :]:
            (pair,) = compare([first, second], results_dir=tmp_path, suite="fr", documents=False).pairs
            assert differ_within(pair.within) == (second not in placed[first].alike)
            assert (first in placed[second].alike) == (second in placed[first].alike)
            if differ_within(pair.within) and pair.within.difference > 0:
                assert placed[first].best <= placed[second].worst
    for name, own in placed.items():
        assert own.worst - own.best == len(own.alike), name
    if runs == 1:
        assert all((own.best, own.worst) == (1, len(MODELS)) for own in placed.values()), "no seeds, nothing is known"


def test_printed_means_and_runs_of_other_conditions_are_told_apart_from_nothing(tmp_path):
    for task in FRENCH:
        save_runs(tmp_path, "mine", task, {42: 0.9, 43: 0.91, 44: 0.92})
        save_run(tmp_path, "tuned", task, 42, 0.1, track="tuned")
    placed = place(load(tmp_path), ["mine", "tuned [tuned]", "DrBERT"], "paper", suite="fr")
    assert {(p.best, p.worst) for p in placed.values()} == {(1, 3)}


def test_no_more_than_the_first_are_placed(tmp_path):
    names = [f"m{i:02}" for i in range(MOST + 1)]
    for place_, name in enumerate(names):
        save_runs(tmp_path, name, "gad", {42: 0.9 - place_ / 100, 43: 0.901 - place_ / 100, 44: 0.9 - place_ / 100})
    placed = place(load(tmp_path), names, "macro", tasks=["gad"])
    assert list(placed) == names[:MOST]
    assert (placed["m00"].best, placed["m29"].worst) == (1, MOST)


def test_ranks_read_no_record_and_import_no_slow_part(tmp_path, monkeypatch):
    for task in FRENCH:
        for model, score in (("alpha", 0.6), ("beta", 0.5)):
            save_runs(tmp_path, model, task, {42: score, 43: score + 0.01, 44: score + 0.02})
    results = load(tmp_path)

    def refuse(*_args):
        raise AssertionError("a record is read")

    monkeypatch.setattr(Store, "get", refuse)
    assert {p.best for p in place(results, ["alpha", "beta"], "macro", suite="fr").values()} <= {1, 2}
    slow = ("scipy.stats", "scipy.optimize", "statsmodels", "sklearn", "torch")
    asked = f"import sys, biobench.comparison.standing; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_model_on_other_data_leaves_the_ranks_of_the_rest(tmp_path):
    for model, score, data in (("alpha", 0.9, "d"), ("beta", 0.5, "d"), ("gamma", 0.7, "other")):
        save_runs(tmp_path, model, "gad", {42: score, 43: score + 0.01, 44: score + 0.02}, data=data)
    placed = place(load(tmp_path), ["alpha", "gamma", "beta"], "macro", tasks=["gad"])
    assert {name: (p.best, p.worst) for name, p in placed.items()} == {"alpha": (1, 2), "gamma": (1, 3), "beta": (2, 3)}


@pytest.mark.parametrize(("seed", "gap", "spread"), [(1, 0.05, 0.002), (2, 0.01, 0.02), (3, 0.0, 0.01)])
def test_a_lead_on_other_tasks_is_what_compare_shows(tmp_path, seed, gap, spread):
    chance = random.Random(seed)
    for place_, model in enumerate(MODELS[:2]):
        for task in FRENCH:
            level = 0.6 - gap * place_ + chance.gauss(0, spread)
            save_runs(tmp_path, model, task, {42 + s: level + chance.gauss(0, 0.004) for s in range(3)})
    store = Store(tmp_path)
    for held in store.records():
        # as much gold as corpora have: a score over three answers moves in thirds, and nothing is told apart
        labels = {label: row | {"support": 3000.0} for label, row in held.per_label.items()}
        store.update(held.model_copy(update={"per_label": labels}))
    results = load(tmp_path)
    for first, second in (MODELS[:2], MODELS[1::-1]):
        (pair,) = compare([first, second], results_dir=tmp_path, suite="fr", documents=False).pairs
        shown = pair.pair.different and not pair.unspoken(0.05) and pair.pair.comparison.difference > 0
        assert holds_elsewhere(results, first, [second], "macro", suite="fr") == shown
    assert holds_elsewhere(results, "alpha", ["beta"], "macro", suite="fr") == (gap == 0.05)
    assert holds_elsewhere(results, "alpha", [], "macro", suite="fr") is None
    assert holds_elsewhere(results, "alpha", ["beta"], "macro", tasks=FRENCH[:1]) is None, "one corpus"


def test_the_suite_with_the_most_of_its_tasks_run_comes_first(tmp_path):
    assert suite_order(load(tmp_path)) == ["fr", "en", "needle"]
    for model, score in (("alpha", 0.6), ("beta", 0.5), ("gamma", 0.4)):
        for task in (FRENCH[0], "gad", "bc5cdr", "hoc"):
            save_runs(tmp_path, model, task, {42: score, 43: score + 0.01, 44: score + 0.02})
    results = load(tmp_path)
    assert suite_order(results) == ["en", "fr", "needle"]
    assert first_pair(results, "macro") == ("en", ("alpha", "beta"))


def test_without_runs_the_first_pair_is_printed(tmp_path):
    suite, names = first_pair(load(tmp_path), "paper")
    assert suite == "fr"
    assert len(names) == 2
