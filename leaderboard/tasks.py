"""One task: what it is, every model's score on it, its labels, its known issues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from biobench.errors import UsageError
from biobench.reporting import charts
from biobench.reporting.entrants import line_name
from biobench.reporting.escape import plain
from biobench.reporting.frame import build, cells
from biobench.reporting.groups import RunGroup
from biobench.reporting.names import in_sentences
from biobench.reporting.results import Results
from biobench.reporting.row import Row
from biobench.reporting.slices import sliced
from biobench.reporting.tasks import TaskInfo
from biobench.schema.kind import get_metric
from leaderboard import curve, page
from leaderboard.board import ranked
from leaderboard.choices import choose
from leaderboard.lines import NOT_MODELS, TESTABLE, Line
from leaderboard.numbers import score_cell
from leaderboard.ranking import Entry, view_of, views
from leaderboard.table import CARDS, RESULTS, entry_key, result_of

MOST_LINES = 30
"""Models shown at first."""
RARE = 30
"""Gold below which a label's F1 hangs on a few mentions."""
PARTS = ("seen", "unseen")
"""Slices of the mentions that stand beside each other."""
RUN_HERE = ("frozen", *TESTABLE)
"""Sources of rows that come from runs or predictions in the folder."""
SliceRows = Mapping[Line, Mapping[str, Row]]
"""Line -> slice -> its row."""


def show() -> None:
    """Draw the view."""
    loaded = page.results()
    tasks = _listed_tasks(loaded)
    title = st.container()
    task = choose("Task", tasks, "task", from_data=True)
    info = loaded.infos[task]
    title.title(page.literal(plain(info.name)))
    groups = [group for group in loaded.groups if group.task == task]
    entries = []
    if view_of(info) in views(loaded):
        task_ranking = ranked(loaded, view_of(info), (task,))
        entries = [entry for entry in task_ranking.entries if task in entry.cells]
    slices = slice_rows(loaded, task)
    lines = [entry.line for entry in entries]
    lines += [group.line for group in groups]
    names = names_of(list(dict.fromkeys([*lines, *slices])))
    if entries:
        _ranked_scores(info, entries, task_ranking.baseline.get(task), names, slices)
        _seen_and_unseen(slices, names)
    curve.show(loaded, task)
    _card(info)
    if groups:
        with st.expander("Labels", expanded=True):
            _show_labels(groups[:MOST_LINES], names)
    readings = set()
    for value in loaded.published:
        if value.task == info.published_as:
            readings.add(f"{value.caption} {value.reading}")
    page.show_notes("Published numbers", sorted(readings))
    page.show_notes("Notes", build(loaded, "paper", tasks=[task]).notes)


def _listed_tasks(loaded: Results) -> list[str]:
    """Tasks on which a run here does more than guess, then the others with runs, then those with
    published values, then the rest of the suites.
    """
    ran = {group.task for group in loaded.groups}
    printed = {value.task for value in loaded.published}
    learnt = set()
    for row in cells(loaded, "paper").rows:
        if row.source in RUN_HERE and not row.guessing:
            learnt.add(row.task)

    def position(task: str) -> tuple[bool, ...]:
        is_printed = loaded.infos[task].published_as in printed
        return task not in learnt, task not in ran, not is_printed

    listed = [task for task, info in loaded.infos.items() if info.in_suite or task in ran]
    return sorted(listed, key=position)


def names_of(lines: Sequence[Line]) -> dict[Line, str]:
    """Line -> its one name on the page: model and protocol, and its source where another line has
    the same.
    """
    names, results = [], []
    for line in lines:
        model, variant, source = line
        names.append(page.key_of(line) if source in NOT_MODELS else line_name(model, variant))
        results.append(RESULTS.get(source, source))
    called = in_sentences(names)
    unlike = page.apart([called[name] for name in names], results)
    return dict(zip(lines, unlike, strict=True))


def _ranked_scores(
    info: TaskInfo,
    entries: list[Entry],
    baseline: Row | None,
    names: Mapping[Line, str],
    slices: SliceRows,
) -> None:
    """Every model's score on the task, the best first."""
    entries.sort(key=lambda entry: -entry.cells[info.id].mean)
    listed = entries[:MOST_LINES]
    if listed != entries and st.toggle(f"Show all {len(entries)}"):
        listed = entries
    words = ""
    if baseline is not None:
        words = f" Best baseline: {plain(baseline.model)}, {100 * baseline.mean:.1f}."
    st.caption(
        f"{get_metric(info.paper).words}, percent.{page.literal(words)} Runs under another "
        f"protocol have no rank."
    )
    _score_chart(info.id, listed, baseline, names)
    _score_table(info.id, listed, slices, names)


def slice_rows(loaded: Results, task: str) -> SliceRows:
    """The scores on seen and on unseen mentions of every line that has both."""
    groups = tuple(group for group in loaded.groups if group.task == task)
    of_line: dict[Line, dict[str, Row]] = defaultdict(dict)
    for slice_name in PARTS:
        with suppress(UsageError):  # no run here has scores on it
            slice_results = sliced(replace(loaded, groups=groups), slice_name)
            for row in build(slice_results, "paper", tasks=[task]).rows:
                of_line[row.line][slice_name] = row
    return {line: rows for line, rows in of_line.items() if len(rows) == len(PARTS)}


def _seen_and_unseen(slices: SliceRows, names: Mapping[Line, str]) -> None:
    if not slices:
        return
    st.subheader("Seen and unseen mentions")
    st.caption(
        "Seen: the training documents hold the mention's text. New mentions tell encoders apart; "
        "the training dictionary finds none of them."
    )
    best = sorted(slices.items(), key=lambda item: -item[1]["unseen"].mean)[:MOST_LINES]
    marks = []
    for line, rows in best:
        name = charts.cut(names[line])
        for slice_name, row in rows.items():
            marks.append({"model": name, "part": slice_name, "score": 100 * row.mean})
    chart = charts.parts(marks, "model", "part", page.ink())
    page.draw(chart, "Score on seen and on unseen mentions, by model")


def _score_chart(
    task: str, entries: Sequence[Entry], baseline: Row | None, names: Mapping[Line, str]
) -> None:
    """Every model's score and seeds, the best first."""
    named_rows = [(charts.cut(names[entry.line]), entry.cells[task]) for entry in entries]
    chart = charts.task_scores(named_rows, baseline, page.ink())
    page.draw(chart, f"Scores on {task} with intervals, the best first")
    st.caption(charts.TASK_SCORES)


def _score_table(
    task: str, entries: Sequence[Entry], slices: SliceRows, names: Mapping[Line, str]
) -> None:
    """The same in a table, and as cards for a narrow screen."""
    lines = []
    for entry in entries:
        row = entry.cells[task]
        line: dict[str, object] = {
            "#": entry.rank,
            "score": score_cell(row),
            "model": page.link_to("models", "model", entry_key(entry), names[entry.line]),
            "seeds": row.n_seeds or None,
            "result": result_of(entry),
        }
        for slice_name, slice_row in slices.get(entry.line, {}).items():
            line[slice_name] = 100 * slice_row.mean
        lines.append(line)
    table = pd.DataFrame(lines, dtype=object)
    title = f"Scores on {task}"
    with st.container(key="bb_table_scores"):
        page.show_table(
            table,
            config={"model": st.column_config.LinkColumn(display_text=page.LINK, width="large")},
            alt=title,
        )
    kinds = [CARDS.get(entry.source, "bb-here") for entry in entries]
    with st.container(key="bb_cards_scores"):
        page.show_cards(table, title, link="model", number="score", kinds=kinds)


def _card(info: TaskInfo) -> None:
    spec = info.spec
    about = {"language": info.language, "type": info.type.replace("_", " "), "corpus": info.corpus}
    if spec is None:
        st.caption(
            "This task does not ship with BioBench; its records are all that is known of it."
        )
        page.facts(_literal_facts(about))
        return
    about |= {"access": spec.access, "licence": spec.licence, "citation": spec.citation}
    page.facts(_literal_facts(about) | {"homepage": page.link(spec.homepage)})
    page.show_notes("Known issues and choices", list(spec.notes))
    deviations = []
    for deviation in spec.deviations:
        deviations.append(
            f"{deviation.aspect}: here {deviation.here}; in the publication {deviation.compared}"
        )
    page.show_notes("Deviations from the compared protocol", deviations)
    if spec.counts:
        with st.expander("Counts"):
            counts = pd.DataFrame(spec.counts, dtype=object)
            st.dataframe(counts.where(counts.notna(), "–"))


def _literal_facts(about: Mapping[str, str]) -> dict[str, str]:
    return {name: page.literal(" ".join(value.split())) for name, value in about.items()}


def _show_labels(groups: Sequence[RunGroup], names: Mapping[Line, str]) -> None:
    """F1 of each label as a chart of the first models here, and as a table of all."""
    table: dict[str, dict[str, Any]] = {}
    columns = ["label", "support in test"]
    for group in groups:
        column = names[group.line]
        # a model may have the name of one of the first columns, and two models one name in print
        while column in columns:
            column += " "
        columns.append(column)
        for label, (support, f1) in group.labels().items():
            row = table.setdefault(label, {"label": plain(label), "support in test": support})
            row[column] = 100 * f1
    marks = []
    for row in list(table.values())[:MOST_LINES]:
        rare = ", rare" if row["support in test"] < RARE else ""
        label = f"{row['label']} ({row['support in test']}{rare})"
        for column in columns[2 : 2 + len(charts.COLOURS)]:
            if column in row:
                marks.append({"label": label, "model": column, "score": row[column]})
    if marks:
        page.draw(charts.parts(marks, "label", "model", page.ink()), "F1 of each label, by model")
    about = "F1 of each label"
    if len(columns) - 2 > len(charts.COLOURS):
        about += f", of the first {len(charts.COLOURS)} of {len(columns) - 2} models"
    st.caption(
        f"{about}, mean over seeds, in percent; in brackets its gold in the test documents, rare "
        f"below {RARE}. The table has all models."
    )
    page.show_table(pd.DataFrame(table.values(), columns=columns))
