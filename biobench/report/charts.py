"""The charts of the app: colours, formats and labels in one place; every number comes from the
rows.

`ink`: the colour of texts and quiet lines, legible on the reader's ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from biobench.report.escape import plain
from biobench.report.row import Row

if TYPE_CHECKING:
    from biobench.report.details.pretraining import TrainingRun

BLUE, ORANGE = "#56B4E9", "#E69F00"
"""Two hues of the Okabe-Ito palette, apart for every kind of colour vision, on light and dark
grounds.
"""
COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2")
"""Of the same palette: as many models or runs are drawn at once."""
INK, DARK_INK = "#5f5f5f", "#b4b4b4"
"""Of texts on a light and on a dark ground."""
FEW_SEEDS = 3
"""Below this many seeds an interval says next to nothing: none is shown."""
MOST_LETTERS = 34
"""Letters of a name beside a chart."""
_SHORT = ".1~f"
"""Of an axis: one over a single value would print it with six digits."""


def cut(name: str, most: int = MOST_LETTERS) -> str:
    """A long name without its middle: the ends tell variants apart."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def ends(row: Row) -> dict[str, float | None]:
    """score, low and high of a row in percent; the last two None where they would rest on too few
    seeds, or where a run failed: the interval is then about the others, and the mean may lie
    outside.
    """
    known = (
        row.low is not None and row.high is not None and row.n_seeds >= FEW_SEEDS and not row.failed
    )
    low, high = (100 * row.low, 100 * row.high) if known else (None, None)  # type: ignore[operator]
    return {"score": 100 * row.mean, "low": low, "high": high}


def mean_point(by: str, name: str, row: Row, result: str) -> dict[str, Any]:
    """The mean of a row with its interval, as `scores` draws it on the line `name` of `by`."""
    return {by: name, "result": result} | ends(row)


def seed_dots(by: str, name: str, row: Row) -> list[dict[str, Any]]:
    """A quiet dot for each seed of a row."""
    return [
        {by: name, "name": f"seed {seed}", "score": 100 * value}
        for seed, value in zip(row.seeds, row.values, strict=True)
    ]


def legible(chart: Any, ink: str) -> Any:
    """With texts as dark as texts may be, and the first name on its own line."""
    inked = chart.configure_axis(labelColor=ink, titleColor=ink)
    return inked.configure_axisY(labelFlush=False).configure_legend(labelColor=ink)


def scatter(rows: Sequence[Mapping[str, Any]], cost: str, ink: str = INK) -> Any:
    """`score` over `cost`, on a logarithmic axis that holds every dot; filled where the `model` was
    run `here`.

    Each dot is in the tooltip; a name stands beside those that no model of less cost beats, and
    beside runs.
    """
    frame = (
        pd.DataFrame(rows)
        .sort_values("score", ascending=False)
        .drop_duplicates(["model", "result"])
    )
    low, high = float(frame["cost"].min()), float(frame["cost"].max())
    log = low > 0
    room = max((high / low) ** 0.15, 1.3) if log else 0.0
    # a domain of one's own: padding in pixels turned the axis round on narrow screens
    domain = [low / room, high * room] if log else [low - 1, high * 1.1 + 1]
    scale = alt.Scale(type="log" if log else "linear", nice=False, zero=False, domain=domain)
    x = alt.X(
        "cost:Q",
        title=cost,
        scale=scale,
        axis=alt.Axis(format="~s", tickCount=5, labelOverlap=True),
    )
    y = alt.Y(
        "score:Q",
        title="mean score",
        scale=alt.Scale(zero=False, padding=20),
        axis=alt.Axis(format=_SHORT),
    )
    tips = [
        "model:N",
        "result:N",
        alt.Tooltip("cost:Q", format=".3s"),
        alt.Tooltip("score:Q", format=".1f"),
    ]
    fill = alt.condition("datum.here", alt.value(BLUE), alt.value("transparent"))
    dots = (
        alt.Chart(frame)
        .mark_point(size=80, opacity=1, color=BLUE)
        .encode(x=x, y=y, tooltip=tips, fill=fill)
    )
    named: list[dict[Any, Any]] = []
    height = max(float(frame["score"].max() - frame["score"].min()), 1e-9)
    for row in frame.to_dict("records"):
        best = not (frame[frame["cost"] <= row["cost"]]["score"] > row["score"]).any()
        if (best or row["here"]) and all(
            abs(row["score"] - other["score"]) > 0.07 * height for other in named
        ):
            named.append(row)
    layers = [dots]
    middle = (low * high) ** 0.5 if log else (low + high) / 2
    for right in (True, False):
        if part := [row for row in named if (row["cost"] <= middle) == right]:
            mark = alt.Chart(pd.DataFrame(part)).mark_text(
                align="left" if right else "right", dx=8 if right else -8, color=ink
            )
            layers.append(mark.encode(x=x, y=y, text="model:N"))
    return alt.layer(*layers).properties(height=260)


def scores(
    points: Sequence[Mapping[str, Any]],
    by: str,
    *,
    title: str = "score, %",
    behind: Sequence[Mapping[str, Any]] = (),
    baselines: Sequence[Mapping[str, Any]] = (),
    ink: str = INK,
) -> Any:
    """A line a task or model (`by`), in the order of `points`: `score`, `low` and `high` in percent
    (the ends may be None), a colour and a shape a `result`.

    behind: quiet dots at `score`, each with its `name`: seeds, or other models. baselines: a tick
    at `score`, with its `name`.
    """
    frame = pd.DataFrame(points)
    order = list(dict.fromkeys(frame[by]))
    axis = alt.Axis(labelLimit=260, labelOverlap=False)
    y = alt.Y(f"{by}:N", sort=order, title=None, axis=axis)
    x = alt.X(
        "score:Q",
        title=title,
        scale=alt.Scale(zero=False, padding=10),
        axis=alt.Axis(tickCount=8, format=_SHORT),
    )
    results = list(dict.fromkeys(frame["result"]))
    legend = alt.Legend(orient="top", title=None, labelLimit=260) if len(results) > 1 else None
    colour = alt.Color(
        "result:N", legend=legend, scale=alt.Scale(domain=results, range=list(COLOURS))
    )
    shape = alt.Shape("result:N", legend=legend, scale=alt.Scale(domain=results))
    layers = []
    named = [f"{by}:N", "name:N", alt.Tooltip("score:Q", format=".1f")]
    if behind:
        quiet = alt.Chart(pd.DataFrame(behind)).mark_circle(size=30, opacity=0.45, color=ink)
        layers.append(quiet.encode(x=x, y=y, tooltip=named))
    if baselines:
        ticks = alt.Chart(pd.DataFrame(baselines)).mark_tick(thickness=2, size=20, color=ink)
        layers.append(ticks.encode(x=x, y=y, tooltip=named))
    known = frame.dropna(subset=["low", "high"])
    if len(known):
        rules = alt.Chart(known).mark_rule(size=2)
        layers.append(rules.encode(x="low:Q", x2="high:Q", y=y, color=colour))
    ends_of_point = [alt.Tooltip(f"{end}:Q", format=".1f") for end in ("score", "low", "high")]
    tips = [f"{by}:N", "result:N", *ends_of_point]
    marks = alt.Chart(frame).mark_point(size=75, filled=True, opacity=1)
    layers.append(marks.encode(x=x, y=y, color=colour, shape=shape, tooltip=tips))
    return alt.layer(*layers).properties(height=alt.Step(22))


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
    points, dots, baselines = [], [], []
    for name, row in models:
        result = "published" if row.source == "published" else "run here"
        points.append(mean_point("model", name, row, result))
        dots += seed_dots("model", name, row)
        if best_baseline is not None:
            score = 100 * best_baseline.mean
            baselines.append({"model": name, "name": plain(best_baseline.model), "score": score})
    return scores(points, "model", behind=dots, baselines=baselines, ink=ink)


def curves(rows: Sequence[Mapping[str, Any]], by: str) -> Any:
    """`score` in percent over the `step` of each row, in their order, a line a `by`."""
    frame = pd.DataFrame(rows)
    steps = list(dict.fromkeys(frame["step"]))
    lines = list(dict.fromkeys(frame[by]))
    return (
        alt.Chart(frame)
        .mark_line(point=alt.OverlayMarkDef(size=60))
        .encode(
            x=alt.X("step:N", sort=steps, title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("score:Q", title="score, %", scale=alt.Scale(zero=False, padding=10)),
            color=alt.Color(
                f"{by}:N",
                legend=alt.Legend(orient="top", title=None),
                scale=alt.Scale(domain=lines, range=list(COLOURS)),
            ),
            tooltip=[f"{by}:N", "step:N", alt.Tooltip("score:Q", format=".1f")],
        )
        .properties(height=220)
    )


def parts(rows: Sequence[Mapping[str, Any]], by: str, mark: str, ink: str = INK) -> Any:
    """A line a `by`, the one whose lowest score is best first: a `mark` each at its `score` in
    percent, joined by a rule.
    """
    frame = pd.DataFrame(rows)
    worst = frame.groupby(by, sort=False)["score"].min()
    order = list(worst.sort_values(ascending=False, kind="stable").index)
    y = alt.Y(f"{by}:N", sort=order, title=None, axis=alt.Axis(labelLimit=320, labelOverlap=False))
    x = alt.X("score:Q", title="score, %", axis=alt.Axis(tickCount=8, format=_SHORT))
    names = list(dict.fromkeys(frame[mark]))
    colour = alt.Color(f"{mark}:N", scale=alt.Scale(domain=names, range=list(COLOURS)))
    shape = alt.Shape(f"{mark}:N", scale=alt.Scale(domain=names))
    tips = [f"{by}:N", f"{mark}:N", alt.Tooltip("score:Q", format=".1f")]
    marks = (
        alt.Chart(frame)
        .mark_point(size=80, filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=colour.legend(orient="top", title=None, columns=2, labelLimit=260),
            shape=shape,
            tooltip=tips,
        )
    )
    rules = alt.Chart(frame).mark_rule(color=ink).encode(x="min(score):Q", x2="max(score):Q", y=y)
    return alt.layer(rules, marks).properties(height=alt.Step(24))


def differences(rows: Sequence[Mapping[str, Any]], by: str, ink: str = INK) -> Any:
    """A line a task or arm (`by`), in their order: `difference`, `low` and `high` in points (the
    ends may be None) around zero.

    Filled where the interval leaves out zero, hollow and grey where it does not or is unknown.
    """
    frame = pd.DataFrame(rows)
    frame["sure"] = (frame["low"].astype(float) > 0) | (frame["high"].astype(float) < 0)
    y = alt.Y(
        f"{by}:N",
        sort=list(frame[by]),
        title=None,
        axis=alt.Axis(labelLimit=320, labelOverlap=False),
    )
    x = alt.X("difference:Q", title="difference, points", axis=alt.Axis(tickCount=8, format=_SHORT))
    colour = alt.condition("datum.sure", alt.value(BLUE), alt.value(ink))
    zero = (
        alt.Chart(pd.DataFrame({"zero": [0]}))
        .mark_rule(strokeDash=[4, 4], color=ink)
        .encode(x="zero:Q")
    )
    known = frame.dropna()
    lines = alt.Chart(known).mark_rule(size=2).encode(x="low:Q", x2="high:Q", y=y, color=colour)
    tips = [
        f"{by}:N",
        *(alt.Tooltip(f"{c}:Q", format="+.1f") for c in ("difference", "low", "high")),
    ]
    fill = alt.condition("datum.sure", alt.value(BLUE), alt.value("transparent"))
    dots = (
        alt.Chart(frame)
        .mark_point(size=70, opacity=1)
        .encode(x=x, y=y, tooltip=tips, color=colour, fill=fill)
    )
    return alt.layer(zero, *([lines] if len(known) else []), dots).properties(height=alt.Step(24))


def lengths(rows: Sequence[Mapping[str, Any]], unit: str, ink: str = INK) -> Any:
    """`score` by `length`, a line a `model`; hollow where the length is not `read`."""
    frame = pd.DataFrame(rows)
    ordered = list(dict.fromkeys(row["model"] for row in rows))
    measured = sorted({row["length"] for row in rows})
    axis = alt.Axis(format="d", values=measured, labelOverlap=True)
    x = alt.X("length:Q", title=unit, scale=alt.Scale(type="log", base=2, nice=False), axis=axis)
    ends_at = alt.Scale(domain=[40, 100], clamp=True)
    y = alt.Y("score:Q", title="accuracy, %", scale=ends_at)
    colour = alt.Color("model:N", sort=ordered, title=None, scale=alt.Scale(range=list(COLOURS)))
    colour = colour.legend(orient="top", columns=1, labelLimit=320, rowPadding=0)
    tips = ["model:N", "length:Q", alt.Tooltip("score:Q", format=".1f")]
    chance = alt.Chart(pd.DataFrame({"chance": [50], "text": ["chance"], "length": [measured[0]]}))
    rule = chance.mark_rule(strokeDash=[4, 4], color=ink).encode(
        y=alt.Y("chance:Q", title="accuracy, %", scale=ends_at)
    )
    name = chance.mark_text(align="left", dy=9, color=ink).encode(x=x, y="chance:Q", text="text:N")
    layers = [rule, name, alt.Chart(frame).mark_line().encode(x=x, y=y, color=colour)]
    for part, filled in ((frame[frame["read"]], True), (frame[~frame["read"]], False)):
        if len(part):
            marks = alt.Chart(part).mark_point(size=65, opacity=1, filled=filled)
            layers.append(marks.encode(x=x, y=y, color=colour, tooltip=tips))
    # the height is that of the whole picture: a line of the legend must not flatten the curves
    return alt.layer(*layers).properties(height=260 + 18 * len(ordered))


def over_tokens(runs: Sequence[TrainingRun], field: str, title: str, format: str) -> Any:
    """`field` over tokens, one colour a run: lines of training, dots of the evaluations. None where
    no point has it.
    """
    rows = [
        {"run": run.name, "phase": p.phase, "event": p.event, "tokens": p.tokens, field: value}
        for run in runs
        for p in run.points
        if (value := getattr(p, field)) is not None
    ]
    if not rows:
        return None
    names = [run.name for run in runs]
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("tokens:Q", title="input tokens", axis=alt.Axis(format="~s")),
        y=alt.Y(
            f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(format=format)
        ),
        color=alt.Color("run:N", scale=scale).legend(
            orient="top", title=None, labelLimit=300, columns=2
        ),
        tooltip=["run:N", "phase:N", alt.Tooltip("tokens:Q", format=","), f"{field}:Q"],
    )
    lines = base.mark_line().transform_filter("datum.event == 'train'")
    dots = base.mark_point(size=55, filled=True, shape="diamond").transform_filter(
        "datum.event == 'evaluation'"
    )
    return alt.layer(lines, dots).properties(height=260)
