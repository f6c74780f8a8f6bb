"""Learning curves: the score over the number of training documents (`run --fractions`)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from biobench.core.files import canonical
from biobench.report.escape import plain
from biobench.report.frame import cells
from biobench.report.groups import RunGroup
from biobench.report.literature.comparison import NAMES
from biobench.report.results import Results, metric_of
from biobench.report.row import AverageName, Row
from biobench.stats import (
    Estimand,
    MeanTest,
    holm,
    pooled_df,
    seed_part,
    t_from_se,
)

LEAST_SEEDS = 3
"""Fewer give neither an interval nor a difference."""
WIDTH = 32
"""Characters of a drawn line."""


@dataclass(frozen=True, slots=True)
class CurveShare:
    """One share of the training documents. Scores are fractions; low, high: 95% over seeds.

    documents: None where the records are older than that field.
    """

    share: float
    documents: int | None
    mean: float
    low: float | None
    high: float | None
    scores: tuple[float, ...]
    unit: float
    """What one more right answer is worth at most."""

    @property
    def is_tested(self) -> bool:
        """Whether there are seeds enough for a difference."""
        return len(self.scores) >= LEAST_SEEDS


@dataclass(frozen=True, slots=True)
class Curve:
    """One model on one task; points by share, two at least. baseline: name and score of the best
    stored one.
    """

    model: str
    task: str
    metric: str
    points: tuple[CurveShare, ...]
    baseline: tuple[str, float] | None = None

    @property
    def title(self) -> str:
        """What its numbers are."""
        return f"{self.task}, {NAMES.get(self.metric, self.metric)}, percent"


def curves_of(results: Results, task: str, average: AverageName = "paper") -> list[Curve]:
    """The curves of a task: groups of runs that differ in the training fraction alone."""
    metric = metric_of(results.infos[task], average)
    rows = [row for row in cells(results, average).rows if row.task == task]
    row_of = {row.line: row for row in rows}
    alike: dict[tuple[Any, ...], list[CurveShare]] = defaultdict(list)
    for group in results.groups:
        row = row_of.get((group.model, group.variant, group.source))
        if group.task == task and row is not None and not group.folds:
            share, recipe = _recipe(group)
            _, *condition = group.condition
            weights = group.briefs[0].weights
            key = group.source, group.model, weights, recipe, *condition
            alike[key].append(_point(share, group, row))
    baselines = [(row.model, row.mean) for row in rows if row.source == "baseline"]
    best = max(baselines, key=lambda pair: pair[1], default=None)
    curves = []
    for (_, model, *_), points in alike.items():
        if len(points) > 1:
            ordered = tuple(sorted(points, key=lambda point: point.share))
            curves.append(Curve(model, task, metric, ordered, best))
    return curves


def _recipe(group: RunGroup) -> tuple[float, str]:
    """The share of the training documents, and all else that the records say of the protocol."""
    protocol, share = dict(group.records[0].protocol), 1.0
    match protocol.get("training"):
        case {"train_fraction": float() as share, **others}:
            protocol["training"] = others
    return share, canonical(protocol)


def _point(share: float, group: RunGroup, row: Row) -> CurveShare:
    """The group's row of the report, as a point; too few seeds and failed runs give no interval."""
    has_interval = row.n_seeds >= LEAST_SEEDS and not row.failed
    return CurveShare(
        share=share,
        documents=group.records[0].train_documents,
        mean=row.mean,
        low=row.low if has_interval else None,
        high=row.high if has_interval else None,
        scores=row.values,
        unit=group.unit,
    )


def difference(point: CurveShare, other: CurveShare) -> MeanTest | None:
    """`other` minus `point` over seeds (Welch); None below three seeds."""
    if not (point.is_tested and other.is_tested):
        return None
    parts = [seed_part(each.scores, resolution=each.unit) for each in (point, other)]
    error = math.sqrt(sum(variance for variance, _ in parts))
    return t_from_se(
        other.mean - point.mean,
        error,
        pooled_df(parts),
        n=len(point.scores) + len(other.scores),
        estimand=Estimand.NEW_SEEDS,
    )


def doublings(curve: Curve) -> Iterator[tuple[CurveShare, MeanTest]]:
    """Each point whose double was run, and what doubling gives. Nothing is extrapolated."""
    for point in curve.points:
        for other in curve.points:
            gain = None
            if math.isclose(other.share, 2 * point.share):
                gain = difference(point, other)
            if gain is not None:
                yield point, gain


def answer(curve: Curve) -> str:
    """One sentence: the score with so many texts, and what twice as many give."""
    known = list(doublings(curve))
    if not known:
        return (
            f"{plain(curve.model)}: no fraction was run with its double over "
            f"{LEAST_SEEDS} seeds, so there is no answer on doubling"
        )
    point, gain = known[-1]
    assert gain.interval is not None
    ends = f"{100 * gain.interval.low:.1f} to {100 * gain.interval.high:.1f}"
    return (
        f"{plain(curve.model)}: with {texts(point)}: {_score(point)}; doubling from there gives "
        f"{100 * gain.estimate:+.1f} ({ends})"
    )


def crossing(first: Curve, second: Curve) -> str | None:
    """Where the lead changes, if both leads are shown (Holm over the shares that both have)."""
    of_second = {point.share: point for point in second.points}
    pairs = [(p, of_second[p.share]) for p in first.points if p.share in of_second]
    tests = [difference(one, other) for one, other in pairs]
    steps = holm([None if test is None else test.p for test in tests])
    leads: list[tuple[CurveShare, str]] = []
    for (point, _), test, step in zip(pairs, tests, steps, strict=True):
        if test is not None and step is not None and step.passed:
            leads.append((point, second.model if test.estimate > 0 else first.model))
    for (point, leader), (later, other_leader) in pairwise(leads):
        if leader != other_leader:
            return (
                f"the curves cross: {plain(leader)} leads with {texts(point)}, "
                f"{plain(other_leader)} with {texts(later)}"
            )
    return None


def texts(point: CurveShare) -> str:
    """``200 of 1,600 texts``, or the share where the records do not say how many."""
    if point.documents is None:
        return f"{100 * point.share:g}% of the texts"
    return f"{point.documents:,} of {round(point.documents / point.share):,} texts"


def _score(point: CurveShare) -> str:
    """``61.0 (57.2 to 64.8)``"""
    score = f"{100 * point.mean:.1f}"
    if point.low is None or point.high is None:
        return score
    return f"{score} ({100 * point.low:.1f} to {100 * point.high:.1f})"


def as_text(curves: Sequence[Curve]) -> str:
    """The curves of one task: a drawn line a point, the answer of each, and where two cross."""
    lines = [curves[0].title]
    ends = [value for c in curves for p in c.points for value in (p.low, p.high, p.mean)]
    known = [value for value in ends if value is not None]
    baseline = curves[0].baseline
    if baseline is not None:
        known.append(baseline[1])
        lines.append(f"best baseline (:): {plain(baseline[0])}, {100 * baseline[1]:.1f}")
    low, high = min(known), max(known)
    for curve in curves:
        lines.append("")
        lines.append(plain(curve.model))
        for point in curve.points:
            drawn = _drawn(point, baseline, low, high)
            lines.append(f"  {texts(point):>24}  {drawn}  {_score(point)}")
    lines.append("")
    lines += [answer(curve) for curve in curves]
    for place, first in enumerate(curves):
        crossings = [crossing(first, second) for second in curves[place + 1 :]]
        lines += [line for line in crossings if line is not None]
    return "\n".join(lines) + "\n"


def _drawn(point: CurveShare, baseline: tuple[str, float] | None, low: float, high: float) -> str:
    """The mean (o) in its interval (-) between the lowest and the highest number of the task."""

    def column(value: float) -> int:
        return round((value - low) / max(high - low, 1e-9) * (WIDTH - 1))

    line = [" "] * WIDTH
    if baseline is not None:
        line[column(baseline[1])] = ":"
    if point.low is not None and point.high is not None:
        for place in range(column(point.low), column(point.high) + 1):
            line[place] = "-"
    line[column(point.mean)] = "o"
    return "".join(line)


def as_rows(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """A row a point, for programs; scores are fractions."""
    rows = []
    for curve in curves:
        for point in curve.points:
            about = {"model": curve.model, "task": curve.task, "metric": curve.metric}
            rows.append(about | asdict(point))
    return rows
