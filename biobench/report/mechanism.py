"""Interventions in numbers: what freezing costs, how much of a gain a transplant carries, how steady scores are.

Scores come as model -> task -> seed -> fraction. Everything is paired over the seeds that the models share;
tasks are held fixed and their test sets too, so the intervals are about other fine-tuning seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biobench.errors import UsageError
from biobench.report.entrants import find_entrants
from biobench.report.table import load
from biobench.stats import Estimand, MeanTest, compare_seeds, mean_test, within_tasks_seeds
from biobench.stats.ratio import Ratio, paired_ratio

Scores = Mapping[str, Mapping[str, Mapping[int, float]]]
"""Model -> task -> seed -> score (fraction)."""


@dataclass(frozen=True)
class Standing:
    """One model beside the twin and the reference; differences are fractions, first minus the other.

    kept: (this - twin) / (reference - twin), the share of the reference's gain that is there. frozen: which
    layers stood still in which phase, from the ledger; empty where none did or no ledger was found.
    """

    model: str
    role: str
    frozen: str
    mean: float
    tasks: Mapping[str, float]
    to_twin: MeanTest | None
    to_reference: MeanTest | None
    kept: Ratio | None
    note: str = ""


@dataclass(frozen=True)
class Standings:
    """tasks, seeds: what all models share, and what every number is over."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[Standing, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Spread:
    """How one model's scores move with the learning rate. Scores and spreads are fractions.

    by_rate: mean over tasks and seeds at each rate. range: highest less lowest of these. sd: their standard
    deviation over rates, each seed and task by itself, then the mean. test: that sd over seeds.
    """

    model: str
    by_rate: Mapping[float, float]
    best_rate: float
    range: float
    test: MeanTest


@dataclass(frozen=True)
class Stability:
    """against_first: each later model's sd less the first's, paired over seeds."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    spreads: tuple[Spread, ...]
    against_first: Mapping[str, MeanTest]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def stored_scores(models: Sequence[str], results_dir: str | Path, tasks: Sequence[str] = ()) -> dict[str, Any]:
    """The primary scores of models (names as in the report, or their folders) that have runs.

    tasks: keep only these. Raises UsageError for an unknown name, one known from a paper alone, or runs of several
    conditions on one task.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for given, entrant in zip(models, find_entrants(models, load(results_dir)), strict=True):
        if entrant.is_published:
            raise UsageError(f"'{given}' is known from a paper alone", hint="this needs scores by seed: run it")
        found[entrant.label] = {}
        for task, groups in entrant.groups.items():
            if tasks and task not in tasks:
                continue
            if len(groups) > 1:
                names = ", ".join(g.variant or "the shipped protocol" for g in groups)
                raise UsageError(
                    f"'{given}' has runs of several conditions on {task}: {names}",
                    hint="name one as the report prints it, MODEL [condition]",
                )
            records = groups[0].records
            found[entrant.label][task] = {r.seed: r.scores[r.task.primary] for r in records}
    return found


def shared(scores: Scores) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Tasks that all models have, and the seeds that all have on all of these. Raises UsageError for none."""
    tables = list(scores.values())
    tasks = tuple(t for t in tables[0] if all(t in table for table in tables))
    if not tasks:
        raise UsageError("the models have no task in common", hint="run all of them on the same tasks first")
    seeds = set.intersection(*(set(table[task]) for table in tables for task in tasks))
    if not seeds:
        raise UsageError("the models have no seed in common", hint="run all of them with the same --seeds")
    return tasks, tuple(sorted(seeds))


def standings(
    scores: Scores,
    *,
    reference: str,
    twin: str,
    frozen: Mapping[str, str] | None = None,
    roles: tuple[str, str, str] = ("reference", "twin", "frozen"),
) -> Standings:
    """Every model beside `twin` and `reference`, which must be among them.

    frozen: what stood still, per model. roles: words for the reference, the twin and the others.
    """
    tasks, seeds = shared(scores)
    by_seed = {m: np.array([[scores[m][t][s] for s in seeds] for t in tasks]) for m in scores}
    gain = (by_seed[reference] - by_seed[twin]).mean(axis=0)
    rows = []
    for model, values in by_seed.items():
        ends = model in (reference, twin)
        kept = None
        if not ends:
            kept = paired_ratio((values - by_seed[twin]).mean(axis=0), gain, estimand=Estimand.THESE_TEST_SETS)
        rows.append(
            Standing(
                model,
                roles[0] if model == reference else roles[1] if model == twin else roles[2],
                (frozen or {}).get(model, ""),
                float(values.mean()),
                {task: float(row.mean()) for task, row in zip(tasks, values, strict=True)},
                None if model == twin else _difference(values, by_seed[twin]),
                None if model == reference else _difference(values, by_seed[reference]),
                kept,
                (kept.note or "") if kept else "",
            )
        )
    return Standings(tasks, seeds, tuple(rows))


def _difference(first: Any, second: Any) -> MeanTest | None:
    return within_tasks_seeds(list(first), list(second)).test


def stability(scores: Mapping[float, Scores]) -> Stability:
    """Spread over learning rates, from the scores at each rate. Raises UsageError unless there are two rates."""
    if len(scores) < 2:
        raise UsageError("one learning rate has no spread", hint="give --learning-rates two values or more")
    joined = {
        model: {f"{task} {rate}": by_seed for rate in scores for task, by_seed in scores[rate][model].items()}
        for model in next(iter(scores.values()))
    }
    _, seeds = shared(joined)
    rates = sorted(scores)
    tasks = tuple(next(iter(next(iter(scores.values())).values())))
    spreads, per_seed = [], {}
    for model in joined:
        # (rates, tasks, seeds)
        values = np.array([[[scores[r][model][t][s] for s in seeds] for t in tasks] for r in rates])
        means = values.mean(axis=(1, 2))
        per_seed[model] = values.std(axis=0, ddof=1).mean(axis=0)
        spreads.append(
            Spread(
                model,
                {r: float(m) for r, m in zip(rates, means, strict=True)},
                rates[int(means.argmax())],
                float(means.max() - means.min()),
                mean_test(per_seed[model], estimand=Estimand.THESE_TEST_SETS),
            )
        )
    first = next(iter(joined))
    against = {m: compare_seeds(per_seed[m], per_seed[first]).test for m in joined if m != first}
    return Stability(tasks, seeds, tuple(spreads), against)


def standings_chart(report: Standings) -> Any:
    """Dot plot: difference to the twin in points, with 95% intervals over seeds; the twin is the line at 0."""
    import altair as alt

    values = []
    for row in report.rows:
        test = row.to_twin
        if test is None:
            continue
        ends = test.interval
        values.append(
            {
                "model": f"{row.model} ({row.frozen or row.role})",
                "difference": 100 * test.estimate,
                "low": 100 * (ends.low if ends else test.estimate),
                "high": 100 * (ends.high if ends else test.estimate),
                "mean": 100 * row.mean,
                "role": row.role,
            }
        )
    base = alt.Chart({"values": values}).encode(
        y=alt.Y("model:N", title=None, sort=None, axis=alt.Axis(labelLimit=420)),
        color=alt.Color("role:N", legend=None, scale=alt.Scale(range=["#1f5fa8", "#b5651d"])),
    )
    dots = base.mark_point(filled=True, size=80).encode(
        x=alt.X("difference:Q", title=f"points above the twin, {len(report.tasks)} task(s), {len(report.seeds)} seeds"),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("mean:Q", format=".2f"),
            *(alt.Tooltip(f"{n}:Q", format="+.2f") for n in ("difference", "low", "high")),
        ],
    )
    zero = alt.Chart({"values": [{"zero": 0}]}).mark_rule(strokeDash=[4, 4], color="#777").encode(x="zero:Q")
    return (zero + base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q") + dots).properties(width=460)
