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
class TwinStanding:
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
    """tasks, seeds: what all models share, and what every number is over. reference, twin: their roles' words."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[TwinStanding, ...]
    reference: str
    twin: str

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class RateSpread:
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
    spreads: tuple[RateSpread, ...]
    against_first: Mapping[str, MeanTest]

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def stored_scores(models: Sequence[str], results_dir: str | Path, tasks: Sequence[str] = ()) -> dict[str, Any]:
    """The primary scores of models (names as in the report, or their folders) that have runs.

    tasks: keep only these. Raises UsageError for an unknown name, one known from a paper alone, or runs of several
    conditions on one task.
    """
    scores: dict[str, dict[str, dict[int, float]]] = {}
    for name, entrant in zip(models, find_entrants(models, load(results_dir)), strict=True):
        if entrant.is_published:
            raise UsageError(f"'{name}' is known from a paper alone", hint="this needs scores by seed: run it")
        scores[entrant.label] = {}
        for task, groups in entrant.groups.items():
            if tasks and task not in tasks:
                continue
            if len(groups) > 1:
                names = ", ".join(g.variant or "the shipped protocol" for g in groups)
                raise UsageError(
                    f"'{name}' has runs of several conditions on {task}: {names}",
                    hint="name one as the report prints it, MODEL [condition]",
                )
            records = groups[0].records
            scores[entrant.label][task] = {r.seed: r.scores[r.task.primary] for r in records}
    return scores


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
            TwinStanding(
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
    return Standings(tasks, seeds, tuple(rows), roles[0], roles[1])


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
            RateSpread(
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
    tasks, seeds = (
        f"{n} {word}{'s' * (n != 1)}" for n, word in ((len(report.tasks), "task"), (len(report.seeds), "seed"))
    )
    base = alt.Chart({"values": values}).encode(
        y=alt.Y("model:N", title=None, sort=None, axis=alt.Axis(labelLimit=420)),
        color=alt.Color("role:N", legend=None, scale=alt.Scale(range=["#1f5fa8", "#b5651d"])),
    )
    dots = base.mark_point(filled=True, size=80).encode(
        x=alt.X("difference:Q", title=f"points above the twin; {tasks}, {seeds}"),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("mean:Q", format=".2f"),
            *(alt.Tooltip(f"{n}:Q", format="+.2f") for n in ("difference", "low", "high")),
        ],
    )
    zero = alt.Chart({"values": [{"zero": 0}]}).mark_rule(strokeDash=[4, 4], color="#777").encode(x="zero:Q")
    return (zero + base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q") + dots).properties(width=460)


_VALUES = ("value", "low", "high")
_LAYER_GROUPS = ("low", "mid", "late")
_PAIR, _NOISE = "#1f5fa8", "#b5651d"


def cka_chart(analysis: Mapping[str, Any], *, estimator: str = "debiased") -> Any:
    """The chart of what `analyze cka --json` prints: divergence of the pair and of seed noise per layer.

    Below it their ratio where there is noise, and the series where there is one. Bars: 95% jackknife intervals
    over texts. estimator: ``debiased`` or ``biased``. Raises UsageError for data
    without such lines.
    """
    try:
        lines = [x for x in analysis["lines"] if x["estimator"] == estimator and x["where"].isdigit()]
        title = f"1 − CKA ({estimator}), {analysis['texts']} texts, {analysis['states']} states"
        series = analysis["series"]
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"this is no CKA analysis: {error} is missing", hint="use `analyze cka --json`") from error
    if not lines:
        raise UsageError(f"the analysis has no lines of the estimator '{estimator}'", hint="debiased or biased")
    chart = _by_layer(lines, title)
    ratios = [_point(x["where"], "ratio", x["ratio"], 1.0) for x in lines if x["ratio"] is not None]
    if ratios:
        chart = chart & _by_ratio(ratios)
    if not series:
        return chart
    # each has colours of its own, or the second would have none for its groups
    return (chart & _series_chart(analysis, estimator)).resolve_scale(color="independent")


def _by_layer(lines: Sequence[Mapping[str, Any]], title: str) -> Any:
    import altair as alt

    pair, seeds = "the pair", "seed noise"
    rows = [_point(x["where"], pair, x["divergence"]) for x in lines]
    noise = [_point(x["where"], seeds, x["noise"]) for x in lines if x["noise"] is not None]
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=[pair, seeds], range=[_PAIR, _NOISE]),
        legend=alt.Legend(orient="top") if noise else None,
    )
    tips = [alt.Tooltip("layer:O"), alt.Tooltip("what:N"), *(alt.Tooltip(f"{x}:Q", format=".3f") for x in _VALUES)]
    base = alt.Chart({"values": rows + noise}).encode(x=_across("layer"), color=colour)
    points = base.mark_line(point=alt.OverlayMarkDef(size=45)).encode(
        y=alt.Y("value:Q", title="divergence (%)"), tooltip=tips
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(y="low:Q", y2="high:Q", tooltip=tips)
    return (bars + points).properties(width=560, height=230, title=title)


def _by_ratio(ratios: Sequence[Mapping[str, Any]]) -> Any:
    import altair as alt

    # an interval without an upper end, or below the axis, is drawn to the axis's own end
    top = max(3.0, 1.6 * max(r["value"] for r in ratios))
    floor = min(0.5, 0.6 * min(r["value"] for r in ratios))
    scale = alt.Scale(type="log", domain=[floor, top], clamp=True)
    base = alt.Chart({"values": list(ratios)}).encode(x=_across("layer"))
    dots = base.mark_point(filled=True, size=60, color=_PAIR).encode(
        y=alt.Y("value:Q", title="pair / noise", scale=scale),
        tooltip=[alt.Tooltip("layer:O"), *(alt.Tooltip(f"{x}:Q", format=".2f") for x in _VALUES)],
    )
    spans = base.mark_rule(strokeWidth=1.5, color=_PAIR, opacity=0.7).encode(
        y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q")
    )
    one = alt.Chart({"values": [{"one": 1}]}).mark_rule(strokeDash=[4, 4], color="#777")
    return (one.encode(y=alt.Y("one:Q", scale=scale)) + spans + dots).properties(width=560, height=150)


def _series_chart(analysis: Mapping[str, Any], estimator: str) -> Any:
    """Divergence over the pairs of a series, one line for all layers and one a group; the pair itself is last."""
    import altair as alt

    points = [*((p["pair"], p["lines"]) for p in analysis["series"]), (analysis["pair"], analysis["lines"])]
    rows = [
        _point(str(number), line["where"], line["divergence"]) | {"pair": " : ".join(pair)}
        for number, (pair, lines) in enumerate(points, 1)
        for line in lines
        if line["estimator"] == estimator and line["where"] in (*_LAYER_GROUPS, "all")
    ]
    base = alt.Chart({"values": rows}).encode(
        x=_across("pair of the series"),
        color=alt.Color("what:N", title="layers", sort=["all", *_LAYER_GROUPS]),
        tooltip=[alt.Tooltip("pair:N"), alt.Tooltip("what:N"), *(alt.Tooltip(f"{x}:Q", format=".2f") for x in _VALUES)],
    )
    lines = base.mark_line(point=True).encode(y=alt.Y("value:Q", title="divergence (%)"))
    return (base.mark_rule(opacity=0.6).encode(y="low:Q", y2="high:Q") + lines).properties(
        width=560, height=260, title=f"Divergence along the series ({estimator})"
    )


def _across(title: str) -> Any:
    import altair as alt

    return alt.X("layer:O", title=title, sort=None, axis=alt.Axis(labelAngle=0))


def _point(layer: str, what: str, value: Mapping[str, float | None], scale: float = 100.0) -> dict[str, Any]:
    """A point in percent; an upper end that is not bounded is left at the largest float."""
    ends = {name: min(scale * end, 1e300) if (end := value[name]) is not None else 1e300 for name in _VALUES}
    return {"layer": layer, "what": what, **ends}
