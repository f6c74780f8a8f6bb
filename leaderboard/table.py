"""The board as one data frame for the framework's own table, and as cards for a phone; the same cells in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.report.charts import FEW_SEEDS
from biobench.report.details.needle import NeedleGrid
from biobench.report.entrants import line_name
from biobench.report.escape import for_html
from biobench.report.groups import RunGroup
from biobench.report.names import in_cells, without_revisions
from biobench.report.remarks import best_of, by_kind, hub_link, remarks_of
from biobench.report.row import Row
from biobench.report.wide import Block, ModelLine
from biobench.store import Brief

MOST_CARDS = 20
_SOURCE = "\x1e"
"""Between a line's name and its source in a link."""


def literal(text: str) -> str:
    """Text for the places where Streamlit reads Markdown (titles, table cells): shown as it stands."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~$:#" else c for c in text)


def to_frame(
    block: Block,
    lines: Sequence[ModelLine],
    ranks: Mapping[tuple[str, str], str],
    briefs_of: Mapping[tuple[str, str, str], Brief],
    words: Mapping[str, str],
) -> tuple[pd.DataFrame, list[ModelLine | None]]:
    """The table in percent, missing scores NaN, and the line of each of its rows (None for the last two).

    Rank, name, mean and scores come first: what fits a screen without scrolling. What tells no line from another (one
    source, no remark) has no column.

    ranks: (name, source) of a line -> its rank. briefs_of: (model, variant, source) -> a brief of its runs. The gate's
    policies and the oracles stand as one row each, the best on each task: a policy measured on few tasks has no row of
    dashes.
    """
    shown = [line for line in lines if line.source not in ("baseline", "oracle")]
    floor, ceiling = best_of(lines, "baseline"), best_of(lines, "oracle")
    briefs = [briefs_of.get((line.model, line.variant, line.source)) for line in shown]
    extra = [(words[key], cells) for key, cells in (("baseline", floor), ("oracle", ceiling)) if cells]
    blank = [None] * len(extra)
    averages = [line.average for line in shown]
    names = in_cells(line.name for line in shown)
    remarks = [remarks_of(line, floor, words) for line in shown]
    columns: dict[str, list[Any]] = {
        words["rank"]: [ranks.get((line.name, line.source)) for line in shown] + blank,
        words["model"]: [names[line.name] for line in shown] + [name for name, _ in extra],
    }
    if any(averages):
        columns[words["mean"]] = [None if a is None else 100 * a.mean for a in averages] + blank
        margins = [None if a is None or a.n_seeds < FEW_SEEDS else a.margin for a in averages]
        if any(margin is not None for margin in margins):
            columns["±"] = [None if margin is None else 100 * margin for margin in margins] + blank
    if any(remarks):
        columns[words["notes"]] = ["".join(each) or None for each in remarks] + blank
    for column in by_kind(block):
        scores = [line.cells.get(column.id) for line in shown]
        columns[column.id] = [None if r is None else 100 * r.mean for r in scores] + [
            cells.get(column.id) for _, cells in extra
        ]
    if len({line.source for line in shown}) > 1:
        columns[words["source"]] = [words[line.source] for line in shown] + blank
    if any(briefs):
        # a submission's speed is claimed: it stands in the view of costs, not in a column that sorts
        speeds = [
            [row.train_tokens_per_second for row in line.cells.values() if line.source != "submitted"] for line in shown
        ]
        columns |= {
            words["parameters"]: [None if b is None else b.parameters or None for b in briefs] + blank,
            words["window_short_head"]: [None if b is None or b.origin == "outside" else b.max_length for b in briefs]
            + blank,
            words["speed_short_head"]: [
                sum(x for x in each if x) / len(each) if each and all(each) else None for each in speeds
            ]
            + blank,
        }
    if any(remarks):
        columns[words["notes_in_words"]] = ["; ".join(each.values()) or None for each in remarks] + blank
    links = [hub_link(brief) for brief in briefs]
    if any(links):
        columns["hub"] = [*links, *blank]
    return pd.DataFrame({k: pd.Series(v, dtype=_dtype(v)) for k, v in columns.items()}), [*shown, *blank]


def _dtype(values: Sequence[Any]) -> str:
    return "object" if any(isinstance(v, str) for v in values) else "float64"


def columns_of(block: Block, words: Mapping[str, str]) -> dict[str, Any]:
    """How the columns of `to_frame` are shown: name and rank pinned, the mean as a bar, notes as signs."""
    column, text = st.column_config.NumberColumn, st.column_config.TextColumn
    bar = st.column_config.ProgressColumn(min_value=0, max_value=100, width=92)
    shown: dict[str, Any] = {
        words["rank"]: text(pinned=True, width=48, help=words["rank_short"]),
        words["model"]: text(pinned=True, width=298),
        words["mean"]: bar,
        "±": column(width=42, help=words["margin_help"]),
        words["notes"]: text(width=56, help=words["marks_help"]),
        words["notes_in_words"]: text(width=420),
        words["source"]: text(width=94),
        words["parameters"]: column(width=92),
        words["window_short_head"]: column(format="%d", width=72, help=words["window"]),
        words["speed_short_head"]: column(width=76, help=words["tokens_per_second"]),
        "hub": st.column_config.LinkColumn(display_text="↗", width=50),
    }
    kinds = {c.id: words.get(f"type_{c.type}", c.type) for c in block.columns}
    # as wide as its name: letters of 7 pixels between paddings of 8
    return shown | {
        c.id: column(help=f"{c.name} · {kinds[c.id]}", width=max(54, 18 + 7 * len(c.id))) for c in block.columns
    }


def digits_of(block: Block, words: Mapping[str, str]) -> dict[str, int]:
    """Column -> decimals."""
    return {words["mean"]: 1, "±": 1} | {column.id: 1 for column in block.columns}


def to_cards(lines: Sequence[ModelLine], ranks: Mapping[tuple[str, str], str], words: Mapping[str, str]) -> str:
    """Rank, name and mean of the first lines, as a list for narrow screens; every name escaped."""
    first = [line for line in lines[:MOST_CARDS] if line.average is not None]
    names = without_revisions(line.name for line in first)
    body = "".join(
        f"<li><b>{for_html(ranks.get((line.name, line.source), '–'))}</b> <span>{for_html(names[line.name])}</span> "
        f"<b>{100 * line.average.mean:.1f}</b></li>"
        for line in first
        if line.average is not None
    )
    return f'<ol class="bb-cards" aria-label="{for_html(words["board"])}">{body}</ol>' if body else ""


def key_of(group: RunGroup) -> str:
    """Names a group's line in a link: model and variant, the source if not one's own."""
    name = line_name(group.model, group.variant)
    return name if group.source == "run" else f"{name}{_SOURCE}{group.source}"


def titles_of(keys: Iterable[str], words: Mapping[str, str]) -> dict[str, str]:
    """What a reader sees for each `key_of`: without its revision where no other is left the same."""
    parts = {key: key.partition(_SOURCE) for key in keys}
    names = {
        key: f"{name} · {words[source]}" if source in words else key.replace(_SOURCE, " ")
        for key, (name, _, source) in parts.items()
    }
    shown = without_revisions(names.values())
    return {key: shown[name] for key, name in names.items()}


def shown_names(lines: Sequence[Row | RunGroup | NeedleGrid], words: Mapping[str, str]) -> list[str]:
    """A name each: model and variant, and the source where another line has the same; a number for what is left."""
    whole = [line_name(one.model, one.variant) for one in lines]
    bare = without_revisions(whole)
    short = [bare[name] for name in whole]
    times = Counter(short)
    names = [
        f"{name} · {words[one.source]}" if times[name] > 1 else name for name, one in zip(short, lines, strict=True)
    ]
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        if seen[name] > 1:
            names[place] = f"{name} #{seen[name]}"
    return names
