"""Learning curves: the score over the number of training documents (`run --fractions`)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise
from typing import Any

from biobench.core.files import canonical
from biobench.reporting.escape import plain
from biobench.reporting.evidence import LEAST_SEEDS
from biobench.reporting.frame import cells
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results, metric_of
from biobench.reporting.row import AverageName, Row, in_percent
from biobench.schema.kind import get_metric
from biobench.stats import (
    Estimand,
    MeanTest,
    holm,
    pooled_df,
    seed_part,
    t_from_se,
)

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
    def ends(self) -> tuple[float, float] | None:
        """low and high, where both are known."""
        if self.low is None or self.high is None:
            return None
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Curve:
    """One model on one task; points by share, two at least. baseline: score and name of the best
    stored one.
    """

    model: str
    task: str
    metric: str
    points: tuple[CurveShare, ...]
    baseline: tuple[float, str] | None = None

    def texts(self, point: CurveShare) -> str:
        """``200 of 1,600 texts``, or the share where the records do not say how many."""
        # the whole is what the largest share is of: a small one's number was rounded
        largest = self.points[-1]
        if point.documents is None or largest.documents is None:
            return f"{100 * point.share:g}% of the texts"
        return f"{point.documents:,} of {round(largest.documents / largest.share):,} texts"


def curves_of(results: Results, task: str, average: AverageName = "paper") -> list[Curve]:
    """The curves of a task: groups of runs that differ in the training fraction alone."""
    metric = metric_of(results.infos[task], average)
    rows: dict[tuple[str, str, str], Row] = {}
    baseline = None
    for row in cells(results, average).rows:
        if row.task == task:
            rows[row.line] = row
            is_baseline = row.source == "baseline"
            if is_baseline and (baseline is None or row.mean > baseline[0]):
                baseline = row.mean, row.model
    alike: dict[tuple[Any, ...], list[CurveShare]] = defaultdict(list)
    for group in results.groups:
        if group.task == task and group.line in rows and not group.folds:
            share, recipe = _recipe(group)
            _, *condition = group.condition
            weights = group.briefs[0].weights
            point = _point(share, group, rows[group.line])
            alike[group.model, group.source, weights, recipe, *condition].append(point)
    curves = []
    for (model, *_), points in alike.items():
        if len(points) > 1:
            points.sort(key=lambda point: point.share)
            curves.append(
                Curve(
                    model=model,
                    task=task,
                    metric=metric,
                    points=tuple(points),
                    baseline=baseline,
                )
            )
    return curves


def _recipe(group: RunGroup) -> tuple[float, str]:
    """The share of the training documents, and all else that the records say of the protocol."""
    protocol = dict(group.records[0].protocol)
    share = 1.0
    # A record is a stranger's: its protocol may hold anything.
    if isinstance(protocol.get("training"), dict):
        training = dict(protocol["training"])
        if isinstance(training.get("train_fraction"), float):
            share = training.pop("train_fraction")
        protocol["training"] = training
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


def difference(point: CurveShare, later: CurveShare) -> MeanTest | None:
    """`later` minus `point` over seeds (Welch); None below three seeds."""
    if min(len(point.scores), len(later.scores)) < LEAST_SEEDS:
        return None
    variances = [seed_part(share.scores, resolution=share.unit) for share in (point, later)]
    return t_from_se(
        later.mean - point.mean,
        math.sqrt(sum(variance for variance, _ in variances)),
        pooled_df(variances),
        n=len(point.scores) + len(later.scores),
        estimand=Estimand.NEW_SEEDS,
    )


def doublings(curve: Curve) -> Iterator[tuple[CurveShare, MeanTest]]:
    """Each point whose double was run, and what doubling gives. Nothing is extrapolated."""
    for point in curve.points:
        for double in curve.points:
            if math.isclose(double.share, 2 * point.share):
                gain = difference(point, double)
                if gain is not None:
                    yield point, gain


def answer(curve: Curve) -> str:
    """One sentence: the score with so many texts, and what twice as many give."""
    name = plain(curve.model)
    gains = list(doublings(curve))
    if not gains:
        lack = f"no fraction was run with its double over {LEAST_SEEDS} seeds"
        return f"{name}: {lack}, so there is no answer on doubling"
    point, gain = gains[-1]
    assert gain.interval is not None
    ends = _between(gain.interval.low, gain.interval.high)
    gained = f"{100 * gain.estimate:+.1f} ({ends})"
    return f"{name}: with {curve.texts(point)}: {_score(point)}; doubling from there gives {gained}"


def crossing(first: Curve, second: Curve) -> str | None:
    """Where the lead changes, if both leads are shown (Holm over the shares that both have)."""
    of_second = {point.share: point for point in second.points}
    shared = [point for point in first.points if point.share in of_second]
    tests = [difference(point, of_second[point.share]) for point in shared]
    steps = holm([test.p if test else None for test in tests])
    leads: list[tuple[CurveShare, str]] = []
    for point, test, step in zip(shared, tests, steps, strict=True):
        if test is not None and step is not None and step.passed:
            leader = first
            if test.estimate > 0:
                leader = second
            leads.append((point, leader.model))
    for (point, model), (later, next_model) in pairwise(leads):
        if model != next_model:
            begin = f"the curves cross: {plain(model)} leads with {first.texts(point)}"
            return f"{begin}, {plain(next_model)} with {first.texts(later)}"
    return None


def _between(low: float, high: float) -> str:
    """``57.2 to 64.8``"""
    return f"{in_percent(low)} to {in_percent(high)}"


def _score(point: CurveShare) -> str:
    """``61.0 (57.2 to 64.8)``"""
    score = in_percent(point.mean)
    if point.ends is not None:
        score += f" ({_between(*point.ends)})"
    return score


def as_text(curves: Sequence[Curve]) -> str:
    """The curves of one task: a drawn line a point, the answer of each, and where two cross."""
    lines = [f"{curves[0].task}, {get_metric(curves[0].metric).words}, percent"]
    scores: list[float] = []
    for curve in curves:
        for point in curve.points:
            scores += [point.mean, *(point.ends or ())]
    baseline = curves[0].baseline
    if baseline is not None:
        score, name = baseline
        scores.append(score)
        lines.append(f"best baseline (:): {plain(name)}, {in_percent(score)}")
    for curve in curves:
        lines += ["", plain(curve.model)]
        for point in curve.points:
            drawn = _drawn(point, baseline, min(scores), max(scores))
            lines.append(f"  {curve.texts(point):>24}  {drawn}  {_score(point)}")
    lines.append("")
    lines += map(answer, curves)
    for first, second in combinations(curves, 2):
        crossed = crossing(first, second)
        if crossed is not None:
            lines.append(crossed)
    return "\n".join(lines) + "\n"


def _drawn(point: CurveShare, baseline: tuple[float, str] | None, low: float, high: float) -> str:
    """The mean (o) in its interval (-) between the lowest and the highest number of the task."""

    def column(value: float) -> int:
        return round((value - low) / max(high - low, 1e-9) * (WIDTH - 1))

    line = [" "] * WIDTH
    if baseline is not None:
        line[column(baseline[0])] = ":"
    if point.ends is not None:
        start, end = map(column, point.ends)
        line[start : end + 1] = "-" * (end + 1 - start)
    line[column(point.mean)] = "o"
    return "".join(line)


def as_rows(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """A row a point, for programs; scores are fractions."""
    rows = []
    for curve in curves:
        about = {"model": curve.model, "task": curve.task, "metric": curve.metric}
        rows += [about | asdict(point) for point in curve.points]
    return rows
