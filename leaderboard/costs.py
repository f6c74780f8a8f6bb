"""Score against what a model costs, below the tables of page one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from biobench.report import charts
from biobench.report.names import in_sentences
from leaderboard import page
from leaderboard.ranking import Entry, Ranking
from leaderboard.table import result_of, shown_names

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
    cost = page.choose("Cost", list(COSTS), "cost", width=260)
    for column, ranking in zip(st.columns(len(rankings)), rankings, strict=True):
        with column:
            st.markdown(f"**{page.literal(ranking.title)}**")
            view, tasks, protocol = ranking.view, ranking.shared, ranking.protocol
            drawn = _cost_chart(
                view, tasks, protocol, page.results_state(), cost, page.ink(), ranking
            )
            if drawn is None:
                st.caption("Not known of the models with a mean.")
            else:
                page.draw(*drawn)


@st.cache_resource(max_entries=64, show_spinner=False)
def _cost_chart(
    view: str,
    tasks: tuple[str, ...],
    protocol: str,
    state: str,
    cost: str,
    ink: str,
    _ranking: Ranking,
) -> tuple[Any, str] | None:
    """The chart and its words, None where no cost is known; `state` stands for the folder's
    content.
    """
    del view, tasks, protocol, state
    points = _cost_points(_ranking.entries, cost)
    if not points:
        return None
    best = max(points, key=lambda point: point["score"])
    words = f"Mean score against {cost}; the highest: {best['model']}"
    return charts.scatter(points, cost, ink), words


def _cost_points(entries: Sequence[Entry], cost: str) -> list[dict[str, Any]]:
    """A dot for each entry with a mean (percent) and a known cost."""
    names = shown_names(entries)
    short = in_sentences(names.values())
    points = []
    for entry in entries:
        # what a submission costs is its author's word
        if entry.mean is None or entry.source == "submitted":
            continue
        value = entry.parameters if cost == "parameters" else getattr(entry.mean, COSTS[cost])
        if value is None:
            continue
        points.append(
            {
                "model": short[names[entry.name]],
                "cost": value,
                "score": 100 * entry.mean.mean,
                "result": result_of(entry),
                "here": entry.is_run,
            }
        )
    return points
