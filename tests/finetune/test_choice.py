"""Which step is kept, when a run stops, and what its curve says: the loop on validation scores
written by hand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from biobench.finetune.engine import finetune
from biobench.finetune.loop import Outcome, Run
from biobench.finetune.network import Network
from tests.finetune.conftest import Stage, silent

SIX = ("training.epochs=2", "training.evaluate_every=1")
"""48 documents in batches of 16: six steps, a validation after each."""


def _train(setup: Any, *overrides: str, head: dict[str, Any] | None = None) -> Outcome:
    loaded, prepared = setup("bert", "demo_topic", "metric.selection=micro_f1", *overrides)
    if head is not None:
        spec = prepared.spec.model_copy(update={"head": prepared.spec.head.model_copy(update=head)})
        prepared = replace(prepared, spec=spec)
    return finetune(loaded, prepared, 1, "fp32", silent)


@pytest.mark.parametrize(
    ("patience", "scores", "steps", "best"),
    [
        (None, [0.1, 0.3, 0.2, 0.3, 0.25, 0.3], 6, 2),
        (None, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 6, 6),
        (2, [0.1, 0.05, 0.2, 0.1, 0.2], 5, 3),
        (2, [0.0, 0.0, 0.0], 3, 1),
    ],
)
def test_the_first_of_the_best_steps_predicts_and_patience_counts_from_it(
    setup: Any,
    monkeypatch: pytest.MonkeyPatch,
    patience: int | None,
    scores: list[float],
    steps: int,
    best: int,
) -> None:
    stage = Stage(monkeypatch, scores)
    outcome = _train(setup, *SIX, *([] if patience is None else [f"training.patience={patience}"]))
    record = outcome.record
    assert (record.steps, record.best_step, record.stopped_early) == (steps, best, steps < 6)
    assert outcome.best_score == scores[best - 1]
    assert [p.validation["micro_f1"] for p in record.curve] == scores
    (tested,) = stage.tested
    same = [all(torch.equal(v, tested[k]) for k, v in seen.items()) for seen in stage.validated]
    assert same == [step == best for step in range(1, steps + 1)]


@pytest.mark.parametrize("thresholds", [[0.1, 0.2, 0.3, 0.4, 0.6, 0.7], None])
def test_the_threshold_of_the_best_step_decides_on_test(
    setup: Any, monkeypatch: pytest.MonkeyPatch, thresholds: list[float] | None
) -> None:
    stage = Stage(monkeypatch, [0.1, 0.2, 0.4, 0.3, 0.2, 0.4], thresholds)
    outcome = _train(setup, *SIX, head={"threshold": "tuned" if thresholds else 0.35})
    assert stage.used == ([*thresholds, 0.3] if thresholds else [0.35] * 7)
    assert outcome.threshold == stage.used[-1]


def test_a_point_of_the_curve_tells_of_the_steps_since_the_last(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Stage(monkeypatch, [0.1, 0.2, 0.3])
    losses: list[float] = []
    whole = Run._backward

    def spied(run: Run, batch: list[int]) -> torch.Tensor:
        loss = whole(run, batch)
        losses.append(float(loss))
        return loss

    monkeypatch.setattr(Run, "_backward", spied)
    fields = ("training.epochs=2", "training.evaluate_every=2", "training.learning_rate=6e-4")
    loaded, prepared = setup("bert", "demo_topic", *fields)
    outcome = finetune(loaded, prepared, 1, "fp32", silent)
    points = [(p.step, p.epoch, p.train_loss, p.learning_rate) for p in outcome.record.curve]
    # The rate is that of the step just made: it falls from the peak by a sixth a step.
    for point, step, rate in zip(points, (2, 4, 6), (5e-4, 3e-4, 1e-4), strict=True):
        mean = (losses[step - 2] + losses[step - 1]) / 2
        assert point == pytest.approx((step, step / 3, mean, rate), abs=1e-4, rel=1e-6)
    assert outcome.train_tokens == 2 * sum(prepared.train.lengths)


def test_the_loss_gets_the_weights_and_is_shared_by_the_visible_words(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positives' weights reach every part; the mean is over the words of the whole batch,
    however it is cut.
    """
    loaded, prepared = setup("bert", "demo_ner", "training.epochs=1")
    kind = type(prepared.kind)
    weights, counted, weighed = torch.ones(3), [], []
    terms, loss = kind.terms, kind.loss

    def count(self: Any, spec: Any, targets: Any, words: Any) -> int:
        assert list(words) == [len(t) for t in targets]
        counted.append(len(targets))
        return terms(self, spec, targets, words)

    def weigh(self: Any, spec: Any, logits: Any, targets: Any, own: Any) -> Any:
        weighed.append(own is weights)
        return loss(self, spec, logits, targets, None)

    for name, spy in (("weights", lambda *_: weights), ("terms", count), ("loss", weigh)):
        monkeypatch.setattr(kind, name, spy)
    finetune(loaded, prepared, 1, "fp32", silent)
    assert counted == [16, 16, 16]
    assert weighed == [True] * max(3, len(weighed))


@pytest.mark.usefixtures("no_dropout")
def test_a_step_that_ran_out_of_memory_half_way_is_made_anew(
    setup: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second part of the first step fails once: what the first part had left in the gradients
    must be gone.
    """
    whole, calls = Network.forward, [0]

    def fails_once(network: Network, encoded: Any) -> Any:
        calls[0] += network.training
        if calls[0] == 2:
            calls[0] += 1
            raise torch.OutOfMemoryError("pretended")
        return whole(network, encoded)

    monkeypatch.setattr("biobench.finetune.engine.micro_batch_tokens", lambda _: 150)
    states = []
    for forward in (whole, fails_once):
        monkeypatch.setattr(Network, "forward", forward)
        loaded, prepared = setup("bert", "demo_ner", "training.epochs=", "training.max_steps=1")
        outcome = finetune(loaded, prepared, 1, "fp32", silent)
        assert len(outcome.record.backoffs) == (forward is fails_once)
        states.append({k: v.clone() for k, v in loaded.encoder.state_dict().items()})
    first = loaded.initial
    for name, value in states[0].items():
        # One AdamW step moves a weight by the sign of its gradient, so the gradients themselves
        # must agree.
        torch.testing.assert_close(
            states[1][name] - first[name], value - first[name], rtol=2e-2, atol=1e-6
        )
