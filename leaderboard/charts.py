"""Altair charts of report rows: presentation only, every number comes from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from biobench.report.escape import plain
from biobench.report.rows import Row
from biobench.schema.record import RunRecord
from leaderboard.names import shown_names

BLUE, ORANGE = "#56B4E9", "#E69F00"
"""Two hues of the Okabe-Ito palette, apart for every kind of colour vision, on light and dark grounds."""


MOST_NAMED = 25
"""Dots of a scatter plot that bear their names; of more, the names would lie on each other."""


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
    """Per task: `difference`, `low` and `high` in points (the ends may be None) around zero."""
    frame = pd.DataFrame(rows)
    y = alt.Y("task:N", sort=list(frame["task"]), title=None)
    x = alt.X("difference:Q", title=words["difference"])
    zero = alt.Chart(pd.DataFrame({"zero": [0]})).mark_rule(strokeDash=[4, 4], color="#888").encode(x="zero:Q")
    lines = alt.Chart(frame.dropna()).mark_rule(size=2, color=ORANGE).encode(x="low:Q", x2="high:Q", y=y)
    dots = (
        alt.Chart(frame)
        .mark_circle(size=70, color=BLUE, opacity=1)
        .encode(
            x=x, y=y, tooltip=["task:N", *(alt.Tooltip(f"{c}:Q", format="+.2f") for c in ("difference", "low", "high"))]
        )
    )
    return alt.layer(zero, lines, dots).properties(height=alt.Step(24))


def scatter(rows: Sequence[Mapping[str, Any]], cost: str, words: Mapping[str, str]) -> Any:
    """`score` (with `low` and `high`, which may be None) over `cost` on a logarithmic axis, a dot a `model`."""
    frame = pd.DataFrame(rows)
    kind: Any = "log" if (frame["cost"] > 0).all() else "linear"
    scale = alt.Scale(type=kind, nice=False, zero=False, padding=40)
    x = alt.X("cost:Q", title=cost, scale=scale, axis=alt.Axis(format="~s"))
    y = alt.Y("score:Q", title=words["score"], scale=alt.Scale(zero=False, nice=False, padding=24))
    lines = alt.Chart(frame.dropna()).mark_rule(color=ORANGE).encode(x=x, y="low:Q", y2="high:Q")
    dots = alt.Chart(frame).mark_circle(size=80, color=BLUE, opacity=1)
    dots = dots.encode(x=x, y=y, tooltip=["model:N", "cost:Q", alt.Tooltip("score:Q", format=".2f")])
    if len(frame) > MOST_NAMED:
        return alt.layer(lines, dots)
    names = alt.Chart(frame).mark_text(align="left", dx=8, dy=-8, color="#888").encode(x=x, y=y, text="model:N")
    return alt.layer(lines, dots, names)


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
