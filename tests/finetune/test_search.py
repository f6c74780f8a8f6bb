"""Searches of the tuned track: a grid or a study over any field of the recipe, on validation alone, resumable."""

from __future__ import annotations

from typing import Any

import pytest

from biobench.errors import SpecError, TrainingError
from biobench.finetune import tuning
from biobench.finetune.tuning import candidate, tuned
from biobench.schema.record import Trial

GRID = (
    "training.epochs=1",
    "training.search.grid={learning_rate: [1e-6, 5e-3], batch_size: [8, 16], head.dropout: [0.0]}",
)
STUDY = (
    "training.epochs=1",
    "training.search={study: {learning_rate: {low: 1e-6, high: 1e-2, log: true}, batch_size: [8, 16], "
    "epochs: {low: 1, high: 2}}, trials: 4}",
)


def _silent(done: int, total: int, what: str) -> None:
    """No progress."""


def test_a_grid_tries_every_point_and_the_best_on_validation_predicts(setup: Any) -> None:
    loaded, prepared = setup("bert", "demo_topic", *GRID, limit=None)
    outcome = tuned(loaded, prepared, 1, "fp32", _silent)
    trials = outcome.record.trials

    assert [(t.changes["learning_rate"], t.changes["batch_size"]) for t in trials] == [
        (1e-6, 8), (1e-6, 16), (5e-3, 8), (5e-3, 16),
    ]  # fmt: skip
    assert [t.learning_rate for t in trials] == [1e-6, 1e-6, 5e-3, 5e-3]
    best = max(trials, key=lambda t: t.validation)
    assert best.validation > trials[0].validation
    assert outcome.record.batch_size == best.changes["batch_size"]
    assert outcome.best_score == best.validation


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_study_draws_its_budget_from_the_declared_space_and_the_same_again(setup: Any, sampler: str) -> None:
    _, prepared = setup("bert", "demo_topic", *STUDY, f"training.search.sampler={sampler}")

    def play() -> list[dict[str, Any]]:
        done: list[Trial] = []
        while len(done) < prepared.spec.training.trials:
            changes = candidate(prepared.spec, 1, done).changes
            score = -abs(changes["learning_rate"] - 1e-3)
            done.append(Trial(factor=1.0, changes=changes, learning_rate=1.0, validation=score, best_step=1))
        return [dict(t.changes) for t in done]

    drawn = play()
    assert drawn == play()
    assert len(drawn) == 4
    assert len({d["learning_rate"] for d in drawn}) == 4
    for d in drawn:
        assert 1e-6 <= d["learning_rate"] <= 1e-2
        assert d["batch_size"] in (8, 16)
        assert d["epochs"] in (1, 2)
        assert isinstance(d["epochs"], int)
    assert candidate(prepared.spec, 2, []).changes != drawn[0], "another seed, another study"


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("{}", "either a grid or a study"),
        ("{grid: {learning_rte: [1e-5]}}", "'learning_rte' is no field of the recipe"),
        ("{grid: {train_fraction: [0.5]}}", "cannot change 'train_fraction'"),
        ("{grid: {learning_rate: [1e-5, 1e-5]}}", "must be distinct"),
        ("{study: {learning_rate: {low: 2e-5, high: 1e-5}}, trials: 3}", "low < high"),
        ("{study: {learning_rate: [1e-5]}}", "budget of a study"),
        ("{grid: {learning_rate: [1e-5]}, trials: 3}", "budget of a study"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_the_spec(setup: Any, search: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        setup("bert", "demo_topic", f"training.search={search}")


def test_values_that_are_no_recipe_are_refused_before_the_first_trial(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, prepared = setup("bert", "demo_topic", "training.search.grid={max_steps: [8]}")
    monkeypatch.setattr(tuning, "finetune", lambda *_: pytest.fail("a trial was begun"))
    with pytest.raises(TrainingError) as caught:
        tuned(loaded, prepared, 1, "fp32", _silent)
    assert caught.value.what.endswith("give either epochs or max_steps, not both and not neither")
    assert caught.value.hint == "correct the values of training.search: for example `epochs: 20`"


def test_an_adapters_rank_can_be_searched(setup: Any) -> None:
    own = ("training.epochs=1", "training.adapter.rank=2", "training.search.grid={adapter.rank: [1, 4]}")
    loaded, prepared = setup("bert", "demo_topic", *own)
    outcome = tuned(loaded, prepared, 1, "fp32", _silent)
    assert [t.changes for t in outcome.record.trials] == [{"adapter.rank": 1}, {"adapter.rank": 4}]
