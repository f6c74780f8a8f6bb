"""Two to five models against each other: the verdict in words, then differences task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.report.compare import Comparison, PairResult, TaskLine, compare
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.render import plain_note
from biobench.report.rows import AverageName
from biobench.report.table import Results, fingerprint
from biobench.report.verdict_fr import verdict_fr
from leaderboard import charts
from leaderboard.folder import results, results_dir
from leaderboard.state import from_link, start, write_link

MOST = 5
SUITES = ("all", "fr", "en", "needle")
SEPARATOR = "\x1f"


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    st.title(words["compare_view"])
    held = results()
    names = _names(held)
    linked = [n for n in str(st.query_params.get("models", "")).split(SEPARATOR) if n in names]
    start("models", linked[:MOST])
    st.session_state["models"] = [n for n in st.session_state["models"] if n in names]
    start("compare_suite", from_link("compare_suite", SUITES, "all"))
    chosen = st.multiselect(words["choose_models"], names, key="models", max_selections=MOST, format_func=plain)
    left, right = st.columns(2)
    suite = left.selectbox(words["suite"], SUITES, key="compare_suite", format_func=words.__getitem__)
    documents = right.toggle(words["documents"], key="documents", help=words["documents_help"])
    write_link("models", SEPARATOR.join(chosen))
    write_link("compare_suite", "" if suite == "all" else suite)
    if len(chosen) < 2:
        st.info(words["pick_two"])
        return
    asked = None if suite == "all" else suite
    folder = str(results_dir().resolve())
    found = _compare(tuple(chosen), folder, fingerprint(folder), asked, average, documents)
    _verdict(found, words)
    if len(found.models) > 2:
        st.subheader(words["standings"])
        st.dataframe(_standings(found, words), hide_index=True)
        st.caption(words["letters_help"])
    for pair in found.pairs:
        _pair(pair, words)
    with st.expander(words["details"]):
        st.code(found.text(), language=None)


@st.cache_resource(max_entries=32)
def _compare(
    models: tuple[str, ...], folder: str, state: str, suite: str | None, average: AverageName, documents: bool
) -> Comparison:
    """`state` stands for the folder's content."""
    del state
    return compare(models, results_dir=folder, suite=suite, average=average, documents=documents)


def _names(held: Results) -> list[str]:
    """Runs first, then published models, by name."""
    own = sorted({line_name(g.model, g.variant) for g in held.groups}, key=str.casefold)
    return own + sorted({v.model for v in held.published} - set(own), key=str.casefold)


def _verdict(found: Comparison, words: Mapping[str, str]) -> None:
    first, *others = verdict_fr(found) if words["verdict_language"] == "fr" else found.verdict
    with st.container(border=True):
        # names come from users: text, never Markdown
        st.text(plain_note(first))
        for sentence in others:
            st.text(plain_note(sentence))
        for note in found.notes:
            st.text(f"* {plain_note(note)}")


def _standings(found: Comparison, words: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                words["model"]: plain(s.model),
                words["letters"]: s.ties or "–",
                words["score"]: round(100 * s.score, 2),
            }
            for s in found.standings
        ]
    )


def _pair(result: PairResult, words: Mapping[str, str]) -> None:
    pair = result.pair
    st.subheader(words["difference"].split(",")[0].capitalize(), anchor=False)
    st.text(f"{plain(pair.first)} − {plain(pair.second)}")
    shown = (("wins", pair.comparison.wins), ("ties", pair.comparison.ties), ("losses", pair.comparison.losses))
    for column, (key, count) in zip(st.columns(3), shown, strict=True):
        column.metric(words[key], count)
    rows = [_row(line) for line in result.tasks]
    st.altair_chart(charts.differences(rows, words), width="stretch")
    st.caption(words["difference_help"])
    number = st.column_config.NumberColumn
    formats = {"A": number(format="%.1f"), "B": number(format="%.1f"), words["difference"]: number(format="%+.2f")}
    ends = {"95%": st.column_config.TextColumn(alignment="right")}
    st.dataframe(_table(result.tasks, rows, words), hide_index=True, column_config=formats | ends)


def _row(line: TaskLine) -> dict[str, Any]:
    """In points; the interval is the widest-reaching one that is known."""
    interval = next((t.interval for t in (line.total, line.documents, line.seeds) if t and t.interval), None)
    return {
        "task": line.task,
        "difference": 100 * line.difference,
        "low": None if interval is None else 100 * interval.low,
        "high": None if interval is None else 100 * interval.high,
    }


def _table(lines: Sequence[TaskLine], rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> pd.DataFrame:
    table = []
    for line, row in zip(lines, rows, strict=True):
        ends = "–" if row["low"] is None else f"{row['low']:+.1f} … {row['high']:+.1f}"
        table.append(
            {
                words["task"]: line.task,
                words["average"]: line.metric,
                "A": round(100 * line.first, 1),
                "B": round(100 * line.second, 1),
                words["difference"]: round(row["difference"], 2),
                "95%": ends,
            }
        )
    return pd.DataFrame(table)
