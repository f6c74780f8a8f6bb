"""The tuned track: the same trials for every model, the best chosen on validation, test read once
at the end.

A trial multiplies the recipe's learning rates by a factor of `training.grid`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from torch import Tensor

from biobench.core.machine import Precision
from biobench.core.progress import ProgressNote
from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, deterministic, finetune, new_network
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.network import copied_weights, decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import NOT_KEPT, Savepoint, resumed_state
from biobench.kinds import Split
from biobench.schema.record import TrainingRecord, Trial
from biobench.schema.task import TaskSpec

_UNREAD = Split((), (), (), (), (), ())
"""The test split as the trials see it: nothing."""


def changed(spec: TaskSpec, factor: float) -> TaskSpec:
    """The spec with its rates multiplied."""
    recipe = spec.training
    rates = {"learning_rate": recipe.learning_rate * factor}
    if recipe.head_learning_rate is not None:
        rates["head_learning_rate"] = recipe.head_learning_rate * factor
    return spec.model_copy(update={"training": recipe.model_copy(update=rates)})


@dataclass(slots=True)
class _Trials:
    """The trials so far; seconds and tokens are of all of them together.

    The best one: its factor, record and score, and the weights that reached it.
    """

    done: list[Trial] = field(default_factory=list)
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    tokens: int = 0
    earlier_seconds: float = 0.0
    resumed: int = 0
    factor: float = 0.0
    record: TrainingRecord | None = None
    score: float = 0.0
    threshold: float = 0.5
    weights: dict[str, Tensor] = field(default_factory=dict)

    def add(self, factor: float, spec: TaskSpec, outcome: Outcome) -> None:
        """A trial has ended. The best has the highest score; ties go to the factor nearest to 1,
        then the first.
        """
        assert outcome.network is not None
        self.done.append(
            Trial(
                factor=factor,
                learning_rate=spec.training.learning_rate,
                head_learning_rate=spec.training.head_learning_rate,
                validation=outcome.best_score,
                best_step=outcome.record.best_step,
            )
        )
        self.train_seconds += outcome.train_seconds
        self.evaluation_seconds += outcome.evaluation_seconds
        self.tokens += outcome.train_tokens
        self.earlier_seconds += outcome.earlier_seconds
        self.resumed += outcome.record.resumed
        rank = (outcome.best_score, -abs(factor - 1.0))
        if self.record is None or rank > (self.score, -abs(self.factor - 1.0)):
            self.factor = factor
            self.record = outcome.record
            self.score = outcome.best_score
            self.threshold = outcome.threshold
            self.weights = copied_weights(outcome.network)

    def saved_state(self) -> dict[str, Any]:
        """As a savepoint keeps it."""
        assert self.record is not None
        return {
            **{f.name: getattr(self, f.name) for f in fields(_Trials)},
            "done": [trial.model_dump() for trial in self.done],
            "record": self.record.model_dump(),
            "earlier_seconds": self.train_seconds + self.evaluation_seconds,
        }

    @classmethod
    def resumed_from(cls, saved: dict[str, Any]) -> _Trials:
        """From what `saved_state` returned."""
        done = [Trial.model_validate(trial) for trial in saved["done"]]
        record = TrainingRecord.model_validate(saved["record"])
        return cls(**{**saved, "done": done, "record": record, "resumed": saved["resumed"] + 1})


def tuned(
    loaded: LoadedEncoder,
    prepared: Prepared,
    seed: int,
    precision: Precision,
    progress: Progress,
    keep: Savepoint = NOT_KEPT,
) -> Outcome:
    """Fine-tune once for each trial; the best on validation predicts the test split.

    Every model gets the same number of trials, each a whole run of the recipe with other rates. The
    record is the chosen trial's, with all trials in it; seconds and tokens are those of all trials
    together. keep: holds the trials that have ended, and the state of the one under way in a part
    of its own. Raises TrainingError.
    """
    if prepared.spec.training.encoder == "frozen":
        raise TrainingError("a probe chooses its rate itself", hint="leave out --track tuned")
    saved = resumed_state(keep, progress)
    trials = _Trials()
    if saved is not None:
        trials = _Trials.resumed_from(saved)
    grid = prepared.spec.training.grid
    if trials.done:
        progress(0, 1, ProgressNote(f"resumed after trial {len(trials.done)}/{len(grid)}"))
    for number, factor in enumerate(grid, start=1):
        if number <= len(trials.done):
            continue
        blind = replace(prepared, spec=changed(prepared.spec, factor), test=_UNREAD)
        tell = _trial_progress(progress, f"trial {number}/{len(grid)}")
        of_trial = keep.part(f"trial-{number}")
        outcome = finetune(loaded, blind, seed, precision, tell, of_trial)
        trials.add(factor, blind.spec, outcome)
        if keep.due():
            keep.save(trials.saved_state)
            if keep.problem is None:
                of_trial.remove()
    return _outcome(loaded, prepared, trials)


def _trial_progress(progress: Progress, name: str) -> Progress:
    """What hears of one trial, and reports it under this name."""

    def tell(done: int, total: int, stage: str) -> None:
        # A note stays a note.
        progress(done, total, type(stage)(f"{name}: {stage}"))

    return tell


def _outcome(loaded: LoadedEncoder, prepared: Prepared, trials: _Trials) -> Outcome:
    """Read the test split with the best trial's weights."""
    assert trials.record is not None
    began = time.perf_counter()
    seen = replace(prepared, spec=changed(prepared.spec, trials.factor))
    network = new_network(loaded, seen)
    network.load_state_dict(trials.weights)
    record = trials.record.model_copy(
        update={"trials": tuple(trials.done), "resumed": trials.resumed}
    )
    precision = cast(Precision, record.precision)
    with deterministic(network.device):
        chances = probabilities(network, seen, seen.test, precision, record.micro_batch_tokens)
    predictions = decide(seen, seen.test, chances, trials.threshold)
    return Outcome(
        predictions,
        record,
        train_seconds=trials.train_seconds,
        evaluation_seconds=trials.evaluation_seconds + time.perf_counter() - began,
        train_tokens=trials.tokens,
        best_score=trials.score,
        threshold=trials.threshold,
        network=network,
        earlier_seconds=trials.earlier_seconds,
    )
