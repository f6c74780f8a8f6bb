"""Everybody of a view in one table, and the same rows as cards for a narrow screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from biobench.reporting.entrants import line_name
from biobench.reporting.names import in_sentences, without_revisions
from biobench.reporting.row import Row
from biobench.reporting.tasks import TASK_FAMILIES
from leaderboard import page
from leaderboard.columns import LAST, Cells, column_config
from leaderboard.numbers import ShownNumber, millions, percent_cell, score_cell
from leaderboard.ranking import PROTOCOLS, Entry, Ranking

BASELINE = "best baseline, no encoder"
FIRST_CARDS = 20
ROW = 27
"""Pixels of a row: nineteen published models stand on one screen."""
FEW = 3
"""A row of a run with at most a third of the tasks is mostly dashes."""
MOST_ROWS = 24
"""Rows that a table shows before it scrolls, its head among them."""
MOST_COMPARED = 5
NO_MATCH = "Nothing matches these filters."
SHADES = {"published": "", "baseline": "background-color: rgba(128, 128, 128, 0.18)"}
HERE = "background-color: rgba(0, 114, 178, 0.13)"
CARDS = {"published": "", "baseline": "bb-line"}
"""Source of a row -> class of its card; of the runs here it is ``bb-here``."""
RESULTS = {"run": "run here", "frozen": "frozen encoder"}
"""Source of a row -> what it is called; others by their own name."""


def shown_names(entries: Sequence[Entry]) -> dict[str, str]:
    """Name -> as it is read: a protocol that all runs share is said once, above, and a revision
    stays where it tells two apart.
    """
    short = without_revisions(entry.model for entry in entries)
    protocols = {entry.protocol for entry in entries if entry.is_run and entry.source != "baseline"}
    names = {}
    for entry in entries:
        variant = entry.variant
        if {variant} == protocols:
            variant = ""
        names[entry.name] = line_name(short[entry.model], variant)
    return names


def sentence_names(entries: Sequence[Entry]) -> dict[str, str]:
    """Name -> what it is called in a sentence."""
    names = shown_names(entries)
    called = in_sentences(names.values())
    return {name: called[shown_name] for name, shown_name in names.items()}


def entry_key(entry: Entry) -> str:
    """Its name in a link."""
    return page.key_of(entry.line)


def result_of(entry: Entry) -> str:
    """What a line is: published, run here, and under what."""
    result = RESULTS.get(entry.source, entry.source)
    if entry.mark:
        result += f", {entry.mark}"
    if entry.protocol and entry.source != "frozen":
        result += f", {entry.protocol}"
    return result


def fold_sparse(ranking: Ranking) -> Ranking:
    """The ranking with the runs that have few of its tasks behind one line that opens; a run that
    the headline names stays.
    """
    few_tasks = len(ranking.shared) // FEW
    named = {best.name for best in ranking.best_runs}.union(
        *(best.rivals[:1] for best in ranking.best_runs)
    )
    tasks_of, names = {}, set()
    for entry in ranking.entries:
        is_sparse = entry.is_run and entry.rank is None and len(entry.cells) <= few_tasks
        if is_sparse and entry.name not in named:
            tasks_of[entry.line] = len(entry.cells)
            names.add(entry.name)
    if not tasks_of:
        return ranking
    models = "1 more model" if len(names) == 1 else f"{len(names)} more models"
    tasks = f"{_span(tasks_of.values())} of {len(ranking.shared)} tasks"
    label = f"{page.literal(ranking.title)}: show {models} run here, with {tasks}"
    key = f"few_{ranking.view.replace(' ', '_')}"
    if st.toggle(label, key=key, bind="query-params"):
        return ranking
    return ranking.of_entries(lambda entry: entry.line not in tasks_of)


def rows_of(ranking: Ranking, sort: str) -> list[Entry]:
    """The entries and the line of baselines: below the last that is above it, or at the end of what
    is sorted otherwise. sort: a column, ``mean`` for the order of the ranks.
    """
    rows = sorted(ranking.entries, key=partial(_sort_key, sort=sort))
    if not ranking.baseline:
        return rows
    position = len(rows)
    baseline_mean = ranking.baseline_mean
    mean = None
    if baseline_mean is not None:
        mean = Row(BASELINE, task="", metric="", mean=baseline_mean, source="baseline")
    if sort == "mean":
        position = sum(_is_above(entry, baseline_mean) for entry in ranking.ranked)
    baselines = Entry(
        model=BASELINE,
        variant="",
        source="baseline",
        protocol="",
        cells=ranking.baseline,
        mean=mean,
        rank=None,
        kinds={},
    )
    return [*rows[:position], baselines, *rows[position:]]


def _sort_key(entry: Entry, sort: str) -> tuple[bool, float, str]:
    """Entries without the value last."""
    if sort == "name":
        return False, 0.0, entry.name.casefold()
    if sort == "parameters":
        return entry.parameters is None, entry.parameters or 0, ""
    row = entry.cells.get(sort) or entry.kinds.get(sort)
    return row is None, 0.0 if row is None else -row.mean, ""


def _is_above(entry: Entry, baseline: float | None) -> bool:
    """Whether the mean is above that of the best baselines; where these have none, it is."""
    return entry.mean is not None and (baseline is None or entry.mean.mean > baseline)


def _cells(entry: Entry) -> Cells:
    """What is known of an entry: column -> cell."""
    cells = Cells(rank=entry.rank, result=result_of(entry))
    if entry.mean is not None:
        cells["mean"] = score_cell(entry.mean)
    for kind, row in entry.kinds.items():
        cells[kind] = percent_cell(row.mean)
    if entry.parameters:
        cells["size"] = ShownNumber(entry.parameters, millions(entry.parameters))
    counts = set()
    for task, row in entry.cells.items():
        cells[task] = score_cell(row)
        counts.add(row.n_seeds)
    counts.discard(0)
    if counts:
        cells["seeds"] = ShownNumber(min(counts), _span(counts))
    return cells


def _span(counts: Collection[int]) -> str:
    """``3–5``: the fewest and the most; one number where they are the same."""
    return "–".join(map(str, sorted({min(counts), max(counts)})))


def _link(ranking: Ranking, entry: Entry, name: str) -> str:
    """The page of a model; of the baselines that of a task, which names its own."""
    if entry.source == "baseline":
        return page.link_to("tasks", "task", ranking.columns[0].id, name)
    return page.link_to("models", "model", entry_key(entry), name)


def show_ranking(
    ranking: Ranking, sort: str, *, several: bool, possible: Mapping[str, str]
) -> None:
    """Rank, name and scores first, then what is known besides.

    several: other tables stand on the page.
    possible: name -> the ranks among the runs here that the comparison leaves.
    """
    title = f"**{page.literal(ranking.title)}**" if several else ""
    with st.container(key=f"bb_table_{ranking.view.replace(' ', '_')}", gap="xsmall"):
        about = " · ".join(filter(None, (title, _caption(ranking))))
        if about:
            st.markdown(about)
        if not ranking.entries:
            st.info(NO_MATCH)
            return
        rows = rows_of(ranking, sort)
        table = _table(ranking, rows, possible)
        picked = page.show_table(
            table,
            config=column_config(table, ranking.columns, ranking.average),
            shades=[SHADES.get(entry.source, HERE) for entry in rows],
            height=min(len(rows) + 1, MOST_ROWS) * ROW + 8,
            row_height=ROW,
            on_select="rerun",
            selection_mode="multi-row",
            key=f"rows_{ranking.view}",
            alt=f"Scores of all models: {ranking.title}",
        )
        # a filter may have shortened the table since they were picked
        positions = filter(range(len(rows)).__contains__, picked["selection"]["rows"])
        _offer_comparison(ranking, [rows[position] for position in positions])


def _kind_columns(ranking: Ranking) -> list[str]:
    """The kinds of task whose mean says more than other columns do.

    The mean of a kind with one task is that task's column; where every kind has one task, the
    means are the tasks themselves.
    """
    times = Counter(TASK_FAMILIES.get(info.type) for info in ranking.shared_columns)
    with_mean = set().union(*(entry.kinds for entry in ranking.entries))
    kinds = dict.fromkeys(TASK_FAMILIES.values())
    return [kind for kind in kinds if kind in with_mean and times[kind] > 1]


def _table(ranking: Ranking, rows: Sequence[Entry], possible: Mapping[str, str]) -> pd.DataFrame:
    """The cells of the rows; columns without any are left out."""
    names = shown_names(rows)
    lines = []
    for entry in rows:
        cells = _cells(entry)
        cells["model"] = _link(ranking, entry, names[entry.name])
        if entry.name in possible:
            span = possible[entry.name]
            cells["possible"] = ShownNumber(int(span.partition("–")[0]), span)
        lines.append(cells)
    columns = ["rank", "model", "mean", "possible", *_kind_columns(ranking)]
    columns += [*(info.id for info in ranking.columns), *LAST]
    # of another type, the texts of numbers would be lost
    return pd.DataFrame(lines, columns=columns, dtype=object).dropna(axis="columns", how="all")


def _offer_comparison(ranking: Ranking, picked: Sequence[Entry]) -> None:
    """A button that compares the picked models on the table's tasks that all of them have, where
    `compare` takes so many.
    """
    entries = [entry for entry in picked if entry.source != "baseline"]
    models = dict.fromkeys(entry.name for entry in entries)
    if not 2 <= len(models) <= MOST_COMPARED:
        return
    if st.button("Compare the picked models", type="primary", key=f"compare_{ranking.view}"):
        asked = {"models": list(models), "only": _tasks_of_all(ranking, entries)}
        st.switch_page(st.session_state["pages"]["Compare"], query_params=asked)


def _tasks_of_all(ranking: Ranking, entries: Sequence[Entry]) -> list[str]:
    """The tasks of the table of which every entry has a score."""
    tasks = []
    for info in ranking.columns:
        if all(info.id in entry.cells for entry in entries):
            tasks.append(info.id)
    return tasks


def _caption(ranking: Ranking) -> str:
    """What is ranked, said once: tasks where these are a part, protocols."""
    sentences = []
    if 0 < len(ranking.shared) < len(ranking.columns):
        sentences.append(f"Ranked over {page.literal(', '.join(ranking.shared))}.")
    if ranking.protocol:
        sentences.append(f"Ranked: {protocol_words(ranking.protocol)}.")
    unranked = {entry.protocol for entry in ranking.entries if entry.rank is None}
    others = unranked - {ranking.protocol, ""}
    if others:
        named = "; ".join(map(protocol_words, sorted(others)))
        sentences.append(f"Shown, not ranked: {named}.")
    if ranking.protocol in unranked:
        sentences.append("Without a rank: rows with a missing task.")
    return " ".join(sentences)


def protocol_words(protocol: str) -> str:
    """What a protocol is, as Markdown."""
    return PROTOCOLS.get(protocol, page.literal(protocol))


def show_cards(ranking: Ranking, sort: str) -> None:
    """The same rows for a narrow screen, the first twenty at first."""
    st.markdown(f"**{page.literal(ranking.title)}** {_caption(ranking)}")
    if not ranking.entries:
        st.info(NO_MATCH)
        return
    rows, key = rows_of(ranking, sort), f"cards_{ranking.view}"
    count = int(st.session_state.get(key, FIRST_CARDS))
    # of all rows: a name that is short among the first may be another's further down
    table = _table(ranking, rows, {})
    page.show_cards(
        table[:count],
        ranking.title,
        link="model",
        number="mean",
        kinds=[CARDS.get(entry.source, "bb-here") for entry in rows[:count]],
    )
    label = f"{count} of {len(rows)}, show more"
    if count < len(rows) and st.button(label, key=f"more_{ranking.view}"):
        st.session_state[key] = count + FIRST_CARDS
        st.rerun()
