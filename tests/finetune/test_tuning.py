"""The tuned track spends the same budget on every model and reads the test split once; shares of
training nest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from biobench.data.load import subset
from biobench.errors import SpecError
from biobench.finetune import tuning
from biobench.finetune.engine import finetune
from biobench.finetune.loop import Outcome
from biobench.finetune.tuning import changed, tuned
from biobench.schema.record import TrainingRecord
from tests.finetune.conftest import silent

QUICK = ("training.epochs=2", "training.grid=[0.001, 1.0, 20.0]")


def test_the_best_trial_on_validation_predicts(setup: Any) -> None:
    loaded, prepared = setup("bert", "demo_topic", *QUICK, limit=None)
    outcome = tuned(loaded, prepared, 1, "fp32", silent)
    trials = outcome.record.trials
    rate = prepared.spec.training.learning_rate
    assert [t.learning_rate for t in trials] == pytest.approx(
        [rate * f for f in (0.001, 1.0, 20.0)]
    )
    best = max(trials, key=lambda t: t.validation)
    assert best.validation > trials[0].validation
    alone = finetune(
        loaded, replace(prepared, spec=changed(prepared.spec, best.factor)), 1, "fp32", silent
    )
    assert outcome.predictions == alone.predictions
    assert outcome.record.curve == alone.record.curve
    assert outcome.train_tokens == 3 * alone.train_tokens


def test_poisoned_test_labels_change_nothing_and_test_is_read_last(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, prepared = setup("bert", "demo_topic", *QUICK)
    clean = tuned(loaded, prepared, 1, "fp32", silent)
    wrong = {label: prepared.outputs[i - 1] for i, label in enumerate(prepared.outputs)}
    documents = [replace(d, labels=(wrong[d.labels[0]],)) for d in prepared.test.documents]
    targets = [(t + 1) % len(prepared.outputs) for t in prepared.test.targets]
    poisoned = replace(prepared, test=replace(prepared.test, documents=documents, targets=targets))
    watched = Mock(side_effect=tuning.finetune)
    monkeypatch.setattr(tuning, "finetune", watched)
    again = tuned(loaded, poisoned, 1, "fp32", silent)
    read = [len(call.args[1].test.documents) for call in watched.call_args_list]
    assert read == [0, 0, 0], "no trial has a test split"
    assert (again.predictions, again.record) == (clean.predictions, clean.record)


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ({0.4: 0.5, 1.0: 0.5, 2.0: 0.5}, 1.0),
        ({0.5: 0.5, 2.0: 0.5}, 0.5),
        ({1.5: 0.5, 0.5: 0.5}, 1.5),
        ({0.5: 0.5, 1.5: 0.5}, 0.5),
        ({0.4: 0.1, 1.0: 0.2, 2.0: 0.3}, 2.0),
    ],
)
def test_the_chosen_trial_has_the_highest_score_then_the_nearest_factor_then_the_first_place(
    setup: Any, scores: dict[float, float], chosen: float
) -> None:
    _, prepared = setup("bert", "demo_topic")
    trials = tuning._Trials()
    network = torch.nn.Linear(1, 1)
    record = TrainingRecord(
        steps=9,
        best_step=0,
        curve=(),
        precision="fp32",
        attention="packed",
        batch_size=16,
        micro_batch_tokens=1,
    )
    for step, (factor, score) in enumerate(scores.items()):
        # the next trial trains on the same weights
        torch.nn.init.constant_(network.weight, factor)
        of_trial = record.model_copy(update={"best_step": step})
        made = Outcome([], of_trial, 1.0, 2.0, 3, score, factor / 4, network)  # type: ignore[arg-type]
        trials.add(factor, changed(prepared.spec, factor), made)
    assert (trials.factor, trials.score, trials.threshold) == (chosen, scores[chosen], chosen / 4)
    assert trials.record.best_step == list(scores).index(chosen)
    assert trials.weights["weight"].item() == pytest.approx(chosen)
    sums = (trials.train_seconds, trials.evaluation_seconds, trials.tokens)
    assert sums == (len(scores), 2 * len(scores), 3 * len(scores))


def test_both_rates_are_multiplied(setup: Any) -> None:
    _, prepared = setup(
        "bert", "demo_topic", "training.head_learning_rate=1e-3", "training.learning_rate=1e-4"
    )
    recipe = changed(prepared.spec, 0.5).training
    assert (recipe.learning_rate, recipe.head_learning_rate) == pytest.approx((5e-5, 5e-4))


@pytest.mark.parametrize("grid", ["[]", "[1.0, 1.0]", "[0.0, 1.0]"])
def test_a_grid_that_makes_no_sense_is_refused(setup: Any, grid: str) -> None:
    with pytest.raises(SpecError, match=r"training\.grid"):
        setup("bert", "demo_topic", f"training.grid={grid}")


def test_shares_of_the_training_documents_nest(setup: Any) -> None:
    _, full = setup("bert", "demo_topic", limit=None)
    before: set[str] = set()
    for share in (0.1, 0.25, 0.5, 1.0):
        _, part = setup("bert", "demo_topic", f"training.train_fraction={share}", limit=None)
        ids = {d.id for d in part.train.documents}
        assert len(ids) == max(1, round(share * len(full.train.documents)))
        assert before <= ids
        assert [d.id for d in part.test.documents] == [d.id for d in full.test.documents]
        before = ids
    assert len(subset(full.train.documents, 1e-9)) == 1
