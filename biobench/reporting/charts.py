"""The charts of the app: colours, formats and labels in one place; every number comes from the
rows.

`ink`: the colour of texts and quiet lines, legible on the reader's ground.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from biobench.reporting.escape import plain
from biobench.reporting.row import Row
from biobench.reporting.scales import cost_scale, score_scale

if TYPE_CHECKING:
    from biobench.reporting.details.pretraining import TrainingRun

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2")
"""Of the Okabe-Ito palette, apart for every kind of colour vision, on light and dark grounds: as
many models or runs are drawn at once.
"""
BLUE = COLOURS[0]
INK, DARK_INK = "#5f5f5f", "#b4b4b4"
"""Of texts on a light and on a dark ground."""
FEW_SEEDS = 3
"""Below this many seeds an interval says next to nothing: none is shown."""
FEW_POINTS = 60
"""Up to so many points each stands out on its line: a phase with one has no line."""
SHORT_NAME = 12
"""Letters of names that stand beside each other in a legend on a phone."""
MOST_LETTERS = 34
"""Letters of a name beside a chart."""
_SHORT = ".1~f"
"""Of an axis: one over a single value would print it with six digits."""
_LEGEND = alt.Legend(orient="top", title=None, labelLimit=260, columns=2)

_RIGHT = alt.ExprRef("{top: {anchor: 'end'}}")
"""Legends grow to the left, over the names of the lines: a phone cuts what stands right of them."""


Points = Sequence[Mapping[str, Any]]
"""What is drawn, a mapping a mark: the columns of the chart's data."""


def cut(name: str) -> str:
    """A long name without its middle: the ends tell variants apart."""
    if len(name) <= MOST_LETTERS:
        return name
    half = (MOST_LETTERS - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def ends(row: Row) -> dict[str, float | None]:
    """score, low and high of a row in percent; the last two None where they would rest on too few
    seeds, or where a run failed: the interval is then about the others, and the mean may lie
    outside.
    """
    points: dict[str, float | None] = {"score": 100 * row.mean, "low": None, "high": None}
    if row.low is None or row.high is None or row.n_seeds < FEW_SEEDS or row.failed:
        return points
    return points | {"low": 100 * row.low, "high": 100 * row.high}


def mean_point(by: str, name: str, row: Row, result: str) -> dict[str, Any]:
    """The mean of a row with its interval, as `scores` draws it on the line `name` of `by`."""
    return {by: name, "result": result} | ends(row)


def seed_dots(by: str, name: str, row: Row) -> list[dict[str, Any]]:
    """A quiet dot for each seed of a row."""
    dots = []
    for seed, value in zip(row.seeds, row.values, strict=True):
        dots.append({by: name, "name": f"seed {seed}", "score": 100 * value})
    return dots


def legible(chart: Any, ink: str) -> Any:
    """With texts as dark as texts may be, and the first name on its own line."""
    inked = chart.configure_axis(labelColor=ink, titleColor=ink)
    return inked.configure_axisY(labelFlush=False).configure_legend(labelColor=ink, layout=_RIGHT)


def _in_order(frame: pd.DataFrame, column: str) -> list[str]:
    """The different values of a column."""
    values: list[str] = frame[column].unique().tolist()
    return values


def _names_axis(by: str, order: Sequence[str]) -> Any:
    """A line a name, all of them printed."""
    axis = alt.Axis(labelLimit=320, labelOverlap=False)
    return alt.Y(f"{by}:N", sort=order, title=None, axis=axis)


def _points_axis(field: str, title: str) -> Any:
    """Percent or points."""
    return alt.X(f"{field}:Q", title=title, axis=alt.Axis(tickCount=8, format=_SHORT))


def _colours(field: str, names: Sequence[str], legend: Any = _LEGEND) -> Any:
    """A colour of the palette a name."""
    scale = alt.Scale(domain=names, range=COLOURS)
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def _shapes(field: str, names: Sequence[str], **options: Any) -> Any:
    """A shape a name."""
    return alt.Shape(f"{field}:N", scale=alt.Scale(domain=names), **options)


def _tooltip(names: Sequence[str], numbers: Sequence[str], format: str = ".1f") -> list[Any]:
    tips = [alt.Tooltip(f"{name}:N") for name in names]
    for number in numbers:
        tips.append(alt.Tooltip(f"{number}:Q", format=format))
    return tips


def _dashed_rule(chart: Any, ink: str) -> Any:
    """The line of a value that scores are read against."""
    return chart.mark_rule(strokeDash=[4, 4], color=ink)


def scatter(rows: Points, cost: str, ink: str = INK) -> Any:
    """`score` over `cost`, on a logarithmic axis that holds every dot; filled where the `model` was
    run `here`.

    Each dot is in the tooltip; a name stands beside those that no model of less cost beats, and
    beside runs.
    """
    frame = pd.DataFrame(rows).sort_values("score", ascending=False)
    frame = frame.drop_duplicates(["model", "result"])
    scale, middle = cost_scale(frame["cost"].astype(float))
    axis = alt.Axis(format="~s", tickCount=5, labelOverlap=True)
    y = alt.Y("score:Q", title="mean score", axis=alt.Axis(format=_SHORT))
    axes = {
        "x": alt.X("cost:Q", title=cost, scale=scale, axis=axis),
        "y": y.scale(zero=False, padding=20),
    }
    tips = _tooltip(["model", "result"], ["score"])
    tips.append(alt.Tooltip("cost:Q", format=".3s"))
    fill = alt.condition("datum.here", alt.value(BLUE), alt.value("transparent"))
    dots = alt.Chart(frame).mark_point(size=80, opacity=1, color=BLUE)
    named = _named(frame)
    is_cheap = named["cost"] <= middle
    cheap = alt.Chart(named[is_cheap]).mark_text(align="left", dx=8, color=ink)
    dear = alt.Chart(named[~is_cheap]).mark_text(align="right", dx=-8, color=ink)
    layers = [
        dots.encode(**axes, tooltip=tips, fill=fill),
        cheap.encode(**axes, text="model:N"),
        dear.encode(**axes, text="model:N"),
    ]
    return alt.layer(*layers).properties(height=260)


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """The dots that have a name, none too near another. frame: the best score first."""
    cheapest_better = frame["cost"].astype(float).cummin().shift(fill_value=math.inf)
    candidates = frame[(frame["cost"] < cheapest_better) | frame["here"]]
    heights = frame["score"]
    least_gap = 0.07 * max(float(heights.max() - heights.min()), 1e-9)
    chosen: list[int] = []
    last_score = math.inf
    for position, score in enumerate(candidates["score"]):
        if last_score - score > least_gap:
            chosen.append(position)
            last_score = score
    return candidates.iloc[chosen]


def scores(
    points: Points,
    by: str,
    *,
    title: str = "score, %",
    behind: Points = (),
    baselines: Points = (),
    ink: str = INK,
) -> Any:
    """A line a task or model (`by`), in the order of `points`: `score`, `low` and `high` in percent
    (the ends may be None), a colour and a shape a `result`.

    behind: quiet dots at `score`, each with its `name`: seeds, or other models. baselines: a tick
    at `score`, with its `name`.
    """
    frame = pd.DataFrame(points)
    drawn = [*frame["score"], *frame["low"], *frame["high"]]
    drawn += [mark["score"] for mark in (*behind, *baselines)]
    scale = score_scale(pd.Series(drawn, dtype=float))
    x = _points_axis("score", title).scale(scale)
    y = _names_axis(by, _in_order(frame, by))
    results = _in_order(frame, "result")
    legend = None
    if len(results) > 1:
        legend = _LEGEND
    colour = _colours("result", results, legend)
    tips = _tooltip([by, "name"], ["score"])
    layers = []
    if behind:
        dots = alt.Chart(pd.DataFrame(behind)).mark_circle(size=30, opacity=0.45, color=ink)
        layers.append(dots.encode(x=x, y=y, tooltip=tips))
    if baselines:
        ticks = alt.Chart(pd.DataFrame(baselines)).mark_tick(thickness=2, size=20, color=ink)
        layers.append(ticks.encode(x=x, y=y, tooltip=tips))
    bounded = frame.dropna(subset=["low", "high"])
    if len(bounded):
        rules = alt.Chart(bounded).mark_rule(size=2)
        layers.append(rules.encode(x="low:Q", x2="high:Q", y=y, color=colour))
    marks = alt.Chart(frame).mark_point(size=75, filled=True, opacity=1)
    marks = marks.encode(
        x=x,
        y=y,
        color=colour,
        shape=_shapes("result", results, legend=legend),
        tooltip=_tooltip([by, "result"], ["score", "low", "high"]),
    )
    return alt.layer(*layers, marks).properties(height=alt.Step(22))


TASK_SCORES = (
    "Line: 95% interval over seeds. Small dots: seeds. Ticks, one above another: the best baseline."
)
"""How `task_scores` reads."""


def task_scores(
    models: Sequence[tuple[str, Row]], best_baseline: Row | None, ink: str = INK
) -> Any:
    """The scores of models on a task, with their seeds and the best baseline.

    models: the name beside the chart and the row of each, the best first.
    """
    points = []
    dots = []
    baselines = []
    for name, row in models:
        result = "published" if row.source == "published" else "run here"
        points.append(mean_point("model", name, row, result))
        dots += seed_dots("model", name, row)
        if best_baseline is not None:
            score = 100 * best_baseline.mean
            baselines.append({"model": name, "name": plain(best_baseline.model), "score": score})
    return scores(points, "model", behind=dots, baselines=baselines, ink=ink)


def curves(rows: Points, by: str) -> Any:
    """`score` in percent over the `step` of each row, in their order, a line a `by`."""
    frame = pd.DataFrame(rows)
    steps = alt.X("step:N", sort=_in_order(frame, "step"), title=None)
    score = alt.Y("score:Q", title="score, %", scale=alt.Scale(zero=False, padding=10))
    lines = alt.Chart(frame).mark_line(point=alt.OverlayMarkDef(size=60))
    return lines.encode(
        x=steps.axis(labelAngle=0),
        y=score,
        color=_colours(by, _in_order(frame, by)),
        tooltip=_tooltip([by, "step"], ["score"]),
    ).properties(height=220)


def parts(rows: Points, by: str, mark: str, ink: str = INK) -> Any:
    """A line a `by`, the one whose lowest score is best first: a `mark` each at its `score` in
    percent, joined by a rule.
    """
    frame = pd.DataFrame(rows)
    worst = frame.groupby(by, sort=False)["score"].min()
    best_first = worst.sort_values(ascending=False, kind="stable").index.tolist()
    names = _in_order(frame, mark)
    base = alt.Chart(frame).encode(y=_names_axis(by, best_first))
    legend = _LEGEND
    if max(map(len, names)) > SHORT_NAME:
        # below each other: a phone cuts what stands beside
        legend = alt.Legend(orient="top", title=None, labelLimit=320, columns=1)
    rules = base.mark_rule(color=ink).encode(x="min(score):Q", x2="max(score):Q")
    marks = base.mark_point(size=80, filled=True, opacity=1).encode(
        x=_points_axis("score", "score, %"),
        color=_colours(mark, names, legend),
        shape=_shapes(mark, names),
        tooltip=_tooltip([by, mark], ["score"]),
    )
    return alt.layer(rules, marks).properties(height=alt.Step(24))


def differences(rows: Points, by: str, ink: str = INK) -> Any:
    """A line a task or arm (`by`), in their order: `difference`, `low` and `high` in points (the
    ends may be None) around zero.

    Filled where the interval leaves out zero, hollow and grey where it does not or is unknown.
    """
    frame = pd.DataFrame(rows)
    frame["sure"] = (frame["low"].astype(float) > 0) | (frame["high"].astype(float) < 0)
    y = _names_axis(by, frame[by].tolist())
    colour = alt.condition("datum.sure", alt.value(BLUE), alt.value(ink))
    zero = _dashed_rule(alt.Chart(pd.DataFrame({"zero": [0]})), ink)
    lines = alt.Chart(frame.dropna()).mark_rule(size=2)
    dots = alt.Chart(frame).mark_point(size=70, opacity=1)
    layers = [
        zero.encode(x="zero:Q"),
        lines.encode(x="low:Q", x2="high:Q", y=y, color=colour),
        dots.encode(
            x=_points_axis("difference", "difference, points"),
            y=y,
            tooltip=_tooltip([by], ["difference", "low", "high"], format="+.1f"),
            color=colour,
            fill=alt.condition("datum.sure", alt.value(BLUE), alt.value("transparent")),
        ),
    ]
    return alt.layer(*layers).properties(height=alt.Step(24))


def lengths(rows: Points, unit: str, ink: str = INK) -> Any:
    """`score` by `length`, a line a `model`; at a length stands how many models do not read it."""
    frame = pd.DataFrame(rows)
    models = _in_order(frame, "model")
    measured = sorted(set(frame["length"]))
    axis = alt.Axis(format="d", values=measured, labelOverlap=True)
    scale = alt.Scale(domain=[40, 100], clamp=True)
    doubling = alt.Scale(type="log", base=2, nice=False)
    x = alt.X("length:Q", title=unit, scale=doubling, axis=axis)
    y = alt.Y("score:Q", title="accuracy, %", scale=scale)
    legend = alt.Legend(orient="top", title=None, columns=1, labelLimit=320, rowPadding=0)
    colour = _colours("model", models, legend)
    chance = pd.DataFrame({"score": [50], "text": ["chance"], "length": [measured[0]]})
    base = alt.Chart(chance).encode(y=y)
    name = base.mark_text(align="left", dy=9, color=ink).encode(x=x, text="text:N")
    read = alt.Chart(frame.dropna(subset="score")).encode(x=x, y=y, color=colour)
    points = read.mark_point(size=65, opacity=1, filled=True)
    tips = _tooltip(["model"], ["length", "score"])
    unread = _unread_lengths(frame)
    notes = alt.Chart(unread).encode(x=x, y=y, text="text:N", tooltip=["models:N", "length:Q"])
    notes = notes.mark_text(align="right", baseline="bottom", color=ink)
    layers = [
        _dashed_rule(base, ink),
        name,
        read.mark_line(),
        points.encode(tooltip=tips),
        notes,
    ]
    # the height is that of the whole picture: a line of the legend must not flatten the curves
    return alt.layer(*layers).properties(height=260 + 18 * len(models))


def _unread_lengths(frame: pd.DataFrame) -> pd.DataFrame:
    """A row a length that some models do not read: how many, and which.

    The score stands at the foot of the picture, where no accuracy does.
    """
    rows = []
    for length, models in frame[frame["score"].isna()].groupby("length")["model"]:
        text = f"not read by {len(models)}"
        rows.append({"length": length, "score": 40, "text": text, "models": ", ".join(models)})
    return pd.DataFrame(rows, columns=["length", "score", "text", "models"])


def over_tokens(runs: Sequence[TrainingRun], field: str, title: str, format: str) -> Any:
    """`field` over tokens, one colour a run: a line of training for each phase, dots of the
    evaluations. None where no point has it.
    """
    rows: list[dict[str, Any]] = []
    for run in runs:
        for point in run.points:
            row = {"run": run.name, "phase": point.phase, "event": point.event}
            rows.append(row | {"tokens": point.tokens, field: getattr(point, field)})
    frame = pd.DataFrame(rows).dropna()
    if frame.empty:
        return None
    y = alt.Y(f"{field}:Q", title=title, axis=alt.Axis(format=format))
    base = alt.Chart(frame).encode(
        x=alt.X("tokens:Q", title="input tokens", axis=alt.Axis(format="~s", tickCount=8)),
        y=y.scale(zero=False),
        color=_colours("run", [run.name for run in runs]),
        tooltip=[*_tooltip(["run", "phase"], ["tokens"], format=","), f"{field}:Q"],
    )
    # losses of two phases are of two objectives: no line joins them
    lines = base.mark_line(point=len(frame) < FEW_POINTS).encode(detail="phase:N")
    lines = lines.transform_filter("datum.event == 'train'")
    layers = _phase_starts(frame)
    dots = base.mark_point(size=55, filled=True, shape="diamond")
    dots = dots.transform_filter("datum.event == 'evaluation'")
    return alt.layer(*layers, lines, dots).properties(height=260)


def _phase_starts(frame: pd.DataFrame) -> list[Any]:
    """A dashed line with the name of the phase where a run begins its second and later ones."""
    starts = frame.groupby(["run", "phase"], sort=False)["tokens"].min().reset_index()
    later = starts[starts["run"].duplicated()].drop_duplicates(["phase", "tokens"])
    if later.empty:
        return []
    base = alt.Chart(later).encode(x="tokens:Q", tooltip=_tooltip(["run", "phase"], []))
    names = base.mark_text(align="left", dx=3, color="gray").encode(text="phase:N", y=alt.value(8))
    return [base.mark_rule(strokeDash=[4, 4], color="gray"), names]
