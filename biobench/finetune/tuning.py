"""The tuned track: the same trials for every model, the best chosen on validation, test read once at the end.

A trial is a factor of the rates, a point of a grid, or a draw of a study: a function of the recipe, the seed, its
number and the scores before it. So a run that was killed draws the same trials as one that was not.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

from pydantic import ValidationError
from torch import Tensor

from biobench.core.machine import Precision
from biobench.core.progress import ProgressNote
from biobench.errors import TrainingError
from biobench.finetune.engine import LoadedEncoder, deterministic, finetune, new_network
from biobench.finetune.loop import Outcome, Progress, resumed_state
from biobench.finetune.network import decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint
from biobench.kinds import Split
from biobench.schema.record import TrainingRecord, Trial
from biobench.schema.strict import FieldError
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head, Range, Search, Training

_UNREAD = Split((), (), (), (), (), ())
"""The test split as the trials see it: nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a trial changes. factor: of the rates; changes: dotted fields of `training`, and `head.dropout`."""

    factor: float = 1.0
    changes: dict[str, Any] = field(default_factory=dict)


def candidate(spec: TaskSpec, seed: int, done: Sequence[Trial]) -> Candidate:
    """The next trial after those that are done."""
    search = spec.training.search
    if search is None:
        return Candidate(spec.training.grid[len(done)])
    return Candidate(changes=_drawn(search, seed, done) if search.grid is None else _points(search)[len(done)])


def changed(spec: TaskSpec, trial: Candidate) -> TaskSpec:
    """The spec as the trial runs it. Raises TrainingError for a combination of values that is no recipe."""
    recipe = spec.training
    data = recipe.model_dump(exclude={"search"})
    if trial.factor != 1.0:
        for name in ("learning_rate", "head_learning_rate"):
            data[name] = None if data[name] is None else data[name] * trial.factor
    dropout = spec.head.dropout
    for name, value in trial.changes.items():
        if name == "head.dropout":
            dropout = value
            continue
        at, *inner = name.split(".")
        place = data
        for step in inner:
            place[at] = place[at] or {}
            place, at = place[at], step
        place[at] = value
    try:
        head = Head.model_validate({**spec.head.model_dump(), "dropout": dropout})
        return spec.model_copy(update={"training": Training.model_validate(data), "head": head})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "training"
        what, hint = first["msg"], "correct the values of training.search"
        complaint = first.get("ctx", {}).get("error")
        if isinstance(complaint, FieldError):
            what, hint = complaint.what, f"{hint}: {complaint.hint}"
        raise TrainingError(f"training.search tries {trial.changes}: {where}: {what}", hint=hint) from error


def _check_search(spec: TaskSpec) -> None:
    """Refuse a search before its first trial: values that are no recipe, and a study without its library."""
    search = spec.training.search
    if search is None:
        return
    tried = [] if search.grid is None else _points(search)
    if search.study is not None:
        if find_spec("optuna") is None:
            raise TrainingError("training.search.study: optuna is not installed", hint="pip install 'biobench[search]'")
        for name, values in search.study.items():
            tried += [{name: v} for v in ((values.low, values.high) if isinstance(values, Range) else values)]
    for changes in tried:
        changed(spec, Candidate(changes=changes))


def _points(search: Search) -> list[dict[str, Any]]:
    assert search.grid is not None
    return [dict(zip(search.grid, values, strict=True)) for values in product(*search.grid.values())]


def _drawn(search: Search, seed: int, done: Sequence[Trial]) -> dict[str, Any]:
    """The next point of the study, from the trials that are done."""
    optuna: Any = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    draw_seed = int(hashlib.sha256(f"{seed} {len(done)}".encode()).hexdigest()[:8], 16)
    sampler = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}[search.sampler]
    study = optuna.create_study(direction="maximize", sampler=sampler(seed=draw_seed))
    kinds, space = optuna.distributions, {}
    for name, values in (search.study or {}).items():
        if isinstance(values, Range):
            whole = isinstance(values.low, int) and isinstance(values.high, int)
            number = kinds.IntDistribution if whole else kinds.FloatDistribution
            space[name] = number(values.low, values.high, log=values.log)
        else:
            space[name] = kinds.CategoricalDistribution(values)
    for trial in done:
        study.add_trial(optuna.trial.create_trial(params=trial.changes, distributions=space, value=trial.validation))
    return dict(study.ask(space).params)


@dataclass(slots=True)
class _Trials:
    """The trials so far; seconds and tokens are of all of them together.

    The best one: what it changed, its record and score, and the weights that reached it.
    """

    done: list[Trial] = field(default_factory=list)
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    tokens: int = 0
    earlier_seconds: float = 0.0
    resumed: int = 0
    factor: float = 0.0
    changes: dict[str, Any] = field(default_factory=dict)
    record: TrainingRecord | None = None
    score: float = 0.0
    threshold: float = 0.5
    weights: dict[str, Tensor] = field(default_factory=dict)

    def add(self, trial: Candidate, spec: TaskSpec, outcome: Outcome) -> None:
        """A trial has ended. The best has the highest score; ties go to the factor nearest to 1, then the first."""
        assert outcome.network is not None
        self.done.append(
            Trial(
                factor=trial.factor,
                changes=trial.changes,
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
        rank = (outcome.best_score, -abs(trial.factor - 1.0))
        if self.record is None or rank > (self.score, -abs(self.factor - 1.0)):
            self.factor, self.changes, self.record = trial.factor, trial.changes, outcome.record
            self.score, self.threshold = outcome.best_score, outcome.threshold
            self.weights = {k: v.detach().clone() for k, v in outcome.network.state_dict().items()}

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
    keep: Savepoint | None = None,
) -> Outcome:
    """Fine-tune once for each trial; the best on validation predicts the test split.

    Every model gets the same number of trials, each a whole run of the recipe with other values. The record is the
    chosen trial's, with all trials in it; seconds and tokens are those of all trials together. keep: holds the trials
    that have ended, and the state of the one under way in a part of its own. Raises TrainingError.
    """
    if prepared.spec.training.encoder == "frozen":
        raise TrainingError("a probe chooses its rate itself", hint="leave out --track tuned")
    saved = resumed_state(keep, progress)
    trials = _Trials() if saved is None else _Trials.resumed_from(saved)
    _check_search(prepared.spec)
    count = prepared.spec.training.trials
    if trials.done:
        progress(0, 1, ProgressNote(f"resumed after trial {len(trials.done)}/{count}"))
    for number in range(len(trials.done) + 1, count + 1):
        trial = candidate(prepared.spec, seed, trials.done)
        blind = replace(prepared, spec=changed(prepared.spec, trial), test=_UNREAD)
        part = None if keep is None else keep.part(f"trial-{number}")

        def tell(done: int, total: int, what: str, number: int = number) -> None:
            text = f"trial {number}/{count}: {what}"
            progress(done, total, ProgressNote(text) if isinstance(what, ProgressNote) else text)

        trials.add(trial, blind.spec, finetune(loaded, blind, seed, precision, tell, part))
        if keep is not None and keep.due():
            keep.save(trials.saved_state)
            if part is not None and keep.problem is None:
                part.remove()
    assert trials.record is not None
    began = time.perf_counter()
    seen = replace(prepared, spec=changed(prepared.spec, Candidate(trials.factor, trials.changes)))
    network = new_network(loaded, seen)
    network.load_state_dict(trials.weights)
    record = trials.record.model_copy(update={"trials": tuple(trials.done), "resumed": trials.resumed})
    exact: Precision = "bf16" if record.precision == "bf16" else "fp32"
    with deterministic(network.device):
        chances = probabilities(network, seen, seen.test, exact, record.micro_batch_tokens)
    predictions = decide(seen, seen.test, chances, trials.threshold)
    evaluation = trials.evaluation_seconds + time.perf_counter() - began
    best = (trials.score, trials.threshold, network)
    return Outcome(predictions, record, trials.train_seconds, evaluation, trials.tokens, *best, trials.earlier_seconds)
