"""One model: what it is, its scores beside the best, its seeds, its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.report.conditions import Condition, condition_of, lengths_read
from biobench.report.details.ledgers import ledger_facts
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.render import plain_note
from biobench.report.rows import AverageName, Report, Row
from biobench.report.table import build
from biobench.report.wide import percent
from leaderboard import charts
from leaderboard.folder import made_by, results
from leaderboard.needle_view import show_maps
from leaderboard.state import SEPARATOR, choose
from leaderboard.table import literal


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    held = results()
    report = build(held, average)
    lines = {SEPARATOR.join(row.line): row.line for row in report.rows if row.source not in ("ceiling", "floor")}
    if not lines:
        st.info(words["no_model"])
        return
    names = {
        key: plain(f"{model} [{variant}]" if variant else model) + f" · {words[source]}"
        for key, (model, variant, source) in lines.items()
    }
    order = sorted(lines, key=lambda k: (lines[k][2] != "run", names[k].casefold()))
    line = lines[choose(words["choose_model"], order, "model", names)]
    rows = [row for row in report.rows if row.line == line]
    groups = [g for g in held.groups if (g.model, g.variant, g.source) == line]
    st.title(literal(plain(line[0])))
    if groups:
        _card(groups, words)
    else:
        st.caption(words["published_only"])
    _averages(report, line, words)
    _ledger(groups, words)
    st.dataframe(_table(report, rows, words), hide_index=True, column_config=_formats(words))
    chart = charts.seeds(rows, "task", words)
    if chart is not None:
        st.altair_chart(chart, width="stretch", alt=words["alt_seeds"])
        st.caption(words["points"])
    needles = [g for g in groups if g.briefs[0].type == "needle"]
    if needles:
        st.subheader(words["needle"], anchor=False)
        st.caption(words["needle_help"])
        show_maps(needles, words)
    _curves(groups, rows, words)


def _card(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    record = groups[0].records[0]
    made = sorted({f"BioBench {r.provenance.biobench}, {r.provenance.device}" for g in groups for r in g.records})
    facts = {
        words["revision"]: record.model.revision or "–",
        words["architecture"]: record.model.architecture,
        words["parameters"]: f"{record.model.parameters:,}",
        words["window"]: ", ".join(str(w) for w in sorted({g.records[0].windows.max_length for g in groups})),
        words["weights"]: record.model.hash[:16],
        words["made_with"]: "; ".join(made),
    }
    st.table(
        pd.DataFrame([(k, literal(plain(v))) for k, v in facts.items()], columns=["", " "]).set_index(""),
        hide_header=True,
    )


def _ledger(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    """How the model was made, where a run of the pretraining folder made it."""
    run = made_by(groups)
    if run is None or run.ledger is None:
        return
    with st.expander(f"{words['ledger']}: {literal(plain(run.name))}"):
        try:
            held = ledger_facts(run.ledger)
        except StoreError as error:
            # the other parts of the page do without it
            st.warning(literal(plain_note(error.what)))
            return
        facts = pd.DataFrame([(k, literal(plain(v))) for k, v in held.facts], columns=["", " "])
        st.table(facts.set_index(""), hide_header=True)
        phases = [{k: plain(v) for k, v in phase} for phase in held.phases]
        st.dataframe(pd.DataFrame(phases), hide_index=True)
        st.caption(words["ledger_help"])


def _averages(report: Report, line: tuple[str, str, str], words: Mapping[str, str]) -> None:
    own = [row for row in report.averages if row.line == line]
    for column, row in zip(st.columns(max(len(own), 1)), own, strict=False):
        column.metric(
            f"{words['suite_average']} · {words.get(row.suite, row.suite)}", percent(row, failed=words["failed_count"])
        )


def _table(report: Report, rows: Sequence[Row], words: Mapping[str, str]) -> pd.DataFrame:
    alike = _conditions(report)
    best: dict[tuple[str, Alike | None], Row] = {}
    floors: dict[str, Row] = {}
    for row in report.rows:
        if row.source == "floor" and (row.task not in floors or row.mean > floors[row.task].mean):
            floors[row.task] = row
        if row.source in ("ceiling", "floor"):
            continue
        for condition in alike(row):
            at = row.task, condition
            if at not in best or row.mean > best[at].mean:
                best[at] = row
    rivals = [best[row.task, alike(row)[0]] for row in rows]
    return pd.DataFrame(
        [
            {
                words["task"]: row.task,
                words["average"]: row.metric,
                words["score"]: percent(row, failed=words["failed_count"]),
                words["best"]: f"{percent(rival, margin=False)} ({plain(line_name(rival.model, rival.variant))})",
                words["gap"]: round(100 * (rival.mean - row.mean), 1),
                words["floor"]: _floor(floors.get(row.task)),
                words["seeds"]: row.n_seeds,
                words["seconds"]: None if row.seconds is None else round(row.seconds, 1),
                words["memory"]: None if row.peak_memory_bytes is None else round(row.peak_memory_bytes / 1e9, 2),
                words["cut"]: row.truncated_documents,
                words["lost"]: row.lost_gold,
            }
            for row, rival in zip(rows, rivals, strict=True)
        ]
    )


Alike = tuple[Condition, tuple[int, ...]]
"""What rows share that are held against each other: the runs' condition, and the lengths that a needle run reads."""


def _conditions(report: Report) -> Callable[[Row], Sequence[Alike | None]]:
    """Under which conditions a row may be compared with others, its own first.

    Limited runs and needle runs of another window saw other documents, overridden ones another protocol; they are
    held against their like. Printed scores stand beside full runs of the shipped protocol.
    """
    held = {(g.model, g.variant, g.source, g.task): (condition_of(g), lengths_read(g.briefs[0])) for g in report.groups}
    specs = {info.id: set(info.hashes.values()) for info in report.columns}
    full: dict[str, set[Alike]] = {}
    for (*_, task), own in held.items():
        (spec, _, limit, track, _, split), _ = own
        if limit is None and track == "fixed" and split == "test" and spec in specs.get(task, ()):
            full.setdefault(task, set()).add(own)

    def alike(row: Row) -> Sequence[Alike | None]:
        own = held.get((*row.line, row.task))
        shipped = full.get(row.task, set())
        return [None, *shipped] if own is None else [own, None] if own in shipped else [own]

    return alike


def _floor(row: Row | None) -> str:
    """The best of the policies that do not read as an encoder does, where the gate measured some."""
    return "–" if row is None else f"{percent(row, margin=False)} ({plain(row.model)})"


def _formats(words: Mapping[str, str]) -> dict[str, Any]:
    """Numbers of a column with the same digits, texts of numbers to the right."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        words["score"]: text(alignment="right"),
        words["gap"]: number(format="%.1f"),
        words["seconds"]: number(format="%.1f"),
        words["memory"]: number(format="%.2f"),
    }


def _curves(groups: Sequence[RunGroup], rows: Sequence[Row], words: Mapping[str, str]) -> None:
    tasks = [g.task for g in groups]
    if not tasks:
        return
    st.subheader(words["curves"])
    task = choose(words["choose_task"], tasks, "curve_task")
    metric = next((r.metric for r in rows if r.task == task), "macro_f1")
    chart = charts.curves(next(g for g in groups if g.task == task).records, metric, words)
    if chart is not None:
        st.altair_chart(chart, width="stretch", alt=words["alt_curves"])
