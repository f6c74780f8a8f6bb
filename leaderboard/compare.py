"""Two to five models against each other: the verdict in words, then differences task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import streamlit as st

from biobench.comparison.compare import OTHER_CODE, Comparison
from biobench.comparison.compare import compare as compare_models
from biobench.comparison.result import PairResult, TaskLine
from biobench.errors import StoreError, UsageError
from biobench.reporting import charts
from biobench.reporting.entrants import find_entrants, line_name
from biobench.reporting.names import in_sentences, shorten
from biobench.reporting.printers import plain_note
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName
from biobench.schema.kind import get_metric
from leaderboard import page
from leaderboard.choices import choose_average, choose_several
from leaderboard.numbers import ShownNumber
from leaderboard.ranking import first_pair
from leaderboard.table import protocol_words

MOST = 5
TASKS = "only"
"""The tasks in the link."""


def show() -> None:
    """Draw the view."""
    st.title("Compare")
    loaded = page.results()
    ran = {line_name(group.model, group.variant) for group in loaded.groups}
    printed = {line_name(value.model, value.variant) for value in loaded.published}
    names = sorted(ran | printed, key=lambda name: (name not in ran, name.casefold()))
    is_link = "models" in st.query_params
    models_row = st.container()
    wide, narrow = st.columns((7, 3))
    with narrow:
        average = choose_average()
    pair, shared = page.made_once(partial(first_pair, loaded, average), "first pair", average)
    with models_row:
        chosen = choose_several(
            "Two to five models",
            names,
            "models",
            pair,
            from_data=True,
            max_selections=MOST,
            select_all=False,
            on_change=_ask_all_tasks,
        )
    if len(chosen) < 2:
        st.info("Choose at least two models.")
        return
    try:
        options = _common_tasks(loaded, chosen)
        # the pair that page one names is asked where it names it: one answer for one question; a
        # link without tasks is of one who wanted all of them
        asked = list(shared) if tuple(chosen) == pair and not is_link else []
        with wide:
            tasks = choose_several(
                "Only these tasks",
                options,
                TASKS,
                asked,
                from_data=True,
                placeholder="all in common",
            )
        answer = _answer(chosen, tasks, average, loaded)
    except UsageError as error:
        st.info(f"{page.text(error)}\n\n{page.text(error.hint)}")
        return
    short = in_sentences(answer.models)
    with st.container(border=True):
        st.subheader(page.with_short_names(answer.headline, short), anchor=False)
        for sentence in answer.sentences:
            st.markdown(page.with_short_names(sentence, short))
        if OTHER_CODE in answer.notes:
            st.caption(f"{page.literal(OTHER_CODE.capitalize())}.")
        if answer.protocol:
            st.caption(f"Runs of all these models: {protocol_words(answer.protocol)}.")
    for name_a, name_b, outcomes, rows in answer.pairs:
        _show_pair(short[name_a], short[name_b], outcomes, rows)
    with st.expander("All numbers"):
        quoted = " ".join(map('"{}"'.format, chosen))
        wanted = "".join(map(" --task {}".format, tasks))
        st.code(
            f"biobench compare {quoted} --average {average}{wanted}",
            language="bash",
            wrap_lines=True,
        )
        st.code(answer.text, language=None)
        for note in answer.notes:
            st.text(f"* {shorten(plain_note(page.without_commands(note)))}")


def _ask_all_tasks() -> None:
    """Other models have other tasks in common."""
    st.session_state[TASKS] = []


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """What the page says of a comparison. The comparison itself holds the runs and their
    resampled answers, megabytes that a cache would keep.

    pairs: title names, wins, ties and losses in words, and a row a task, largest difference first.
    """

    models: tuple[str, ...]
    headline: str
    sentences: tuple[str, ...]
    pairs: tuple[tuple[str, str, str, list[dict[str, Any]]], ...]
    text: str
    notes: tuple[str, ...]
    protocol: str
    """Under which the runs were made; empty for the full one."""


def shown_comparison(comparison: Comparison) -> ShownComparison:
    """The words and numbers of a comparison."""
    # matched pairs come first in it: the result is the headline
    sentences = list(comparison.verdict)
    headline = sentences.pop(len(comparison.matched))
    pairs = []
    for pair in comparison.pairs:
        outcomes = _outcomes(pair)
        tasks = sorted(pair.tasks, key=lambda line: -line.difference)
        pairs.append((pair.first, pair.second, outcomes, list(map(_row, tasks))))
    return ShownComparison(
        models=comparison.models,
        headline=headline,
        sentences=tuple(sentences),
        pairs=tuple(pairs),
        text=comparison.text(),
        notes=comparison.notes,
        protocol=comparison.protocol,
    )


def _outcomes(pair: PairResult) -> str:
    """Wins, ties and losses of the first model; tasks without an interval count as not tested."""
    tested = replace(pair, tasks=tuple(line for line in pair.tasks if line.widest is not None))
    untested = len(pair.tasks) - len(tested.tasks)
    if not tested.tasks:
        return f"Not tested: {untested}."
    outcomes = f"Wins {tested.wins}, ties {tested.ties}, losses {tested.losses}"
    if untested:
        outcomes += f", not tested {untested}"
    return f"{outcomes}."


def _row(line: TaskLine) -> dict[str, Any]:
    """Scores in percent, difference and interval in points."""
    difference = 100 * line.difference
    row: dict[str, Any] = {
        "task": line.task,
        "average": get_metric(line.metric).words,
        "A": 100 * line.first,
        "B": 100 * line.second,
        "difference": ShownNumber(difference, f"{difference:+.1f}"),
        "low": None,
        "high": None,
    }
    if line.widest is not None:
        row |= {"low": 100 * line.widest.low, "high": 100 * line.widest.high}
    return row


def _common_tasks(loaded: Results, chosen: Sequence[str]) -> list[str]:
    """The tasks of which every chosen model has a score. Raises UsageError where a name means
    several models.
    """
    common = list(loaded.infos)
    for entrant in find_entrants(chosen, loaded):
        tasks = entrant.groups.keys() | entrant.published.keys()
        common = [task for task in common if task in tasks]
    return common


def _answer(
    chosen: Sequence[str], tasks: Sequence[str], average: AverageName, loaded: Results
) -> ShownComparison:
    """The comparison; without that on matched pairs where a ledger is damaged. Raises UsageError
    where there is none.
    """
    ledgers: dict[str, str] = {}
    changed = []
    for name in chosen:
        run = page.trained_by(g for g in loaded.groups if line_name(g.model, g.variant) == name)
        if run is not None and run.ledger is not None:
            ledgers[name] = str(run.ledger)
            changed.append(run.ledger.stat().st_mtime_ns)

    def compared(paths: Mapping[str, str]) -> ShownComparison:
        results = replace(loaded, groups=page.unread(loaded.groups))
        return shown_comparison(
            compare_models(chosen, results_dir=results, tasks=tasks, average=average, ledgers=paths)
        )

    asked = ("comparison", *chosen, "on", *tasks, average, *changed)
    try:
        return page.made_once(partial(compared, ledgers), *asked)
    except StoreError as error:
        if not ledgers:
            raise
        st.warning(page.text(error))
        return page.made_once(partial(compared, {}), *asked, "without ledgers")


def _show_pair(name_a: str, name_b: str, outcomes: str, rows: list[dict[str, Any]]) -> None:
    st.header(f"{page.literal(name_a)} minus {page.literal(name_b)}", anchor=False)
    named = f"A is {page.literal(name_a)}, B is {page.literal(name_b)}."
    st.caption(f"{named} {outcomes}")
    ends = []
    for row in rows[:1] + rows[1:][-1:]:
        ends.append(f"{row['task']} {row['difference']}")
    page.draw(
        charts.differences(rows, "task", page.ink()),
        f"Difference on each task with its interval; the ends: {', '.join(ends)}",
    )
    about = "Differences in points."
    if any(row["low"] is not None for row in rows):
        about += (
            " Line, low and high: 95% interval over seeds and test sets, or over the one that is "
            "known."
        )
    st.caption(about)
    page.show_table(rows)
