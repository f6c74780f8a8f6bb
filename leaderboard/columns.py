"""The columns of page one's tables: headings, widths and what their tooltips say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import streamlit as st

from biobench.report.results import metric_of
from biobench.report.row import AverageName
from biobench.report.tasks import TaskInfo
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
    "size": "Parameters.",
}

Cells = dict[str, object]
"""Column -> text or `page.ShownNumber`; None where nothing is known."""


def headings(tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a heading that no column cuts: the first or last part of a long id where no other
    task has it.
    """
    times: Counter[str] = Counter()
    for task in tasks:
        times.update(set(task.split("_")))
    heading_of = {}
    for task in tasks:
        heading_of[task] = task
        words = task.split("_")
        for word in (words[-1], words[0]):
            is_telling = len(word) > 2 and not word.isdigit() and times[word] == 1
            if is_telling and len(task) > LONG_HEADING:
                heading_of[task] = word
    return heading_of


def column_config(
    lines: Sequence[Cells], order: Sequence[TaskInfo], average: AverageName
) -> dict[str, Any]:
    """Short headings with the whole name in their tooltip; names and ranks pinned."""
    short = headings([info.id for info in order])
    widths = _widths(lines, short)
    about = dict(HELP)
    for info in order:
        metric = metric_of(info, average)
        about[info.id] = f"{info.id}: {info.name}, {get_metric(metric).words}"
    columns: dict[str, Any] = {}
    for name, width in widths.items():
        columns[name] = st.column_config.NumberColumn(
            short.get(name, name), width=width, help=about.get(name)
        )
    columns["rank"] = st.column_config.NumberColumn("#", pinned=True, width=widths["rank"])
    columns["result"] = st.column_config.TextColumn(width="medium")
    columns["model"] = st.column_config.LinkColumn(
        display_text=page.LINK, pinned=True, width=widths["model"], alignment="left"
    )
    return columns


def _widths(lines: Sequence[Cells], short: Mapping[str, str]) -> dict[str, int]:
    """Column -> pixels, after content and heading, so that every score stands on a screen of 1,280:
    where these are too many, long names of models are cut, never a heading.
    """
    widths = {}
    room_for_names = SCREEN
    for name in lines[0]:
        texts = [str(line[name]) for line in lines if line[name] is not None]
        letters = max(map(len, texts), default=0)
        widths[name] = max(int(5.4 * letters) + 17, int(5.8 * len(short.get(name, name))) + 19)
        if name == "rank":
            widths[name] = 7 * letters + 20
        if name not in (*LAST, "model"):
            room_for_names -= widths[name]
    names = [unquote(str(line["model"]).partition("#")[2]) for line in lines]
    widths["model"] = min(6 * max(map(len, names)) + 17, max(room_for_names, 170), 290)
    return widths
