"""The trials of the tuned track, one after the other: factors of the rates, points of a grid, or draws of a study.

A trial is a function of the recipe, the seed, its number and the scores before it. So a run that was killed draws the
same trials as one that was not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any

from pydantic import ValidationError

from biobench.errors import TrainingError
from biobench.schema.record import Trial
from biobench.schema.strict import FieldError
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head, Range, Search, Training


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a trial changes. factor: of the rates; changes: dotted fields of `training`, and `head.dropout`."""

    factor: float = 1.0
    changes: dict[str, Any] = field(default_factory=dict)


def budget(recipe: Training) -> int:
    """How many trials every model gets."""
    return len(recipe.grid) if recipe.search is None else recipe.search.budget


def candidate(spec: TaskSpec, seed: int, done: Sequence[Trial]) -> Candidate:
    """The next trial after those that are done."""
    search = spec.training.search
    if search is None:
        return Candidate(spec.training.grid[len(done)])
    if search.grid is not None:
        return Candidate(changes=_points(search)[len(done)])
    return Candidate(changes=_drawn(search, seed, done))


def changed(spec: TaskSpec, trial: Candidate) -> TaskSpec:
    """The spec as the trial runs it. Raises TrainingError for a combination of values that is no recipe."""
    recipe = spec.training
    head_rate = recipe.head_learning_rate
    data = recipe.model_dump(exclude={"search"})
    if trial.factor != 1.0:
        data["learning_rate"] = recipe.learning_rate * trial.factor
        data["head_learning_rate"] = None if head_rate is None else head_rate * trial.factor
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


def check_search(spec: TaskSpec) -> None:
    """Refuse a search before its first trial: values that are no recipe, and a study without its library."""
    search = spec.training.search
    if search is None:
        return
    if search.grid is not None:
        for point in _points(search):
            changed(spec, Candidate(changes=point))
        return
    if find_spec("optuna") is None:
        raise TrainingError("training.search.study: optuna is not installed", hint="pip install 'biobench[search]'")
    assert search.study is not None
    for name, values in search.study.items():
        for value in (values.low, values.high) if isinstance(values, Range) else values:
            changed(spec, Candidate(changes={name: value}))


def _points(search: Search) -> list[dict[str, Any]]:
    assert search.grid is not None
    return [dict(zip(search.grid, values, strict=True)) for values in product(*search.grid.values())]


def _drawn(search: Search, seed: int, done: Sequence[Trial]) -> dict[str, Any]:
    """The next point of the study, from the trials that are done."""
    optuna: Any = import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    draw_seed = int(hashlib.sha256(f"{seed} {len(done)}".encode()).hexdigest()[:8], 16)
    samplers = optuna.samplers
    sampler = samplers.TPESampler(seed=draw_seed) if search.sampler == "tpe" else samplers.RandomSampler(seed=draw_seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = {name: _distribution(optuna, values) for name, values in (search.study or {}).items()}
    for trial in done:
        study.add_trial(optuna.trial.create_trial(params=trial.changes, distributions=space, value=trial.validation))
    return dict(study.ask(space).params)


def _distribution(optuna: Any, values: Any) -> Any:
    kinds = optuna.distributions
    if not isinstance(values, Range):
        return kinds.CategoricalDistribution(values)
    whole = isinstance(values.low, int) and isinstance(values.high, int)
    return (kinds.IntDistribution if whole else kinds.FloatDistribution)(values.low, values.high, log=values.log)
