"""The columns of page one's tables: headings, widths and what their tooltips say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import streamlit as st

from biobench.report.literature.comparison import NAMES
from biobench.report.results import metric_of
from biobench.report.row import AverageName
from biobench.report.tasks import TaskInfo
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
    "size": "Parameters.",
}

Cells = dict[str, object]
"""Column -> text or `page.ShownNumber`; None where nothing is known."""


def headings(tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a heading that no column cuts: the first or last part of a long id where no other
    task has it.
    """
    heading_of: dict[str, str] = {}
    for task in tasks:
        words = [
            word
            for word in (task.split("_")[0], task.split("_")[-1])
            if len(word) > 2 and not word.isdigit()
        ]
        unique_words = [p for p in words if sum(p in task_id.split("_") for task_id in tasks) == 1]
        heading_of[task] = unique_words[0] if len(task) > LONG_HEADING and unique_words else task
    return heading_of


def column_config(
    lines: Sequence[Cells], order: Sequence[TaskInfo], average: AverageName
) -> dict[str, Any]:
    """Widths after content and heading, so that every score stands on a screen of 1,280 pixels:
    where these are too many, long names of models are cut, never a heading; names and ranks pinned.
    """
    short = headings([c.id for c in order])
    longest = {name: max(_letters(line[name]) for line in lines) for name in lines[0]}
    longest["model"] = max(len(unquote(str(line["model"]).partition("#")[2])) for line in lines)
    widths = {
        name: max(int(5.4 * count) + 17, int(5.8 * len(short.get(name, name))) + 19)
        for name, count in longest.items()
    }
    widths["rank"] = int(7 * longest["rank"]) + 20
    room_for_names = SCREEN - sum(
        width for name, width in widths.items() if name not in (*LAST, "model")
    )
    widths["model"] = min(int(6 * longest["model"]) + 17, max(room_for_names, 170), 290)
    about = dict(HELP)
    for info in order:
        metric = metric_of(info, average)
        about[info.id] = f"{info.id}: {info.name}, {NAMES.get(metric, metric)}"
    columns: dict[str, Any] = {
        name: st.column_config.NumberColumn(
            short.get(name, name), width=width, help=about.get(name)
        )
        for name, width in widths.items()
    }
    columns["rank"] = st.column_config.NumberColumn("#", pinned=True, width=widths["rank"])
    columns["result"] = st.column_config.TextColumn(width="medium")
    columns["model"] = st.column_config.LinkColumn(
        display_text=page.LINK, pinned=True, width=widths["model"], alignment="left"
    )
    return columns


def _letters(cell: object) -> int:
    return 0 if cell is None else len(str(cell))
