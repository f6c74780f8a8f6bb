"""The columns of page one's tables: headings, widths and what their tooltips say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pandas as pd
import streamlit as st

from biobench.reporting.results import metric_of
from biobench.reporting.row import AverageName
from biobench.reporting.tasks import TaskInfo
from biobench.schema.kind import get_metric
from leaderboard import page

SCREEN = 1_205
"""Pixels that ranks, names and scores share on a screen of 1,280."""
LONG_HEADING = 9
"""Letters of a task's id from which on its heading is a part of it."""
LAST = ("size", "seeds", "result")
"""Columns behind the scores."""
HELP = {
    "mean": "Mean over the corpora of their tasks' means; ± is half the 95% interval over seeds.",
    "possible": "Ranks among the runs here that the comparison leaves possible (95%, Holm).",
    "rank": "By the mean, among models with all the tasks that are ranked.",
    "entities": "Mean over the corpora of the entity tasks.",
    "classes": "Mean over the corpora of the classification tasks.",
    "relations": "Mean over the corpora of the relation tasks.",
    "size": "Parameters, in millions.",
    "seeds": "Trainings a task, each from other random numbers.",
    "result": "A publication's number, or a run here and under what protocol.",
}

Cells = dict[str, object]
"""Column -> text or `ShownNumber`; None where nothing is known."""


def headings(tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a heading that no column cuts: the first or last part of a long id where no other
    task has it.
    """
    times: Counter[str] = Counter()
    for task in tasks:
        times.update(set(task.split("_")))
    heading_of = dict(zip(tasks, tasks, strict=True))
    for task in tasks:
        words = task.split("_")
        for word in (words[-1], words[0]):
            is_telling = len(word) > 2 and not word.isdigit() and times[word] == 1
            if is_telling and len(task) > LONG_HEADING:
                heading_of[task] = word
    return heading_of


def column_config(
    table: pd.DataFrame, tasks: Sequence[TaskInfo], average: AverageName
) -> dict[str, Any]:
    """Short headings with the whole name in their tooltip; names and ranks pinned."""
    heading_of = {"rank": "#"} | headings([info.id for info in tasks])
    about = dict(HELP)
    for info in tasks:
        metric = get_metric(metric_of(info, average))
        about[info.id] = f"{info.id}: {info.name}, {metric.words}"
    columns: dict[str, Any] = {}
    room_for_names = SCREEN
    for name in map(str, table):
        heading = heading_of.get(name, name)
        letters = table[name].dropna().map(str).map(len).max()
        width = max(int(5.4 * letters) + 17, int(5.8 * len(heading)) + 19)
        columns[name] = st.column_config.NumberColumn(
            heading, width=width, help=about.get(name), pinned=name == "rank"
        )
        if name not in (*LAST, "model"):
            room_for_names -= width
    columns["result"] = st.column_config.TextColumn(width="medium", help=about["result"])
    # where a screen of 1,280 holds no more, long names of models are cut, never a heading
    names = table["model"].str.partition("#")[2].map(unquote)
    longest = int(names.map(len).max())
    columns["model"] = st.column_config.LinkColumn(
        display_text=page.LINK,
        pinned=True,
        width=min(6 * longest + 17, max(room_for_names, 170), 290),
        alignment="left",
    )
    return columns
