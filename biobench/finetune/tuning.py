"""The tuned track: the same few learning rates for every model, chosen on validation, test read once at the end."""

from __future__ import annotations

import time
from dataclasses import replace

from torch import Tensor

from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.machine import Precision
from biobench.finetune.network import Network
from biobench.finetune.predict import decide, probabilities
from biobench.finetune.prepare import Prepared, Split
from biobench.schema.record import Trial
from biobench.schema.task import TaskSpec

_UNREAD = Split((), (), (), (), (), ())
"""The test split as the trials see it: nothing."""


def tuned(loaded: LoadedEncoder, prepared: Prepared, seed: int, precision: Precision, progress: Progress) -> Outcome:
    """Fine-tune once for each factor of `training.grid`; the best on validation predicts the test split.

    Every model gets the same number of trials, each a whole run of the recipe with its rates multiplied. Ties
    go to the factor nearest to 1, then to the first. The record is the chosen trial's, with all trials in it;
    seconds and tokens are those of all trials together. Raises TrainingError.
    """
    if prepared.spec.training.encoder == "frozen":
        raise TrainingError("a probe chooses its rate itself", hint="leave out --track tuned")
    trials: list[Trial] = []
    best: tuple[tuple[float, float], Outcome, dict[str, Tensor], Prepared] | None = None
    train_seconds = evaluation_seconds = 0.0
    train_tokens = 0
    factors = prepared.spec.training.grid
    for number, factor in enumerate(factors, start=1):
        blind = replace(prepared, spec=with_rates(prepared.spec, factor), test=_UNREAD)
        named = _named(progress, number, len(factors))
        outcome = finetune(loaded, blind, seed, precision, named)
        assert outcome.network is not None
        recipe = blind.spec.training
        trials.append(
            Trial(
                factor=factor,
                learning_rate=recipe.learning_rate,
                head_learning_rate=recipe.head_learning_rate,
                validation=outcome.best_score,
                best_step=outcome.record.best_step,
            )
        )
        train_seconds += outcome.train_seconds
        evaluation_seconds += outcome.evaluation_seconds
        train_tokens += outcome.train_tokens
        quality = (outcome.best_score, -abs(factor - 1.0))
        if best is None or quality > best[0]:
            weights = {k: v.detach().clone() for k, v in outcome.network.state_dict().items()}
            best = (quality, outcome, weights, blind)
    assert best is not None
    _, chosen, weights, blind = best
    assert chosen.network is not None
    began = time.perf_counter()
    network = Network(loaded.encoder, chosen.network.head)
    network.load_state_dict(weights)
    seen = replace(blind, test=prepared.test)
    record = chosen.record.model_copy(update={"trials": tuple(trials)})
    exact: Precision = "bf16" if record.precision == "bf16" else "fp32"
    chances = probabilities(network, seen, seen.test, exact, record.micro_batch_tokens)
    predictions = decide(seen, seen.test, chances, chosen.threshold)
    evaluation_seconds += time.perf_counter() - began
    return replace(
        chosen,
        predictions=predictions,
        record=record,
        train_seconds=train_seconds,
        evaluation_seconds=evaluation_seconds,
        train_tokens=train_tokens,
    )


def with_rates(spec: TaskSpec, factor: float) -> TaskSpec:
    """The spec with its learning rates multiplied."""
    recipe = spec.training
    head = recipe.head_learning_rate
    changed = {
        "learning_rate": recipe.learning_rate * factor,
        "head_learning_rate": None if head is None else head * factor,
    }
    return spec.model_copy(update={"training": recipe.model_copy(update=changed)})


def _named(progress: Progress, number: int, count: int) -> Progress:
    return lambda done, total, what: progress(done, total, f"trial {number}/{count}: {what}")
