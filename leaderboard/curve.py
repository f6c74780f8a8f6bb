"""A task's learning curves, where runs on parts of its training documents are at hand."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from biobench.reporting.charts import COLOURS
from biobench.reporting.curve import Curve, answer, as_rows, curves_of
from biobench.reporting.escape import plain
from biobench.reporting.results import Results
from leaderboard import page


def show(loaded: Results, task: str) -> None:
    """Draw the curves with their bands and the best baseline; nothing where there is none."""
    curves = curves_of(loaded, task)[: len(COLOURS)]
    if not curves:
        return
    st.subheader("Learning curves")
    for curve in curves:
        st.caption(page.literal(answer(curve)))
    page.draw(_chart(curves), f"Score on {task} over the share of its training texts, by model")


def _chart(curves: list[Curve]) -> Any:
    frame = pd.DataFrame(as_rows(curves)).drop(columns=["scores"])
    shares = ["share", "mean", "low", "high"]
    frame[shares] = 100 * frame[shares].astype(float)
    frame["model"] = frame["model"].map(plain)
    x = alt.X("share:Q", title="training texts, %", scale=alt.Scale(type="log", nice=False))
    percent = alt.Scale(zero=False)
    colour = alt.Color("model:N", title=None, scale=alt.Scale(range=list(COLOURS)))
    base = alt.Chart(frame).encode(x=x, color=colour.legend(orient="top", labelLimit=320))
    bands = base.mark_area(opacity=0.2).encode(
        y=alt.Y("low:Q", title="score, %", scale=percent), y2="high:Q"
    )
    tips = ["model:N", "documents:Q", alt.Tooltip("mean:Q", format=".1f")]
    lines = base.mark_line(point=True).encode(y=alt.Y("mean:Q", scale=percent), tooltip=tips)
    layers = [bands, lines]
    best = curves[0].baseline
    if best is not None:
        baseline = pd.DataFrame([{"baseline": 100 * best[0], "name": best[1]}])
        rule = alt.Chart(baseline).mark_rule(strokeDash=[4, 4], color=page.ink())
        layers.append(rule.encode(y="baseline:Q", tooltip=["name:N"]))
    return alt.layer(*layers).properties(height=280)
