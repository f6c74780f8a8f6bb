"""The first view: models down, tasks across, one block a suite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import streamlit as st

from biobench.report.render import plain_note, render
from biobench.report.rows import AverageName, Report
from biobench.report.table import Results, build
from biobench.report.wide import Block, blocks
from leaderboard.folder import results, results_dir
from leaderboard.table import AVERAGE, sort_lines, to_frame, to_html

AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted", "paper")
SUITES = ("fr", "en", "needle")
SOURCES = ("run", "submitted", "published", "ceiling")


def show(words: Mapping[str, str]) -> None:
    """Draw the board."""
    st.title(words["title"])
    held = results()
    if not held.groups:
        st.info(words["no_runs"])
        st.code(f"biobench run MODEL --suite fr --results-dir {results_dir()}", language="bash")
    _findings(held, words)
    report = _filtered(held, words)
    only_complete = bool(st.session_state["complete"])
    drawn = False
    for block in blocks(report):
        drawn = _block(block, only_complete, words) or drawn
    if not drawn:
        st.warning(words["nothing"])
    _downloads(report, words)
    if report.notes:
        with st.expander(words["notes"]):
            for note in report.notes:
                st.text(plain_note(note))


def _findings(held: Results, words: Mapping[str, str]) -> None:
    if not held.findings:
        return
    with st.expander(f"{words['findings']}: {len(held.findings)}", expanded=True):
        st.caption(words["finding_help"])
        for finding in held.findings:
            st.text(f"{plain_note(str(finding))}\n→ {plain_note(finding.hint)}")


def _start(key: str, value: object) -> None:
    """A widget's first value: the link's, else `value`."""
    if key not in st.session_state:
        st.session_state[key] = value


def _from_link(key: str, allowed: tuple[str, ...], default: list[str]) -> list[str]:
    chosen = [part for part in st.query_params.get(key, "").split(",") if part in allowed]
    return chosen or default


def _filtered(held: Results, words: Mapping[str, str]) -> Report:
    """The filters, and the report that they leave; the link carries their state."""
    first = "macro" if held.groups else "paper"
    _start("average", _from_link("average", AVERAGES, [first])[0])
    _start("suites", _from_link("suites", SUITES, list(SUITES)))
    _start("sources", _from_link("sources", SOURCES, list(SOURCES)))
    _start("search", st.query_params.get("search", "")[:200])
    _start("complete", st.query_params.get("complete") == "1")
    with st.sidebar:
        st.radio(words["average"], AVERAGES, key="average", format_func=words.__getitem__, help=words["average_help"])
        st.multiselect(words["suites"], SUITES, key="suites", format_func=words.__getitem__)
        st.multiselect(words["sources"], SOURCES, key="sources", format_func=words.__getitem__)
        st.text_input(words["search"], key="search", max_chars=200)
        st.toggle(words["complete"], key="complete", help=words["complete_help"])
    state = st.session_state
    for key, everything in (("average", [first]), ("suites", list(SUITES)), ("sources", list(SOURCES))):
        value = [state[key]] if key == "average" else list(state[key])
        _write_link(key, ",".join(value) if value != everything else "")
    _write_link("search", state["search"])
    _write_link("complete", "1" if state["complete"] else "")
    wanted = state["search"].casefold().split()
    names = {g.model for g in held.groups} | {v.model for v in held.published}
    found = {n for n in names if all(w in n.casefold() for w in wanted)} if wanted else None
    return build(
        held,
        cast(AverageName, state["average"]),
        suites=[*state["suites"], *_other_suites(held)],
        sources=state["sources"],
        models=found,
    )


def _other_suites(held: Results) -> list[str]:
    """Languages beside those that the filter names are always shown."""
    return sorted({info.suite for info in held.infos.values()} - set(SUITES))


def _write_link(key: str, value: str) -> None:
    if value:
        st.query_params[key] = value
    elif key in st.query_params:
        del st.query_params[key]


def _block(block: Block, only_complete: bool, words: Mapping[str, str]) -> bool:
    """One suite; False where no line is left."""
    choices = ([AVERAGE] if block.has_average else []) + [c.id for c in block.columns]
    st.subheader(words.get(block.suite, block.title), anchor=block.suite)
    by = st.selectbox(
        words["sort"],
        choices,
        key=f"sort_{block.suite}",
        format_func=lambda c: words["suite_average"] if c == AVERAGE else c,
        width=320,
    )
    lines = [line for line in sort_lines(block, by) if line.average is not None or not only_complete]
    if not lines:
        return False
    st.html(to_html(block, lines, words))
    with st.expander(words["interactive"]):
        frame = to_frame(block, lines, words)
        numbers = {name: st.column_config.NumberColumn(format="%.1f") for name in frame.columns[2:]}
        st.dataframe(frame, hide_index=True, column_config=numbers)
    return True


def _downloads(report: Report, words: Mapping[str, str]) -> None:
    st.caption(words["download"])
    formats = {"csv": "text/csv", "json": "application/json", "latex": "text/x-tex", "md": "text/markdown"}
    for column, (format, mime) in zip(st.columns(len(formats), width=420), formats.items(), strict=True):
        suffix = "tex" if format == "latex" else format
        column.download_button(format, render(report, format), f"biobench.{suffix}", mime, key=f"download_{format}")
