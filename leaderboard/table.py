"""The board as one data frame for the framework's own table, and as cards for a phone; the same cells in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.report.contamination import MARK, marked
from biobench.report.escape import for_html
from biobench.report.wide import Block, Line
from biobench.store import Brief
from leaderboard.names import shorten

HUB = "https://huggingface.co/{}/tree/{}"
"""Where a model of a known revision is shown."""
FEW_SEEDS = 3
"""Below this many seeds an interval says next to nothing: no ± is shown."""
MOST_CARDS = 20


def literal(text: str) -> str:
    """Text for the places where Streamlit reads Markdown (titles, table cells): shown as it stands."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~$:#" else c for c in text)


def to_frame(
    block: Block,
    lines: Sequence[Line],
    ranks: Mapping[str, str],
    held: Mapping[tuple[str, str, str], Brief],
    words: Mapping[str, str],
) -> tuple[pd.DataFrame, list[Line | None]]:
    """The table in percent, missing scores NaN, and the line of each of its rows (None for the last two).

    ranks: by line name. held: (model, variant, source) -> a brief of its runs. The gate's policies and the oracles
    stand as one row each, the best on each task: a policy measured on few tasks has no row of dashes.
    """
    shown = [line for line in lines if line.source not in ("floor", "ceiling")]
    floor, ceiling = _best(lines, "floor"), _best(lines, "ceiling")
    briefs = [held.get((line.model, line.variant, line.source)) for line in shown]
    extra = [(words[key], cells) for key, cells in (("floor", floor), ("ceiling", ceiling)) if cells]
    blank = [None] * len(extra)
    averages = [line.average for line in shown]
    columns: dict[str, list[Any]] = {
        words["rank"]: [ranks.get(line.name) for line in shown] + blank,
        words["model"]: [shorten(line.name) for line in shown] + [name for name, _ in extra],
    }
    if any(averages):
        columns[words["mean"]] = [None if a is None else 100 * a.mean for a in averages] + blank
        columns["±"] = [
            None if a is None or a.margin is None or a.n_seeds < FEW_SEEDS else 100 * a.margin for a in averages
        ] + blank
    columns |= {
        words["notes"]: [_remarks(line, floor, words) or None for line in shown] + blank,
        words["source"]: [words[line.source] for line in shown] + blank,
    }
    if any(briefs):
        speeds = [[r.train_tokens_per_second for r in line.cells.values()] for line in shown]
        columns |= {
            words["parameters"]: [None if b is None else b.parameters or None for b in briefs] + blank,
            words["window"]: [None if b is None or b.origin == "outside" else b.max_length for b in briefs] + blank,
            words["tokens_per_second"]: [
                sum(x for x in own if x) / len(own) if own and all(own) else None for own in speeds
            ]
            + blank,
        }
    for column in block.columns:
        scores = [line.cells.get(column.id) for line in shown]
        columns[column.id] = [None if r is None else 100 * r.mean for r in scores] + [
            c.get(column.id) for _, c in extra
        ]
    links = [
        HUB.format(b.model, b.revision) if b is not None and b.revision and "/" in b.model else None for b in briefs
    ]
    if any(links):
        columns["hub"] = [*links, *blank]
    return pd.DataFrame({k: pd.Series(v, dtype=_dtype(v)) for k, v in columns.items()}), [*shown, *blank]


def _dtype(values: Sequence[Any]) -> str:
    return "object" if any(isinstance(v, str) for v in values) else "float64"


def columns_of(block: Block, words: Mapping[str, str]) -> dict[str, Any]:
    """How the columns of `to_frame` are shown: name and rank pinned, the mean as a bar, one digit everywhere."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    shown: dict[str, Any] = {
        words["rank"]: text(pinned=True, width=60, help=words["rank_short"]),
        words["model"]: text(pinned=True, width=230),
        words["mean"]: st.column_config.ProgressColumn(format="%.1f", min_value=0, max_value=100, width=120),
        "±": number(format="%.1f", width=50, help=words["margin_help"]),
        words["notes"]: text(width=90, help=words["marks_help"]),
        words["source"]: text(width=90),
        words["parameters"]: number(format="compact", width=90),
        words["window"]: number(format="%d", width=130),
        words["tokens_per_second"]: number(format="compact", width=140),
        "hub": st.column_config.LinkColumn(display_text="↗", width=50),
    }
    return shown | {c.id: number(format="%.1f", help=f"{c.name} · {c.type}", width=90) for c in block.columns}


def _best(lines: Sequence[Line], source: str) -> dict[str, float]:
    """Task -> the highest score in percent among the lines of this source."""
    found: dict[str, float] = {}
    for line in lines:
        if line.source == source:
            for task, row in line.cells.items():
                found[task] = max(found.get(task, 0.0), 100 * row.mean)
    return found


def _remarks(line: Line, floor: Mapping[str, float], words: Mapping[str, str]) -> str:
    """What a reader must know of the line, a sign and some words each."""
    below = [task for task, row in line.cells.items() if task in floor and 100 * row.mean < floor[task]]
    said = [f"▽ {words['below_floor'].format(', '.join(below))}"] if below else []
    cut = [task for task, row in line.cells.items() if row.truncated_documents]
    if cut:
        said.append(f"✂ {words['cut_on'].format(', '.join(cut))}")
    failed = [f"{task} ({row.failed}/{row.n_seeds})" for task, row in line.cells.items() if row.failed]
    if failed:
        said.append(f"✗ {words['failed_on'].format(', '.join(failed))}")
    if any(marked(row.contamination) for row in line.cells.values()):
        said.append(f"{MARK} {words['in_training']}")
    if any(row.only_likely for row in line.cells.values()):
        said.append(f"‡ {words['only_likely']}")
    return "; ".join(said)


def to_cards(lines: Sequence[Line], ranks: Mapping[str, str], words: Mapping[str, str]) -> str:
    """Rank, name and mean of the first lines, as a list for narrow screens; every name escaped."""
    body = "".join(
        f"<li><b>{for_html(ranks.get(line.name, '–'))}</b> <span>{for_html(shorten(line.name))}</span> "
        f"<b>{100 * line.average.mean:.1f}</b></li>"
        for line in lines[:MOST_CARDS]
        if line.average is not None
    )
    return f'<ol class="bb-cards" aria-label="{for_html(words["board"])}">{body}</ol>' if body else "<ol></ol>"
