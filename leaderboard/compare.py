"""Two to five models against each other: the verdict in words, then differences task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pandas as pd
import streamlit as st

from biobench.comparison.compare import Comparison
from biobench.comparison.compare import compare as compare_models
from biobench.comparison.result import PairResult, TaskLine
from biobench.errors import StoreError, UsageError
from biobench.report import charts
from biobench.report.entrants import line_name
from biobench.report.literature.comparison import NAMES
from biobench.report.names import in_sentences, shorten
from biobench.report.printers import plain_note
from biobench.report.results import Results
from biobench.report.row import AverageName
from leaderboard import page
from leaderboard.ranking import first_pair

MOST = 5
AVERAGES = {
    "paper": "as published",
    "macro": "macro F1",
    "micro": "micro F1",
    "weighted": "weighted F1",
}


@st.cache_data(max_entries=4, show_spinner="Finding the best runs")
def _first_pair(state: str, _loaded: Results) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`state` stands for the folder's content."""
    del state
    return first_pair(_loaded)


def show() -> None:
    """Draw the view."""
    st.title("Compare")
    loaded = page.results()
    ran = sorted({line_name(g.model, g.variant) for g in loaded.groups}, key=str.casefold)
    names = ran + sorted(
        {line_name(v.model, v.variant) for v in loaded.published} - set(ran), key=str.casefold
    )
    pair, shared = _first_pair(page.results_state(), loaded)
    chosen = page.choose_several("Two to five models", names, "models", pair, max_selections=MOST)
    if len(chosen) < 2:
        st.info("Choose at least two models.")
        return
    left, right = st.columns((7, 3))
    with left:
        options = _options(loaded, chosen)
        # the pair that page one names is asked where it names it: one answer for one question
        asked = list(shared) if tuple(chosen) == pair else []
        key, hint = f"tasks_{len(options)}", "all in common"
        tasks = page.choose_several("Only these tasks", options, key, asked, placeholder=hint)
    with right:
        average: AverageName = page.choose(
            "Average", get_args(AverageName)[::-1], "average", AVERAGES
        )  # type: ignore[assignment]
    comparison = _answer(tuple(chosen), tuple(tasks), average, loaded)
    if comparison is None:
        return
    lines = comparison.verdict
    # matched pairs come first in it: the result is the headline
    about = len(comparison.matched)
    short = in_sentences(comparison.models)
    with st.container(border=True):
        st.subheader(page.text(_named(lines[about], short)), anchor=False)
        for sentence in (*lines[:about], *lines[about + 1 :]):
            st.markdown(page.text(_named(sentence, short)))
    for result in comparison.pairs:
        _pair(result, short)
    with st.expander("All numbers"):
        quoted = " ".join(f'"{name}"' for name in chosen)
        wanted = "".join(f" --task {task}" for task in tasks)
        st.code(f"biobench compare {quoted} --average {average}{wanted}", language="bash")
        st.code(comparison.text(), language=None)
        for note in comparison.notes:
            st.text(f"* {shorten(plain_note(page.without_commands(note)))}")


def _options(loaded: Results, chosen: Sequence[str]) -> list[str]:
    """The tasks of which every chosen model has a score."""
    has: list[set[str]] = []
    for name in chosen:
        ran = {g.task for g in loaded.groups if name in (g.model, line_name(g.model, g.variant))}
        printed = {v.task for v in loaded.published if line_name(v.model, v.variant) == name}
        has.append(ran or {i for i, info in loaded.infos.items() if info.published_as in printed})
    return [task for task in loaded.infos if all(task in tasks for tasks in has)]


def _answer(
    chosen: tuple[str, ...], tasks: tuple[str, ...], average: AverageName, loaded: Results
) -> Comparison | None:
    """The comparison, or why there is none, in words; without that on matched pairs where a ledger
    is damaged.
    """
    ledgers = []
    for name in chosen:
        run = page.trained_by(g for g in loaded.groups if line_name(g.model, g.variant) == name)
        if run is not None and run.ledger is not None:
            ledgers.append((name, str(run.ledger), run.ledger.stat().st_mtime_ns))
    folder, state = str(page.results_dir()), page.results_state()
    try:
        try:
            return _compare(chosen, folder, state, tasks, average, tuple(ledgers))
        except StoreError as error:
            if not ledgers:
                raise
            st.warning(page.text(error))
            return _compare(chosen, folder, state, tasks, average, ())
    except UsageError as error:
        st.info(f"{page.text(error)}\n\n{page.text(error.hint)}")
        return None


@st.cache_resource(max_entries=32, show_spinner="Comparing")
def _compare(
    models: tuple[str, ...],
    folder: str,
    state: str,
    tasks: tuple[str, ...],
    average: AverageName,
    ledgers: tuple[tuple[str, str, int], ...],
) -> Comparison:
    """`state` stands for the folder's content."""
    del state
    paths = {model: path for model, path, _ in ledgers}
    return compare_models(models, results_dir=folder, tasks=tasks, average=average, ledgers=paths)


def _named(sentence: str, short: Mapping[str, str]) -> str:
    """A sentence with the models' short names, the longest first: a name may be the beginning of
    another.
    """
    for name in sorted(short, key=len, reverse=True):
        sentence = sentence.replace(name, short[name])
    return sentence


def _pair(result: PairResult, short: Mapping[str, str]) -> None:
    st.header(
        f"{page.literal(short[result.first])} minus {page.literal(short[result.second])}",
        anchor=False,
    )
    st.caption(f"A is the first. Wins {result.wins}, ties {result.ties}, losses {result.losses}.")
    lines = sorted(result.tasks, key=lambda line: -line.difference)
    rows = [_row(line) for line in lines]
    ends = rows if len(rows) <= 2 else (rows[0], rows[-1])
    words = ", ".join(f"{row['task']} {row['difference']:.1f}" for row in ends)
    page.draw(
        charts.differences(rows, page.ink()),
        f"Difference on each task with its interval; the ends: {words}",
    )
    st.caption(
        "Dot: difference. Line: 95% interval over seeds and test sets, or over the one that is "
        "known."
    )
    _show_differences(
        [
            {
                "task": line.task,
                "average": NAMES.get(line.metric, line.metric),
                "A": 100 * line.first,
                "B": 100 * line.second,
                "difference": row["difference"],
                "95%": _interval(row["low"], row["high"]),
            }
            for line, row in zip(lines, rows, strict=True)
        ]
    )


def _row(line: TaskLine) -> dict[str, Any]:
    """In points."""
    interval = line.widest
    return {
        "task": line.task,
        "difference": 100 * line.difference,
        "low": None if interval is None else 100 * interval.low,
        "high": None if interval is None else 100 * interval.high,
    }


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.1f} … {high:+.1f}"


def _show_differences(rows: Sequence[Mapping[str, Any]]) -> None:
    config = {
        "difference": st.column_config.NumberColumn("difference, points", format="%+.1f"),
        "95%": st.column_config.TextColumn(alignment="right"),
    }
    page.show_table(pd.DataFrame(rows), config=config)
