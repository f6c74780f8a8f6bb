"""Altair charts of report rows: presentation only, every number comes from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from biobench.report.escape import plain
from biobench.report.rows import Row
from biobench.schema.record import RunRecord
from leaderboard.names import shown_names

BLUE, ORANGE = "#56B4E9", "#E69F00"
"""Two hues of the Okabe-Ito palette, apart for every kind of colour vision, on light and dark grounds."""
MODELS = ["#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#0072B2"]
"""Of the same palette: as many as maps are shown side by side."""


def grey() -> str:
    """Legible as text on the ground that the reader's page has."""
    return "#b4b4b4" if st.context.theme.type == "dark" else "#5f5f5f"


def seeds(rows: Sequence[Row], by: str, words: Mapping[str, str]) -> Any:
    """Per task or model (`by`): a dot a seed, the mean, and its interval. None where no row has seeds."""
    points, means = [], []
    names = [plain(row.task) for row in rows] if by == "task" else shown_names(rows, words)
    for name, row in zip(names, rows, strict=True):
        means.append({by: name, "score": 100 * row.mean, "low": _percent(row.low), "high": _percent(row.high)})
        points += [
            {by: name, "score": 100 * value, "seed": seed} for seed, value in zip(row.seeds, row.values, strict=True)
        ]
    if not points:
        return None
    order = [str(m[by]) for m in means]
    y = alt.Y(f"{by}:N", sort=order, title=None, axis=alt.Axis(labelLimit=320))
    x = alt.X("score:Q", title=words["score"], scale=alt.Scale(zero=False))
    dots = (
        alt.Chart(pd.DataFrame(points)).mark_circle(size=45, opacity=0.7, color=BLUE).encode(x=x, y=y, tooltip=_tips())
    )
    frame = pd.DataFrame(means)
    lines = alt.Chart(frame.dropna()).mark_rule(size=2, color=ORANGE).encode(x="low:Q", x2="high:Q", y=y)
    ticks = alt.Chart(frame).mark_tick(thickness=3, size=16, color=ORANGE).encode(x=x, y=y)
    return alt.layer(lines, dots, ticks).properties(height=alt.Step(26))


def differences(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> Any:
    """Per task, largest first: `difference`, `low` and `high` in points (the ends may be None) around zero.

    Filled where the interval leaves out zero, hollow and grey where it does not or is unknown.
    """
    frame = pd.DataFrame(rows).sort_values("difference", ascending=False)
    frame["sure"] = (frame["low"].astype(float) > 0) | (frame["high"].astype(float) < 0)
    y = alt.Y("task:N", sort=list(frame["task"]), title=None, axis=alt.Axis(labelLimit=200, labelOverlap=False))
    x = alt.X("difference:Q", title=words["difference"])
    colour = alt.condition("datum.sure", alt.value(BLUE), alt.value(grey()))
    zero = alt.Chart(pd.DataFrame({"zero": [0]})).mark_rule(strokeDash=[4, 4], color=grey()).encode(x="zero:Q")
    lines = alt.Chart(frame.dropna()).mark_rule(size=2).encode(x="low:Q", x2="high:Q", y=y, color=colour)
    tips = ["task:N", *(alt.Tooltip(f"{c}:Q", format="+.1f") for c in ("difference", "low", "high"))]
    dots = alt.Chart(frame).mark_point(size=70, opacity=1)
    dots = dots.encode(
        x=x,
        y=y,
        tooltip=tips,
        color=colour,
        fill=alt.condition("datum.sure", alt.value(BLUE), alt.value("transparent")),
    )
    return alt.layer(zero, lines, dots).properties(height=alt.Step(24))


def lengths(rows: Sequence[Mapping[str, Any]], unit: str, words: Mapping[str, str]) -> Any:
    """`score` by `length`, a line a `model`; hollow where the length is not `read`."""
    base = alt.Chart(pd.DataFrame(rows))
    ordered = list(dict.fromkeys(row["model"] for row in rows))
    x = alt.X("length:Q", title=unit, scale=alt.Scale(type="log", base=2), axis=alt.Axis(format="d", labelOverlap=True))
    y = alt.Y("score:Q", title=words["score"], scale=alt.Scale(domain=[40, 100], clamp=True))
    colour = alt.Color("model:N", sort=ordered, title=None, scale=alt.Scale(range=MODELS))
    colour = colour.legend(orient="top", columns=1, labelLimit=320)
    tips = ["model:N", "length:Q", alt.Tooltip("score:Q", format=".1f")]
    lines = base.mark_line().encode(x=x, y=y, color=colour)
    full = base.transform_filter("datum.read").mark_circle(size=70, opacity=1)
    hollow = base.transform_filter("!datum.read").mark_point(size=60)
    dots = [marks.encode(x=x, y=y, color=colour, tooltip=tips) for marks in (full, hollow)]
    return alt.layer(lines, *dots).properties(height=300)


MOST_LINES = 15
"""Lines of the standing chart."""
MOST_LETTERS = 34
"""Letters of a name beside a chart."""


def cut(name: str) -> str:
    """A long name without its middle: the ends tell variants apart."""
    half = (MOST_LETTERS - 1) // 2
    return name if len(name) <= MOST_LETTERS else f"{name[:half]}…{name[-half:]}"


def ends(row: Row) -> dict[str, float | None]:
    """score, low and high of a row in percent."""
    return {"score": 100 * row.mean, "low": _percent(row.low), "high": _percent(row.high)}


def standing(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> Any:
    """Best first: `score` with `low` and `high` (may be None), `rank` beside it, hollow where not `own` runs."""
    frame = pd.DataFrame(rows)
    numbered = [f"{name} #{i}" if list(frame["line"]).count(name) > 1 else name for i, name in enumerate(frame["line"])]
    frame["line"] = numbered
    y = alt.Y("line:N", sort=numbered, title=None, axis=alt.Axis(labelLimit=240, labelOverlap=False))
    x = alt.X("score:Q", title=words["score"], scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(tickCount=5))
    base = alt.Chart(frame)
    lines = base.transform_filter("isValid(datum.low)").mark_rule(size=2, color=ORANGE)
    lines = lines.encode(x=alt.X("low:Q", title=words["score"]), x2="high:Q", y=y)
    tips = ["line:N", *(alt.Tooltip(f"{c}:Q", format=".1f") for c in ("score", "low", "high")), "rank:N"]
    full = base.transform_filter("datum.own").mark_circle(size=80, color=BLUE, opacity=1).encode(x=x, y=y, tooltip=tips)
    hollow = base.transform_filter("!datum.own").mark_point(size=70, color=BLUE).encode(x=x, y=y, tooltip=tips)
    texts = base.transform_calculate(at="isValid(datum.high) ? datum.high : datum.score")
    ranks = texts.mark_text(align="left", dx=8, color=grey()).encode(
        x=alt.X("at:Q", title=words["score"]), y=y, text="rank:N"
    )
    return alt.layer(lines, full, hollow, ranks).properties(height=alt.Step(24))


def front(rows: Sequence[Mapping[str, Any]], *, more_is_better: bool = False) -> list[Mapping[str, Any]]:
    """The points that no other one beats in score at the same `cost` or a better one, by cost."""
    best: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda r: (-r["cost"] if more_is_better else r["cost"], -r["score"])):
        if not best or row["score"] > best[-1]["score"]:
            best.append(row)
    return best


def scatter(
    rows: Sequence[Mapping[str, Any]], cost: str, words: Mapping[str, str], *, more_is_better: bool = False
) -> Any:
    """`score` (with `low` and `high`, which may be None) over `cost`, which rises to the right on a logarithmic axis.

    A dot a `model`; those of the front bear their names and are joined.
    """
    frame = pd.DataFrame(rows)
    kind: Any = "log" if (frame["cost"] > 0).all() else "linear"
    spread = float(frame["cost"].max()) > float(frame["cost"].min())
    low, high = float(frame["cost"].min()), float(frame["cost"].max())
    # a domain of one's own: padding in pixels turned the axis round on narrow screens
    room = (high / low) ** 0.12 if kind == "log" and spread else 1.5
    domain = (
        [low / room, high * room] if kind == "log" else [low - 0.1 * (high - low) - 1, high + 0.1 * (high - low) + 1]
    )
    scale = alt.Scale(type=kind, nice=False, zero=False, domain=domain)
    x = alt.X("cost:Q", title=cost, scale=scale, axis=alt.Axis(format="~s", tickCount=4, labelOverlap=True))
    y = alt.Y("score:Q", title=words["score"], scale=alt.Scale(zero=False, padding=24), axis=alt.Axis(tickCount=5))
    lines = alt.Chart(frame.dropna()).mark_rule(color=ORANGE).encode(x=x, y="low:Q", y2="high:Q")
    dots = alt.Chart(frame).mark_circle(size=80, color=BLUE, opacity=1)
    dots = dots.encode(
        x=x, y=y, tooltip=["model:N", alt.Tooltip("cost:Q", format="~s"), alt.Tooltip("score:Q", format=".1f")]
    )
    held = pd.DataFrame(front(rows, more_is_better=more_is_better))
    edge = alt.Chart(held).mark_line(color=grey(), strokeDash=[4, 4]).encode(x=x, y=y)
    # names to the left of dots in the right half, or they would leave the chart
    middle = (low * high) ** 0.5 if kind == "log" else (low + high) / 2
    left, right = held[held["cost"] <= middle], held[held["cost"] > middle]
    named = [
        marks.encode(x=x, y=y, text="model:N")
        for part, marks in (
            (left, alt.Chart(left).mark_text(align="left", dx=6, dy=-10, color=grey())),
            (right, alt.Chart(right).mark_text(align="right", dx=-6, dy=-10, color=grey())),
        )
        if len(part)
    ]
    return alt.layer(lines, edge, dots, *named).properties(height=250)


def _tips() -> list[alt.Tooltip]:
    return [alt.Tooltip("seed:O"), alt.Tooltip("score:Q", format=".2f")]


def curves(records: Sequence[RunRecord], metric: str, words: Mapping[str, str]) -> Any:
    """Validation score over steps, a line a seed. None where the records hold no such curve."""
    rows: list[dict[str, Any]] = [
        {"step": point.step, "score": 100 * point.validation[metric], "seed": record.seed}
        for record in records
        for point in record.training.curve
        if metric in point.validation
    ]
    if not rows:
        return None
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title=words["step"]),
            y=alt.Y("score:Q", title=words["score"], scale=alt.Scale(zero=False)),
            color=alt.Color("seed:O", title=words["seed"], scale=alt.Scale(scheme="viridis")),
            tooltip=["seed:O", "step:Q", alt.Tooltip("score:Q", format=".2f")],
        )
    )


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
