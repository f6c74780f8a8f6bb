"""Everybody of a view in one table, and the same rows as cards for a narrow screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pandas as pd
import streamlit as st

from biobench.report.escape import for_html
from biobench.report.literature.comparison import NAMES
from biobench.report.names import without_revisions
from biobench.report.tasks import TASK_FAMILIES, TaskInfo
from leaderboard import page
from leaderboard.ranking import PROTOCOLS, Entry, Ranking

BASELINE = "best baseline without a model"
FIRST_CARDS = 20
SCREEN = 1_205
"""Pixels that ranks, names and scores share on a screen of 1,280."""
ROW = 27
"""Pixels of a row: nineteen published models stand on one screen."""
LONG_HEADING = 9
"""Letters of a task's id from which on its heading is a part of it."""
MOST_ROWS = 16
"""Rows that a table shows before it scrolls."""
HERE, LINE = (
    "background-color: rgba(0, 114, 178, 0.13)",
    "background-color: rgba(128, 128, 128, 0.18)",
)
LAST = ("size", "seeds", "result")
"""Columns behind the scores."""
HELP = {
    "mean": "Mean over the corpora of their tasks' means; ± is half the 95% interval over seeds.",
    "possible": "Ranks among the runs here that the comparison leaves possible (95%, Holm).",
    "size": "Parameters.",
}


def shown_names(entries: Sequence[Entry]) -> dict[str, str]:
    """Name -> as it is read: the protocol is said once, above, and a revision stays where it tells
    two apart.
    """
    short = without_revisions(e.model for e in entries)
    return {
        e.name: short[e.model] if e.variant == e.protocol else f"{short[e.model]} [{e.variant}]"
        for e in entries
    }


def entry_key(entry: Entry) -> str:
    """Its name in a link."""
    return page.key_of((entry.model, entry.variant, entry.source))


def result_of(entry: Entry) -> str:
    """What a line is: published, run here, and under what."""
    kind = {"run": "run here", "frozen": "frozen encoder"}.get(entry.source, entry.source)
    kind += f", {entry.mark}" if entry.mark else ""
    return f"{kind}, {entry.protocol}" if entry.protocol and entry.source != "frozen" else kind


def rows_of(one: Ranking, hidden: Callable[[Entry], bool], sort: str) -> list[Entry | None]:
    """The entries on show, None for the line of baselines: below the last that is above it, or at
    the end.
    """

    def place(entry: Entry) -> tuple[bool, float, str]:
        if sort == "parameters":
            return entry.parameters is None, entry.parameters or 0, entry.name
        if sort == "name":
            return False, 0.0, entry.name.casefold()
        row = entry.cells.get(sort) or entry.kinds.get(sort)
        return row is None, -row.mean if row else 0.0, entry.name

    known = {c.id for c in one.columns} | set(TASK_FAMILIES.values()) | {"parameters", "name"}
    entries = sorted(one.entries, key=place) if sort in known else one.entries
    rows: list[Entry | None] = list(entries)
    if one.baseline:
        bar = one.baseline_mean
        above = [
            e.rank is not None and e.mean is not None and (bar is None or e.mean.mean > bar)
            for e in one.entries
        ]
        rows.insert(len(rows) if sort in known else sum(above), None)
    return [entry for entry in rows if entry is None or not hidden(entry)]


def _cells(
    one: Ranking, entry: Entry | None, kinds: Sequence[str], order: Sequence[TaskInfo]
) -> dict[str, str | None]:
    """What a row says, as text."""
    scores = one.baseline if entry is None else entry.cells
    tasks = {c.id: page.score(scores[c.id]) if c.id in scores else None for c in order}
    seeds = {row.n_seeds for row in scores.values()} - {0}
    about = {"seeds": "–".join(str(n) for n in sorted({min(seeds), max(seeds)})) if seeds else None}
    if entry is None:
        bar = one.baseline_mean
        mean = None if bar is None else f"{100 * bar:.1f}"
        return {"rank": None, "mean": mean} | tasks | about | {"result": "baseline"}
    rank: object = entry.rank
    if entry.protocol != one.protocol:
        rank = (entry.protocol or "full").split()[0]
    return (
        {
            "rank": None if rank is None else str(rank),
            "mean": None if entry.mean is None else page.score(entry.mean),
        }
        | {
            kind: f"{100 * entry.kinds[kind].mean:.1f}" if kind in entry.kinds else None
            for kind in kinds
        }
        | tasks
        | about
        | {
            "size": page.millions(entry.parameters) if entry.parameters else None,
            "result": result_of(entry),
        }
    )


def show_ranking(
    one: Ranking,
    hidden: Callable[[Entry], bool],
    sort: str,
    *,
    several: bool,
    possible: Mapping[str, str],
) -> None:
    """Rank, name and scores first, then what is known besides.

    several: other tables stand on the page. possible: name -> the ranks among the runs here that
    the comparison leaves.
    """
    rows = rows_of(one, hidden, sort)
    title = f"**{page.literal(one.title)}**" if several else ""
    with st.container(key=f"bb_table_{one.view.replace(' ', '_')}", gap="xsmall"):
        if about := " · ".join(part for part in (title, _caption(one)) if part):
            st.markdown(about)
        if not any(rows):
            st.info("Nothing matches these filters.")
            return
        names = shown_names(one.entries)
        kinds = [
            kind
            for kind in dict.fromkeys(TASK_FAMILIES.values())
            if any(kind in e.kinds for e in one.entries)
        ]
        # the mean of a kind with one task is that task's column; both means are one where no corpus
        # has two tasks
        of_kind = list(TASK_FAMILIES)
        tasks_of = Counter(TASK_FAMILIES.get(c.type) for c in one.columns if c.id in one.shared)
        kinds = (
            [kind for kind in kinds if tasks_of[kind] > 1] if len(kinds) < len(one.shared) else []
        )
        order = sorted(
            one.columns,
            key=lambda c: (
                c.id not in one.shared,
                of_kind.index(c.type) if c.type in of_kind else 9,
            ),
        )
        possible_column = ["possible"] if possible else []
        tasks = [info.id for info in order]
        columns = ["rank", "model", "mean", *possible_column, *kinds, *tasks, *LAST]
        links = [
            page.link_to("tasks", "task", one.columns[0].id, BASELINE)
            if entry is None
            else page.link_to("models", "model", entry_key(entry), names[entry.name])
            for entry in rows
        ]
        cells = [
            _cells(one, entry, kinds, order)
            | {"model": link, "possible": None if entry is None else possible.get(entry.name)}
            for entry, link in zip(rows, links, strict=True)
        ]
        frame = pd.DataFrame(cells, columns=columns)
        shades = [LINE if entry is None else HERE if entry.is_run else "" for entry in rows]
        colours = pd.DataFrame([[shade] * len(columns) for shade in shades], columns=columns)
        picked = page.show_table(
            frame.style.apply(lambda _: colours, axis=None),
            config=_columns(frame, order),
            height=min(len(rows) + 1, MOST_ROWS) * ROW + 8,
            row_height=ROW,
            on_select="rerun",
            selection_mode="multi-row",
            key=f"rows_{one.view}",
            alt=f"Scores of all models: {one.title}",
        )
        selected = [
            entry
            for i in picked["selection"]["rows"]
            if i < len(rows) and (entry := rows[i]) is not None
        ]
        chosen = list(dict.fromkeys(entry.name for entry in selected))
        if 2 <= len(chosen) <= 5 and st.button(
            "Compare the picked models", type="primary", key=f"compare_{one.view}"
        ):
            st.switch_page(st.session_state["pages"]["Compare"], query_params={"models": chosen})


def headings(tasks: Sequence[str]) -> dict[str, str]:
    """Task -> a heading that no column cuts: the first or last part of a long id where no other
    task has it.
    """
    shown: dict[str, str] = {}
    for task in tasks:
        parts = [
            part
            for part in (task.split("_")[0], task.split("_")[-1])
            if len(part) > 2 and not part.isdigit()
        ]
        alone = [p for p in parts if sum(p in other.split("_") for other in tasks) == 1]
        shown[task] = alone[0] if len(task) > LONG_HEADING and alone else task
    return shown


def _columns(frame: pd.DataFrame, order: Sequence[TaskInfo]) -> dict[str, Any]:
    """Widths after content and heading, so that every score stands on a screen of 1,280 pixels:
    where these are too many, long names of models are cut, never a heading; names and ranks pinned.
    """
    short = headings([c.id for c in order])
    longest = {
        str(name): frame[name].map(lambda cell: len(str(cell)) if cell else 0).max()
        for name in frame.columns
    }
    longest["model"] = (
        frame["model"].map(lambda link: len(unquote(str(link).partition("#")[2]))).max()
    )
    widths = {
        name: max(int(5.4 * count) + 17, int(5.8 * len(short.get(name, name))) + 19)
        for name, count in longest.items()
    }
    widths["rank"] = int(7 * longest["rank"]) + 20
    left = SCREEN - sum(width for name, width in widths.items() if name not in (*LAST, "model"))
    widths["model"] = min(int(6 * longest["model"]) + 17, max(left, 170), 290)
    about = HELP | {c.id: f"{c.id}: {c.name}, {NAMES.get(c.paper, c.paper)}" for c in order}
    columns: dict[str, Any] = {
        name: st.column_config.TextColumn(
            short.get(name, name), width=width, alignment="right", help=about.get(name)
        )
        for name, width in widths.items()
    }
    columns["rank"] = st.column_config.TextColumn(
        "#", pinned=True, width=widths["rank"], alignment="right"
    )
    columns["result"] = st.column_config.TextColumn(width="medium")
    columns["model"] = st.column_config.LinkColumn(
        display_text=page.LINK, pinned=True, width=widths["model"], alignment="left"
    )
    return columns


def _caption(one: Ranking) -> str:
    """What is ranked, said once: tasks where these are a part, protocols."""
    parts = []
    if one.shared and any(c.id not in one.shared for c in one.columns):
        parts.append(f"Ranked over {page.literal(', '.join(one.shared))}.")
    if one.protocol:
        named = PROTOCOLS.get(one.protocol) or page.literal(one.protocol)
        parts.append(f"Ranked: {named}.")
    others = sorted({e.protocol for e in one.entries} - {one.protocol, ""})
    if others:
        named = "; ".join(PROTOCOLS.get(p) or page.literal(p) for p in others)
        parts.append(f"Shown, not ranked: {named}.")
    if any(e.rank is None and e.protocol == one.protocol for e in one.entries):
        parts.append("Without a rank: rows with a missing task.")
    return " ".join(parts)


def show_cards(one: Ranking, hidden: Callable[[Entry], bool], sort: str) -> None:
    """The same rows for a narrow screen, the first twenty at first."""
    rows = rows_of(one, hidden, sort)
    count = int(st.session_state.get(f"cards_{one.view}", FIRST_CARDS))
    names = shown_names(one.entries)
    st.markdown(
        " · ".join(part for part in (f"**{page.literal(one.title)}**", _caption(one)) if part)
    )
    cards = "".join(_card(one, entry, names) for entry in rows[:count])
    st.html(f'<ol class="bb-cards" aria-label="{for_html(one.title)}">{cards}</ol>')
    if count < len(rows) and st.button(
        f"{count} of {len(rows)}, show more", key=f"more_{one.view}"
    ):
        st.session_state[f"cards_{one.view}"] = count + FIRST_CARDS
        st.rerun()


def _card(one: Ranking, entry: Entry | None, names: Mapping[str, str]) -> str:
    cells = {
        name: for_html(value or "–") for name, value in _cells(one, entry, (), one.columns).items()
    }
    scores = " · ".join(
        f"{for_html(c.id)} {cells[c.id]}" for c in one.columns if cells[c.id] != "–"
    )
    title, about = f"<span>{BASELINE}</span>", cells["result"]
    if entry is not None:
        link = page.link_to("models", "model", entry_key(entry), "").rstrip("#")
        title = f'<a href="{for_html(link)}" target="_self">{for_html(names[entry.name])}</a>'
        about += f" · {cells['size']}" if entry.parameters else ""
    kind = "bb-line" if entry is None else "bb-here" if entry.is_run else ""
    head = f"<div><b>{cells['rank']}</b>{title}<b>{cells['mean']}</b></div>"
    return f'<li class="{kind}">{head}<small>{about}<br>{scores}</small></li>'
