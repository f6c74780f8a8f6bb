"""Scores against what they cost: parameters, speed of training, seconds of a run, memory, energy where measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from biobench.report import charts
from biobench.report.frame import build
from biobench.report.names import labels
from biobench.report.row import AverageName, Row
from leaderboard.draw import draw, ink, show_table
from leaderboard.folder import results, say_no_runs
from leaderboard.state import choose
from leaderboard.table import shown_names

COSTS = ("parameters", "train_tokens_per_second", "seconds", "peak_memory_bytes", "energy_kwh")
"""Fields of a row, as the axis."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    st.title(words["efficiency_view"])
    report = build(results(), average, sources=["run", "submitted"])
    suites = list(dict.fromkeys(f"avg_{row.suite}" for row in report.averages))
    options = suites + [c.id for c in report.columns]
    if not options:
        say_no_runs(words)
        return
    left, right = st.columns(2)
    with left:
        names = {s: f"{words['suite_average']} · {words.get(s[4:], s[4:])}" for s in suites}
        task = choose(words["choose_task"], options, "efficiency_task", names)
    with right:
        cost = choose(words["cost"], COSTS, "efficiency_cost", {c: words[f"cost_{c}"] for c in COSTS})
    rows = [row for row in (*report.averages, *report.rows) if row.task == task]
    known = [(row, value) for row in rows if (value := getattr(row, cost)) is not None]
    if not known:
        st.info(words["cost_unknown"])
        return
    named = shown_names([row for row, _ in known], words)
    short = labels(named)
    # what a submission cost is its author's word: it is listed as claimed, and ranked among nothing that was measured
    measured = [(name, *each) for name, each in zip(named, known, strict=True) if each[0].source != "submitted"]
    points = [_point(short[name], row, value) for name, row, value in measured]
    faster = cost == "train_tokens_per_second"
    claims = len(measured) < len(known)
    if points:
        chart = charts.scatter(points, words[f"cost_{cost}"], words, more_is_better=faster, ink=ink())
        best = ", ".join(str(point["model"]) for point in charts.front(points, more_is_better=faster))
        draw(chart, words["alt_scatter"].format(words[f"cost_{cost}"], best))
    table = [
        {
            words["model"]: name,
            words["score"]: 100 * row.mean,
            words[f"cost_{cost}"]: value,
        }
        | (
            {words["cost_source"]: words["cost_claimed" if row.source == "submitted" else "cost_measured"]}
            if claims
            else {}
        )
        for name, (row, value) in sorted(zip(named, known, strict=True), key=lambda pair: -pair[1][0].mean)
    ]
    show_table(pd.DataFrame(table), {words["score"]: 1, words[f"cost_{cost}"]: 3 if cost == "energy_kwh" else 0})


def _point(name: str, row: Row, value: float) -> dict[str, object]:
    return {"model": name, "cost": value} | charts.ends(row)
