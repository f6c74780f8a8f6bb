"""Score against what a model costs, below the tables of page one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import streamlit as st

from biobench.reporting import charts
from leaderboard import page
from leaderboard.choices import choose
from leaderboard.ranking import Entry, Ranking
from leaderboard.table import entry_key, result_of, sentence_names

COSTS = {
    "parameters": "parameters",
    "tokens a second in training": "train_tokens_per_second",
    "peak memory, bytes": "peak_memory_bytes",
    "seconds a run": "seconds",
}
"""Axis -> field of a row."""


def show_costs(rankings: Sequence[Ranking]) -> None:
    """Score against what a model costs, published models included where their size is known."""
    st.subheader("Score and cost", anchor=False)
    cost = choose("Cost", list(COSTS), "cost", width=260)
    ink = page.ink()
    for column, ranking in zip(st.columns(len(rankings)), rankings, strict=True):
        with column:
            st.markdown(f"**{page.literal(ranking.title)}**")
            shown = map(entry_key, ranking.entries)
            make = partial(_cost_chart, ranking.entries, cost, ink)
            drawn = page.made_once(make, "costs", *ranking.key, *shown, cost, ink)
            if drawn is None:
                st.caption(f"No model on show has both a mean and a known cost ({cost}).")
            else:
                spec, words = drawn
                st.vega_lite_chart(spec=spec, width="stretch", alt=words)
    st.caption(
        "Filled: run here; hollow: published. Named are runs, and models that no cheaper one "
        "beats; the others have their name under the pointer."
    )


def _cost_chart(entries: Sequence[Entry], cost: str, ink: str) -> tuple[dict[str, Any], str] | None:
    """The chart and its words, None where no cost is known.

    Given as a specification: to check and copy a chart takes a tenth of a second each time.
    """
    points = _cost_points(entries, cost)
    if not points:
        return None
    best = max(points, key=itemgetter("score"))
    words = f"Mean score against {cost}; the highest: {best['model']}"
    chart = charts.legible(charts.scatter(points, cost, ink), ink)
    return chart.to_dict(), words


def _cost_points(entries: Sequence[Entry], cost: str) -> list[dict[str, Any]]:
    """A dot for each entry with a mean (percent) and a known cost."""
    short = sentence_names(entries)
    points = []
    for entry in entries:
        # what a submission costs is its author's word
        if entry.mean is None or entry.source == "submitted":
            continue
        value = getattr(entry.mean, COSTS[cost])
        if value is None:
            continue
        points.append(
            {
                "model": short[entry.name],
                "cost": value,
                "score": 100 * entry.mean.mean,
                "result": result_of(entry),
                "here": entry.is_run,
            }
        )
    return points
