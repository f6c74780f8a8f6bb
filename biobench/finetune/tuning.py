"""The tuned track: the same trials for every model, the best chosen on validation, test read once at the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import Tensor

from biobench.core.machine import Precision
from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, finetune, new_network
from biobench.finetune.loop import Note, Outcome, Progress
from biobench.finetune.predict import decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint
from biobench.finetune.search import Candidate, budget, candidate, changed, check_search
from biobench.kinds import Split
from biobench.schema.record import Training, Trial
from biobench.schema.task import TaskSpec

_UNREAD = Split((), (), (), (), (), ())
"""The test split as the trials see it: nothing."""


@dataclass(slots=True)
class _Best:
    """The best trial so far: what it changed, its record and score, and the weights that reached it."""

    factor: float
    record: Training
    score: float
    threshold: float
    weights: dict[str, Tensor]
    changes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Trials:
    """The trials so far; seconds and tokens are of all of them together."""

    done: list[Trial] = field(default_factory=list)
    best: _Best | None = None
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    tokens: int = 0
    earlier_seconds: float = 0.0
    resumed: int = 0

    def add(self, trial: Candidate, spec: TaskSpec, outcome: Outcome) -> None:
        """A trial has ended. The best has the highest score; ties go to the factor nearest to 1, then the first."""
        assert outcome.network is not None
        recipe, factor = spec.training, trial.factor
        self.done.append(
            Trial(
                factor=factor,
                changes=trial.changes,
                learning_rate=recipe.learning_rate,
                head_learning_rate=recipe.head_learning_rate,
                validation=outcome.best_score,
                best_step=outcome.record.best_step,
            )
        )
        self.train_seconds += outcome.train_seconds
        self.evaluation_seconds += outcome.evaluation_seconds
        self.tokens += outcome.train_tokens
        self.earlier_seconds += outcome.earlier_seconds
        self.resumed += outcome.record.resumed
        best = self.best
        if best is None or (outcome.best_score, -abs(factor - 1.0)) > (best.score, -abs(best.factor - 1.0)):
            weights = {k: v.detach().clone() for k, v in outcome.network.state_dict().items()}
            self.best = _Best(factor, outcome.record, outcome.best_score, outcome.threshold, weights, trial.changes)

    def saved_state(self) -> dict[str, Any]:
        """As a savepoint keeps it."""
        assert self.best is not None
        best = {f.name: getattr(self.best, f.name) for f in fields(_Best)}
        state = {f.name: getattr(self, f.name) for f in fields(_Trials)}
        return {
            **state,
            "done": [trial.model_dump() for trial in self.done],
            "best": {**best, "record": self.best.record.model_dump()},
            "earlier_seconds": self.train_seconds + self.evaluation_seconds,
        }

    @classmethod
    def resumed_from(cls, saved: dict[str, Any]) -> _Trials:
        """From what `saved_state` returned."""
        best = {**saved["best"], "record": Training.model_validate(saved["best"]["record"])}
        done = [Trial.model_validate(trial) for trial in saved["done"]]
        return cls(**{**saved, "done": done, "best": _Best(**best), "resumed": saved["resumed"] + 1})


def tuned(
    loaded: LoadedEncoder,
    prepared: Prepared,
    seed: int,
    precision: Precision,
    progress: Progress,
    keep: Savepoint | None = None,
) -> Outcome:
    """Fine-tune once for each trial (see `finetune.search`); the best on validation predicts the test split.

    Every model gets the same number of trials, each a whole run of the recipe with other values. Ties go to the
    factor nearest to 1, then to the first. The record is the chosen trial's, with all trials in it;
    seconds and tokens are those of all trials together. keep: holds the trials that have ended, and the state
    of the one under way in a part of its own. Raises TrainingError.
    """
    if prepared.spec.training.encoder == "frozen":
        raise TrainingError("a probe chooses its rate itself", hint="leave out --track tuned")
    saved = None if keep is None else keep.load()
    trials = _Trials() if saved is None else _Trials.resumed_from(saved)
    if keep is not None and keep.refusal is not None:
        progress(0, 1, Note(f"starts again: {keep.refusal}"))
    check_search(prepared.spec)
    count = budget(prepared.spec.training)
    if trials.done:
        progress(0, 1, Note(f"continues after trial {len(trials.done)}/{count}"))
    for number in range(len(trials.done) + 1, count + 1):
        trial = candidate(prepared.spec, seed, trials.done)
        blind = replace(prepared, spec=changed(prepared.spec, trial), test=_UNREAD)
        part = None if keep is None else keep.part(f"trial-{number}")
        outcome = finetune(loaded, blind, seed, precision, _named(progress, number, count), part)
        trials.add(trial, blind.spec, outcome)
        if keep is not None and keep.due():
            keep.save(trials.saved_state)
            if part is not None and keep.problem is None:
                part.remove()
    best = trials.best
    assert best is not None
    began = time.perf_counter()
    seen = replace(prepared, spec=changed(prepared.spec, Candidate(best.factor, best.changes)))
    network = new_network(loaded, seen)
    network.load_state_dict(best.weights)
    record = best.record.model_copy(update={"trials": tuple(trials.done), "resumed": trials.resumed})
    exact: Precision = "bf16" if record.precision == "bf16" else "fp32"
    chances = probabilities(network, seen, seen.test, exact, record.micro_batch_tokens)
    predictions = decide(seen, seen.test, chances, best.threshold)
    evaluation_seconds = trials.evaluation_seconds + time.perf_counter() - began
    return Outcome(
        predictions,
        record,
        trials.train_seconds,
        evaluation_seconds,
        trials.tokens,
        best.score,
        best.threshold,
        network,
        trials.earlier_seconds,
    )


def _named(progress: Progress, number: int, count: int) -> Progress:
    def named(done: int, total: int, what: str) -> None:
        text = f"trial {number}/{count}: {what}"
        progress(done, total, Note(text) if isinstance(what, Note) else text)

    return named
