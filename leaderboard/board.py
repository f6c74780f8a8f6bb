"""The first view: models down, tasks across, one block a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import streamlit as st

from biobench.report.render import plain_note, render
from biobench.report.rows import AverageName, Report
from biobench.report.table import Results, build
from biobench.report.ties import MOST, tie_groups
from biobench.report.wide import Block, blocks
from leaderboard.filters import narrowed
from leaderboard.folder import results, results_dir
from leaderboard.state import choose, list_from_link, start, write_link
from leaderboard.table import AVERAGE, sort_lines, to_frame, to_html
from leaderboard.words import spoken

SUITES = ("fr", "en", "needle")
SOURCES = ("run", "submitted", "published", "floor", "ceiling")


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the board."""
    st.title(words["title"])
    held = results()
    if held.refusals and not held.groups:
        st.warning(words["all_refused"])
        for reason in dict.fromkeys(f"{r.group.task}: {'; '.join(r.reasons)}" for r in held.refusals):
            st.text(plain_note(reason))
    elif not held.groups and not held.findings:
        st.info(words["no_runs"])
        st.code(f"biobench run MODEL --suite fr --results-dir {results_dir()}", language="bash")
    _findings(held, words)
    report = _filtered(held, words, average)
    st.caption(f"{words['caption']} {words['shade']}")
    only_complete = bool(st.session_state["complete"])
    drawn = False
    for block in blocks(report):
        drawn = _block(report, block, only_complete, words) or drawn
    if not drawn:
        st.warning(words["nothing"])
    _downloads(_complete(report) if only_complete else report, words)
    if report.notes:
        with st.expander(words["notes"]):
            for note in report.notes:
                st.text(plain_note(spoken(note, words)))


def _findings(held: Results, words: Mapping[str, str]) -> None:
    if not held.findings:
        return
    with st.expander(f"{words['findings']}: {len(held.findings)}", expanded=True):
        st.caption(words["finding_help"])
        for finding in held.findings:
            st.text(f"{plain_note(str(finding))}\n→ {plain_note(finding.hint)}")


def _filtered(held: Results, words: Mapping[str, str], average: AverageName) -> Report:
    """The filters, and the report that they leave; the link carries their state."""
    start("suites", list_from_link("suites", SUITES, SUITES))
    start("sources", list_from_link("sources", SOURCES, SOURCES))
    start("search", str(st.query_params.get("search", ""))[:200])
    start("complete", st.query_params.get("complete") == "1")
    with st.sidebar:
        st.multiselect(words["suites"], SUITES, key="suites", format_func=words.__getitem__)
        st.multiselect(words["sources"], SOURCES, key="sources", format_func=words.__getitem__)
        st.text_input(words["search"], key="search", max_chars=200)
        st.toggle(words["complete"], key="complete", help=words["complete_help"])
    state = st.session_state
    for key, everything in (("suites", SUITES), ("sources", SOURCES)):
        write_link(key, "" if list(state[key]) == list(everything) else ",".join(state[key]))
    write_link("search", state["search"])
    write_link("complete", "1" if state["complete"] else "")
    wanted = state["search"].casefold().split()
    names = {g.model for g in held.groups} | {v.model for v in held.published}
    found = {n for n in names if all(w in n.casefold() for w in wanted)} if wanted else None
    models, tasks = narrowed(held, words, found)
    return build(
        held,
        average,
        tasks=tasks,
        suites=[*state["suites"], *_other_suites(held)],
        sources=state["sources"],
        models=models,
    )


def _other_suites(held: Results) -> list[str]:
    """Languages beside those that the filter names are always shown."""
    return sorted({info.suite for info in held.infos.values()} - set(SUITES))


def _block(report: Report, block: Block, only_complete: bool, words: Mapping[str, str]) -> bool:
    """One suite; False where no line is left."""
    choices = ([AVERAGE] if block.has_average else []) + [c.id for c in block.columns]
    st.subheader(words.get(block.suite, block.title), anchor=block.suite)
    names = {AVERAGE: words["suite_average"]}
    by = choose(words["sort"], choices, f"sort_{block.suite}", names, width=320, default=True)
    lines = [line for line in sort_lines(block, by) if line.average is not None or not only_complete]
    if not lines:
        return False
    ties = tie_groups(report, block.suite)
    st.html(to_html(block, lines, words, ties))
    if ties:
        st.caption(words["letters_help"])
    elif sum(line.average is not None for line in lines) > MOST:
        st.caption(words["too_many_ties"].format(MOST))
    with st.expander(words["interactive"]):
        frame = to_frame(block, lines, words)
        numbers = {name: st.column_config.NumberColumn(format="%.1f") for name in frame.columns[2:]}
        st.dataframe(frame, hide_index=True, column_config=numbers)
    return True


def _complete(report: Report) -> Report:
    """The rows of the lines that have a suite average, as the page shows them."""
    whole = {(row.line, row.suite) for row in report.averages}
    rows = tuple(row for row in report.rows if (row.line, row.suite) in whole)
    kept = {row.task for row in rows}
    return replace(report, rows=rows, columns=tuple(c for c in report.columns if c.id in kept))


def _downloads(report: Report, words: Mapping[str, str]) -> None:
    st.caption(words["download"])
    formats = {"csv": "text/csv", "json": "application/json", "latex": "text/x-tex", "md": "text/markdown"}
    for column, (format, mime) in zip(st.columns(len(formats), width=420), formats.items(), strict=True):
        suffix = "tex" if format == "latex" else format
        # rendered when somebody asks for it: large folders take a while
        content = partial(render, report, format)
        column.download_button(format, content, f"biobench.{suffix}", mime, key=f"download_{format}")
