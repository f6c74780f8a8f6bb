"""The foot of page one: notes, downloads, citation, how to add a model, what changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import streamlit as st

import biobench
from biobench import __version__
from biobench.comparison.standing import TESTABLE, mean_of, with_mean
from biobench.report import charts
from biobench.report.names import labels, shorten
from biobench.report.render import plain_note, render
from biobench.report.rows import Report
from biobench.report.wide import ModelLine, blocks
from leaderboard.words import spoken

CITATION = """@software{{biobench,
  title   = {{BioBench: benchmark suite and leaderboard for biomedical encoders in French and English}},
  author  = {{{{The BioBench authors}}}},
  version = {{{version}}}
}}"""
CHANGES = Path(biobench.__file__).resolve().parents[1] / "CHANGELOG.md"
"""Of a checkout; an installed package has none."""


def show_foot(report: Report, words: Mapping[str, str]) -> None:
    """Notes, downloads, citation, how to add a model, version and last run."""
    if report.notes:
        with st.expander(f"{words['notes']} ({len(report.notes)})"):
            for note in report.notes:
                st.text(shorten(plain_note(spoken(note))))
    st.caption(words["download"])
    kinds = {
        "csv": "text/csv",
        "json": "application/json",
        "latex": "text/x-tex",
        "md": "text/markdown",
        "html": "text/html",
    }
    with st.container(horizontal=True):
        for format, mime in kinds.items():
            suffix = "tex" if format == "latex" else format
            # rendered when somebody asks for it: large folders take a while
            content = partial(render, report, format)
            st.download_button(format, content, f"biobench.{suffix}", mime, key=f"download_{format}")
        st.download_button("svg", partial(_picture, report, words), "biobench.svg", "image/svg+xml", key="download_svg")
    with st.expander(words["cite"]):
        st.code(CITATION.format(version=__version__), language="bibtex")
        st.caption(words["cite_help"])
    with st.expander(words["add_model"]):
        st.code("pip install biobench\nbiobench run MODEL --suite fr\nbiobench submit MODEL", language="bash")
    last = max((b.started for g in report.groups for b in g.briefs), default="")
    if CHANGES.is_file():
        with st.expander(words["changes"]):
            # the newest section: what is below its heading up to the next one
            st.markdown(CHANGES.read_text(encoding="utf-8").split("\n## ")[1].partition("\n")[2])
    st.caption(f"BioBench {__version__}" + (f" · {words['last_run']} {last[:10]}" if last else ""))


def _picture(report: Report, words: Mapping[str, str]) -> str:
    """The chart of means, every line of the first suite shown."""
    block = next(iter(blocks(report)), None)
    lines: tuple[ModelLine, ...] = () if block is None else with_mean(block)
    if not lines:
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'
    short = labels(line.name for line in lines)
    rows = [
        {"line": short[line.name], "rank": "", "own": line.source in TESTABLE} | charts.ends(mean_of(line))
        for line in lines
    ]
    return charts.svg(charts.standing(rows, words))
