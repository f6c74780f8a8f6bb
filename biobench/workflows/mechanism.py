"""What `biobench analyze` computes from fine-tuning runs: what a transplant recovers, what freezing
costs, stability.

Scores come as model -> task -> seed -> fraction, over the seeds that the models share. Tasks are
held fixed and their test sets too, so the intervals are about other fine-tuning seeds: differences
by Welch's t, shares of a gain as paired ratios.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from biobench.errors import TrainingError, UsageError
from biobench.reporting.entrants import find_entrants
from biobench.reporting.results import load
from biobench.runs.options import RunRequest
from biobench.runs.result import Reporter
from biobench.stats import (
    Estimand,
    MeanTest,
    Ratio,
    mean_test,
    paired_ratio,
    pooled_df,
    seed_part,
    t_from_se,
)
from biobench.stats.types import FloatArray

Scores = dict[str, dict[str, dict[int, float]]]
"""Model -> task -> seed -> score (fraction)."""
NONE_FROZEN: Mapping[str, str] = {}


@dataclass(frozen=True)
class PairedScores:
    """One model compared with the twin and the reference; differences are fractions, first minus
    the other.

    kept: (this - twin) / (reference - twin), the share of the reference's gain that is there.
    frozen: which layers were frozen in which phase, from the ledger; empty without a ledger.
    """

    model: str
    role: str
    frozen: str
    mean: float
    tasks: dict[str, float]
    to_twin: MeanTest | None
    to_reference: MeanTest | None
    kept: Ratio | None


@dataclass(frozen=True)
class PairedReport:
    """tasks, seeds: what all models share, and what every number is over. reference, twin: their
    roles' words.
    """

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[PairedScores, ...]
    reference: str
    twin: str


@dataclass(frozen=True)
class RateSpread:
    """How one model's scores move with the learning rate. Scores and spreads are fractions.

    by_rate: mean over tasks and seeds at each rate. range: highest less lowest of these. test: the
    standard deviation over rates, each seed and task by itself, then the mean; over seeds.
    to_first: it less the first model's.
    """

    model: str
    by_rate: dict[float, float]
    best_rate: float
    range: float
    test: MeanTest
    to_first: MeanTest | None


def check_runs(models: Sequence[str], how: RunRequest) -> None:
    """Raise, before anything is made, what `run_scores` would raise: bad arguments, missing models
    and data.
    """
    from biobench.runs.plan import make_plan

    make_plan(replace(how, model=tuple(models)))


def run_scores(models: Sequence[str], how: RunRequest, reporter: Reporter) -> Scores:
    """Run what is not stored yet; primary scores, models by the names given. Raises TrainingError
    for a failed run.

    how: tasks and options of the runs, without a model, which `check_runs` has passed.
    """
    from biobench.runs.api import make_runs

    scores: Scores = {}
    for model in models:
        scores[model] = {}
        for run in make_runs(replace(how, model=(model,)), reporter):
            if run.seed is None or run.status not in ("done", "skipped"):
                raise TrainingError(
                    f"{run.model} on {run.task}: {run.reason}",
                    hint="see `biobench run` with the same task",
                )
            scores[model].setdefault(run.task, {})[run.seed] = run.scores[run.primary]
    return scores


def stored_scores(models: Sequence[str], results_dir: str | Path, tasks: Sequence[str]) -> Scores:
    """The primary scores of models (names as in the report, or their folders) that have runs.

    tasks: keep only these. Raises UsageError for an unknown name, one known from a paper alone, or
    runs of several conditions on one task.
    """
    scores: Scores = {}
    for name, entrant in zip(models, find_entrants(models, load(results_dir)), strict=True):
        if entrant.is_published:
            raise UsageError(
                f"'{name}' is known from a paper alone", hint="this needs scores by seed: run it"
            )
        of_model = scores.setdefault(entrant.label, {})
        for task, groups in entrant.groups.items():
            if tasks and task not in tasks:
                continue
            if len(groups) > 1:
                names = ", ".join(group.variant or "the shipped protocol" for group in groups)
                raise UsageError(
                    f"'{name}' has runs of several conditions on {task}: {names}",
                    hint="name one as the report prints it, MODEL [condition]",
                )
            of_task = {}
            for record in groups[0].records:
                of_task[record.seed] = record.scores[record.task.primary]
            of_model[task] = of_task
    return scores


def frozen_layers(folder: str) -> str:
    """Which layers a run froze, by its ledger, as ``layers 0-7 in detour``; empty without a
    ledger."""
    from trainer.ledger import FILE, read_ledger

    if not any((path / FILE).is_file() for path in (Path(folder), Path(folder) / "model")):
        return ""
    frozen = filter(attrgetter("frozen_layers"), read_ledger(folder).phases)
    return "; ".join(f"layers {phase.frozen_layers} in {phase.name}" for phase in frozen)


def shared(
    scores: Mapping[Any, Mapping[str, Mapping[int, float]]],
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Tasks that all models have, and the seeds that all have on all of these. Raises UsageError
    for none.
    """
    tables = list(scores.values())
    common = set.intersection(*map(set, tables))
    tasks = tuple(filter(common.__contains__, tables[0]))
    if not tasks:
        raise UsageError(
            "the models have no task in common", hint="run all of them on the same tasks first"
        )
    seeds = set.intersection(*(set(table[task]) for table, task in product(tables, tasks)))
    if not seeds:
        raise UsageError(
            "the models have no seed in common", hint="run all of them with the same --seeds"
        )
    return tasks, tuple(sorted(seeds))


def paired_report(
    scores: Scores,
    *,
    reference: str,
    twin: str,
    frozen: Mapping[str, str] = NONE_FROZEN,
    roles: tuple[str, str, str] = ("reference", "twin", "frozen"),
) -> PairedReport:
    """Every model compared with `twin` and `reference`, which must be among them.

    frozen: frozen layers, per model. roles: words for the reference, the twin and the others.
    """
    tasks, seeds = shared(scores)
    by_seed = {model: _by_seed(of_model, tasks, seeds) for model, of_model in scores.items()}
    gain = (by_seed[reference] - by_seed[twin]).mean(axis=0)
    role_of = {reference: roles[0], twin: roles[1]}
    rows = []
    for model, values in by_seed.items():
        kept = None
        if model not in role_of:
            above_twin = (values - by_seed[twin]).mean(axis=0)
            kept = paired_ratio(above_twin, gain, estimand=Estimand.THESE_TEST_SETS)
        by_task = values.mean(axis=1).tolist()
        row = PairedScores(
            model=model,
            role=role_of.get(model, roles[2]),
            frozen=frozen.get(model, ""),
            mean=float(values.mean()),
            tasks=dict(zip(tasks, by_task, strict=True)),
            to_twin=_difference(by_seed, model, twin),
            to_reference=_difference(by_seed, model, reference),
            kept=kept,
        )
        rows.append(row)
    return PairedReport(tasks, seeds, tuple(rows), roles[0], roles[1])


def _difference(by_seed: Mapping[str, FloatArray], model: str, opponent: str) -> MeanTest | None:
    """A model's scores minus those of another; None for the same one."""
    if model == opponent:
        return None
    return difference_over_seeds(by_seed[model], by_seed[opponent])


def _by_seed(
    of_model: Mapping[str, Mapping[int, float]], tasks: Sequence[str], seeds: Sequence[int]
) -> FloatArray:
    """A model's scores, (tasks, seeds)."""
    return np.array([[of_model[task][seed] for seed in seeds] for task in tasks])


def difference_over_seeds(scores: FloatArray, opponent: FloatArray) -> MeanTest | None:
    """Scores minus the opponent's, the mean over tasks, by Welch's t over seeds; None for fewer
    than two.

    scores, opponent: (tasks, seeds).
    """
    if scores.shape[1] < 2 or opponent.shape[1] < 2:
        return None
    tasks, seeds = scores.shape
    scaled = []
    for of_task in (*scores, *opponent):
        variance, df = seed_part(of_task)
        scaled.append((variance / tasks**2, df))
    variances = [variance for variance, _ in scaled]
    difference = float(scores.mean() - opponent.mean())
    return t_from_se(
        difference,
        math.sqrt(math.fsum(variances)),
        pooled_df(scaled),
        n=seeds,
        estimand=Estimand.THESE_TEST_SETS,
    )


def stability(
    scores: Mapping[float, Scores],
) -> tuple[tuple[str, ...], tuple[int, ...], list[RateSpread]]:
    """Tasks, seeds, and each model's spread over learning rates, from the scores at each rate (two
    or more).
    """
    rates = sorted(scores)
    models = list(scores[rates[0]])
    at_rate = {(model, rate): scores[rate][model] for model, rate in product(models, rates)}
    tasks, seeds = shared(at_rate)
    spreads: list[RateSpread] = []
    baseline: FloatArray | None = None
    for model in models:
        of_rates = [_by_seed(at_rate[model, rate], tasks, seeds) for rate in rates]
        values = np.stack(of_rates)  # (rates, tasks, seeds)
        per_seed = values.std(axis=0, ddof=1).mean(axis=0)
        means = values.mean(axis=(1, 2))
        to_first = None
        if baseline is None:
            baseline = per_seed
        else:
            to_first = difference_over_seeds(per_seed[None], baseline[None])
        spread = RateSpread(
            model=model,
            by_rate=dict(zip(rates, means.tolist(), strict=True)),
            best_rate=rates[int(means.argmax())],
            range=float(np.ptp(means)),
            test=mean_test(per_seed, estimand=Estimand.THESE_TEST_SETS),
            to_first=to_first,
        )
        spreads.append(spread)
    return tasks, seeds, spreads
