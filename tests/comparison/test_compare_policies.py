"""Baselines and the oracle take part: they have no seeds and no predictions, so nothing is tested of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from biobench.store import Store
from tests.helpers.baselines_make import play
from tests.helpers.compare_make import SEEDS, save_runs

TASKS = ("gad", "diamed", "meddialog_fr")
FLOORS = {"gad": 0.3, "diamed": 0.1, "meddialog_fr": 0.2}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for task, score in FLOORS.items():
        play(tmp_path, task, score)
    return tmp_path


def test_the_oracle_against_a_baseline_is_not_tested(results):
    for names, sign in ((("oracle", "majority"), 1), (("majority", "oracle"), -1)):
        held = compare(*names, results_dir=results, pooled=True)
        (pair,) = held.pairs
        assert pair.difference == pytest.approx(sign * (1 - np.mean([FLOORS[t] for t in TASKS])))
        assert (pair.better, pair.verdict.here) == ("oracle", "not tested")
        assert "baselines are stored without predictions" in held.verdict[0]
        assert "baseline" in held.text()


def test_a_model_against_a_floor_is_a_t_over_its_seeds(results):
    save_runs(results, "m", TASKS, 0.7)
    held = compare("m", "majority", results_dir=results)
    scores = {(r.task.id, r.seed): r.scores["macro_f1"] for r in Store(results).records()}
    for line in held.pairs[0].tasks:
        own = [scores[line.task, seed] for seed in SEEDS]
        assert line.difference == pytest.approx(np.mean(own) - FLOORS[line.task])
        assert line.seeds.p == pytest.approx(stats.ttest_1samp(own, FLOORS[line.task]).pvalue)
        assert line.documents is None
        assert not line.published
    assert any("baselines are stored without predictions" in note for note in held.notes)
    assert {pair.verdict.here for pair in held.pairs} == {"not tested"}
    many = compare("m", "majority", "oracle", results_dir=results, pooled=True)
    assert [s.model for s in many.standings] == ["oracle", "m", "majority"]


@pytest.mark.parametrize("third", ["majority", "two seeds", "other seeds"])
def test_what_a_pair_shows_does_not_depend_on_the_third(results, third):
    """Fewer seeds of the third, other ones, or none (a policy, without predictions) take nothing from the pair."""
    save_runs(results, "a", TASKS, 0.8, (1, 2, 3, 4, 5))
    save_runs(results, "b", TASKS, 0.7, (1, 2, 3, 4, 5))
    save_runs(results, "two seeds", TASKS, 0.6, (1, 2))
    save_runs(results, "other seeds", TASKS, 0.6, (3, 4, 5, 6))
    alone = compare("a", "b", results_dir=results, pooled=True)
    many = compare("a", "b", third, results_dir=results, pooled=True)
    assert [(p.first, p.second) for p in many.pairs] == [("a", "b"), ("a", third), ("b", third)]
    assert many.pairs[0].tasks == alone.pairs[0].tasks
    assert (many.pairs[0].here, many.pairs[0].beyond) == (alone.pairs[0].here, alone.pairs[0].beyond)
    assert all(line.documents is not None and line.n_first == line.n_second == 5 for line in many.pairs[0].tasks)
    standing = next(s for s in many.standings if s.model == "a")
    assert standing.score == pytest.approx(np.mean([line.first for line in alone.pairs[0].tasks]))
    notes = [n for n in many.notes if n not in alone.notes]
    assert notes, "what is said of the other pairs names them"
    assert all(f"(a and {third}; b and {third})" in n or "baselines" in n for n in notes)
    counts = {line.n_second for line in many.pairs[1].tasks}
    assert counts == {{"majority": 0, "two seeds": 2, "other seeds": 3}[third]}


def test_floors_of_other_data_are_refused(results):
    save_runs(results, "m", ("gad",), 0.7, data="newer")
    with pytest.raises(UsageError, match="other data") as caught:
        compare("m", "majority", results_dir=results)
    assert "biobench tasks gate gad" in caught.value.hint
    play(results, "gad", 0.5, data="newer")
    assert compare("m", "majority", results_dir=results).pairs[0].tasks[0].second == 0.5


def test_the_newest_gate_counts_and_a_damaged_one_is_named(results):
    play(results, "gad", 0.4, data="other", made="2027-01-01T00:00:00+00:00")
    assert compare("oracle", "majority", results_dir=results, tasks="gad").pairs[0].tasks[0].second == 0.4
    (results / "floors" / "diamed" / "0.json").write_text("{")
    held = compare("oracle", "majority", results_dir=results)
    assert "0.json" in held.findings[0].file
    assert len(held.tasks) == 3


def test_a_misspelt_policy_is_corrected(results):
    with pytest.raises(UsageError) as caught:
        compare("oracle", "majorty", results_dir=results)
    assert caught.value.hint == "did you mean 'majority'?"


def test_runs_that_the_gate_refuses_are_named_with_the_reason(results):
    for model in ("a", "b"):
        save_runs(results, model, ("gad", "diamed"), 0.7)
    play(results, "diamed", 0.1, why="offsets are shifted", made="2026-02-01T00:00:00+00:00")
    held = compare("a", "b", results_dir=results)
    assert held.tasks == ("gad",)
    assert held.as_json()["refused"] == [
        {"model": m, "task": "diamed", "reasons": ["offsets are shifted"]} for m in ("a", "b")
    ]
    said = "diamed fails its gate, its runs are not compared: offsets are shifted"
    assert held.text().count(said) == 1
    assert compare("a", "b", results_dir=results, tasks=["gad"]).refused == ()
    with pytest.raises(UsageError) as caught:
        compare("a", "b", results_dir=results, tasks=["diamed"])
    assert said in caught.value.hint
    play(results, "gad", 0.3, why="labels are shuffled", made="2026-02-01T00:00:00+00:00")
    with pytest.raises(UsageError, match="all runs of 'a' \\(diamed, gad\\) are on data that fails its gate") as caught:
        compare("a", "b", results_dir=results)
    assert caught.value.hint == "offsets are shifted; labels are shuffled"
