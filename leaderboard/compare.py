"""Two to five models against each other: the verdict in words, then differences task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from biobench.comparison.compare import Comparison
from biobench.comparison.compare import compare as compare_models
from biobench.comparison.result import PairResult, TaskLine
from biobench.errors import StoreError, UsageError
from biobench.report import charts
from biobench.report.entrants import line_name, names_of
from biobench.report.names import in_sentences, shorten
from biobench.report.printers import plain_note
from biobench.report.results import Results
from biobench.report.row import AverageName
from biobench.schema.kind import get_metric
from leaderboard import page
from leaderboard.ranking import first_pair

MOST = 5


@st.cache_data(max_entries=4, show_spinner="Finding the best runs")
def _first_pair(
    average: AverageName, state: str, _loaded: Results
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`state` stands for the folder's content."""
    del state
    return first_pair(_loaded, average)


def show() -> None:
    """Draw the view."""
    st.title("Compare")
    loaded = page.results()
    ran = {line_name(group.model, group.variant) for group in loaded.groups}
    printed = {line_name(value.model, value.variant) for value in loaded.published}
    names = sorted(ran, key=str.casefold) + sorted(printed - ran, key=str.casefold)
    models_row = st.container()
    wide, narrow = st.columns((7, 3))
    with narrow:
        average = page.choose_average()
    pair, shared = _first_pair(average, page.results_state(), loaded)
    with models_row:
        chosen = page.choose_several(
            "Two to five models", names, "models", pair, max_selections=MOST
        )
    if len(chosen) < 2:
        st.info("Choose at least two models.")
        return
    with wide:
        options = _options(loaded, chosen)
        # the pair that page one names is asked where it names it: one answer for one question
        asked = list(shared) if tuple(chosen) == pair else []
        key, hint = f"tasks_{len(options)}", "all in common"
        tasks = page.choose_several("Only these tasks", options, key, asked, placeholder=hint)
    answer = _answer(tuple(chosen), tuple(tasks), average, loaded)
    if answer is None:
        return
    short = in_sentences(answer.models)
    with st.container(border=True):
        st.subheader(page.text(_named(answer.headline, short)), anchor=False)
        for sentence in answer.sentences:
            st.markdown(page.text(_named(sentence, short)))
    for pair_shown in answer.pairs:
        _show_pair(pair_shown, short)
    with st.expander("All numbers"):
        quoted = " ".join(f'"{name}"' for name in chosen)
        wanted = "".join(f" --task {task}" for task in tasks)
        st.code(f"biobench compare {quoted} --average {average}{wanted}", language="bash")
        st.code(answer.text, language=None)
        for note in answer.notes:
            st.text(f"* {shorten(plain_note(page.without_commands(note)))}")


@dataclass(frozen=True, slots=True)
class ShownPair:
    """Two models side by side. outcomes: wins, ties and losses in words; rows: a task each,
    largest difference first, scores and differences in points.
    """

    first: str
    second: str
    outcomes: str
    rows: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """What the page says of a comparison. The comparison itself holds the runs and their
    resampled answers, megabytes that a cache would keep.
    """

    models: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]
    pairs: tuple[ShownPair, ...]
    text: str
    notes: tuple[str, ...]


def shown_comparison(comparison: Comparison) -> ShownComparison:
    """The words and numbers of a comparison."""
    lines = comparison.verdict
    # matched pairs come first in it: the result is the headline
    position = len(comparison.matched)
    return ShownComparison(
        models=comparison.models,
        headline=lines[position],
        sentences=(*lines[:position], *lines[position + 1 :]),
        pairs=tuple(_shown_pair(pair) for pair in comparison.pairs),
        text=comparison.text(),
        notes=comparison.notes,
    )


def _shown_pair(pair: PairResult) -> ShownPair:
    lines = sorted(pair.tasks, key=lambda line: -line.difference)
    return ShownPair(
        first=pair.first,
        second=pair.second,
        outcomes=f"Wins {pair.wins}, ties {pair.ties}, losses {pair.losses}.",
        rows=tuple(_row(line) for line in lines),
    )


def _row(line: TaskLine) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": line.task,
        "average": get_metric(line.metric).words,
        "A": 100 * line.first,
        "B": 100 * line.second,
        "difference": 100 * line.difference,
        "low": None,
        "high": None,
    }
    if line.widest is not None:
        row |= {"low": 100 * line.widest.low, "high": 100 * line.widest.high}
    return row


def _options(loaded: Results, chosen: Sequence[str]) -> list[str]:
    """The tasks of which every chosen model has a score."""
    shared = set(loaded.infos)
    for name in chosen:
        tasks = {group.task for group in loaded.groups if name in names_of(group)}
        if not tasks:
            printed = {value.task for value in loaded.published if name in names_of(value)}
            tasks = {id for id, info in loaded.infos.items() if info.published_as in printed}
        shared &= tasks
    return [task for task in loaded.infos if task in shared]


def _answer(
    chosen: tuple[str, ...], tasks: tuple[str, ...], average: AverageName, loaded: Results
) -> ShownComparison | None:
    """The comparison, or why there is none, in words; without that on matched pairs where a ledger
    is damaged.
    """
    ledgers = []
    for name in chosen:
        run = page.trained_by(g for g in loaded.groups if line_name(g.model, g.variant) == name)
        if run is not None and run.ledger is not None:
            ledgers.append((name, str(run.ledger), run.ledger.stat().st_mtime_ns))
    state = page.results_state()
    try:
        try:
            return _compare(chosen, state, tasks, average, tuple(ledgers), loaded)
        except StoreError as error:
            if not ledgers:
                raise
            st.warning(page.text(error))
            return _compare(chosen, state, tasks, average, (), loaded)
    except UsageError as error:
        st.info(f"{page.text(error)}\n\n{page.text(error.hint)}")
        return None


@st.cache_resource(max_entries=32, show_spinner="Comparing")
def _compare(
    models: tuple[str, ...],
    state: str,
    tasks: tuple[str, ...],
    average: AverageName,
    ledgers: tuple[tuple[str, str, int], ...],
    _loaded: Results,
) -> ShownComparison:
    """`state` stands for the folder's content."""
    del state
    paths = {model: path for model, path, _ in ledgers}
    results = replace(_loaded, groups=page.unread(_loaded.groups))
    comparison = compare_models(
        models, results_dir=results, tasks=tasks, average=average, ledgers=paths
    )
    return shown_comparison(comparison)


def _named(sentence: str, short: Mapping[str, str]) -> str:
    """A sentence with the models' short names, the longest first: a name may be the beginning of
    another.
    """
    for name in sorted(short, key=len, reverse=True):
        sentence = sentence.replace(name, short[name])
    return sentence


def _show_pair(pair: ShownPair, short: Mapping[str, str]) -> None:
    st.header(
        f"{page.literal(short[pair.first])} minus {page.literal(short[pair.second])}",
        anchor=False,
    )
    st.caption(f"A is the first. {pair.outcomes}")
    rows = pair.rows
    ends = rows if len(rows) <= 2 else (rows[0], rows[-1])
    words = ", ".join(f"{row['task']} {row['difference']:.1f}" for row in ends)
    page.draw(
        charts.differences(rows, "task", page.ink()),
        f"Difference on each task with its interval; the ends: {words}",
    )
    st.caption(
        "Dot: difference. Line: 95% interval over seeds and test sets, or over the one that is "
        "known."
    )
    page.show_table([_table_cells(row) for row in rows])


def _table_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table; the interval sorts by its lower end."""
    difference, low, high = row["difference"], row["low"], row["high"]
    cells = {name: row[name] for name in ("task", "average", "A", "B")}
    cells["difference, points"] = page.ShownNumber(difference, f"{difference:+.1f}")
    cells["95%"] = None
    if low is not None and high is not None:
        cells["95%"] = page.ShownNumber(low, f"{low:+.1f} … {high:+.1f}")
    return cells
