"""Pretraining: runs here (loss, rates, ledgers, CKA), and studies here with the experiments that
papers published.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import compress
from typing import Any

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.reporting import charts
from biobench.reporting.details.ledgers import ledger_table
from biobench.reporting.details.mechanism import cka_chart
from biobench.reporting.details.pretraining import Pretraining, StudyTable, TrainingRun
from biobench.reporting.escape import plain
from biobench.reporting.literature.experiments import Experiment
from biobench.reporting.printers import plain_note
from leaderboard.choices import choose, choose_several
from leaderboard.launch import is_public
from leaderboard.numbers import ShownNumber
from leaderboard.page import (
    draw,
    ink,
    link,
    literal,
    pretraining,
    results,
    show_findings,
    show_table,
    text,
)

MOST = len(charts.COLOURS)


def show() -> None:
    """Draw the view: experiments first where there are no runs."""
    st.title("Pretraining")
    st.caption(
        "Detour: the model learns for a while to predict the next word (CLM), then to fill in "
        "hidden words (MLM) while the learning rate falls (decay). Twin: the same training with "
        "MLM throughout."
    )
    trained = pretraining()
    show_findings(trained.findings, "Findings")
    here, experiments = st.tabs(
        ["Runs here", "Experiments"], default=None if trained.runs else "Experiments"
    )
    with here:
        if trained.runs:
            _show_runs(trained.runs)
        if trained.analyses:
            _cka(trained)
        if not trained.runs and not trained.analyses:
            st.info(
                "There are no pretraining runs here. Put them below “pretraining” in the results "
                "folder."
            )
            if not is_public():
                st.code("biobench leaderboard --pretraining-dir FOLDER", language="bash")
    with experiments:
        _studies(trained.studies)
        _published()


def _show_runs(runs: Sequence[TrainingRun]) -> None:
    """Curves of the chosen ones, and two ledgers side by side."""
    names = [run.name for run in runs]
    chosen = choose_several(
        "Up to six runs",
        names,
        "runs",
        _likely_pair(names),
        from_data=True,
        max_selections=MOST,
    )
    _charts([run for run in runs if run.name in chosen])
    _ledgers(runs)


def _likely_pair(names: Sequence[str]) -> list[str]:
    """The first of the names that end in detour and in twin, else the first two."""
    pair = []
    for ending in ("detour", "twin"):
        pair += [name for name in names if name.endswith(ending)][:1]
    return pair if len(pair) == 2 else list(names[:2])


def _charts(runs: Sequence[TrainingRun]) -> None:
    if not runs:
        st.info("Choose at least one.")
        return
    fields = (
        ("loss", "Loss", "nats a target", ".1~f"),
        ("learning_rate", "Learning rate", "learning rate", ".1e"),
        ("tokens_per_second", "Tokens a second", "tokens a second", "~s"),
    )
    for field, title, unit, format in fields:
        chart = charts.over_tokens(runs, field, unit, format)
        if chart is not None:
            st.header(title, anchor=False)
            draw(chart, f"{title}: curves over the training")
    st.caption(
        "Lines: training, dashed where a phase begins; diamonds: held-out windows. Objectives "
        "differ in what they predict: losses compare within one objective only. Long curves are "
        "thinned."
    )


def _ledgers(runs: Sequence[TrainingRun]) -> None:
    with_ledger = {run.name: run.ledger for run in runs if run.ledger is not None}
    if len(with_ledger) < 2:
        return
    st.header("Ledgers side by side", anchor=False)
    detour, twin = _likely_pair(list(with_ledger))
    column_a, column_b = st.columns(2)
    options = list(with_ledger)
    with column_a:
        detour_first = sorted(options, key=lambda name: name != detour)
        name_a = choose("A", detour_first, "ledger_a", from_data=True)
    options.remove(name_a)
    with column_b:
        twin_first = sorted(options, key=lambda name: name != twin)
        name_b = choose("B", twin_first, "ledger_b", from_data=True)
    try:
        table = ledger_table(with_ledger[name_a], with_ledger[name_b])
    except StoreError as error:
        # the other parts of the page do without it
        st.warning(text(error.what))
        return
    show_verdict = st.success if table.matched else st.warning
    show_verdict(literal(plain_note(table.verdict)))
    rows = []
    for name, a, b, binding in table.rows:
        equal = "no: twins must agree" if binding else "no, may differ"
        if a == b:
            equal = "yes"
        rows.append({"quantity": name, "A": plain_note(a), "B": plain_note(b), "equal": equal})
    show_table(rows)


def _cka(trained: Pretraining) -> None:
    st.header("Divergence of representations (1 − CKA)", anchor=False)
    analyses = {analysis.name: analysis for analysis in trained.analyses}
    chosen = analyses[choose("Analysis", list(analyses), "analysis", from_data=True)]
    # the debiased one where it was computed
    estimator = max((line.estimator for line in chosen.lines), default=None)
    if estimator is None:
        st.info("This analysis holds no layers.")
        return
    st.text(f"A: {chosen.pair[0]}\nB: {chosen.pair[1]}")
    draw(
        cka_chart(chosen.data, estimator=estimator),
        f"Divergence of representations by layer, {estimator} estimator",
        width="content",
    )
    st.caption(
        f"The {estimator} estimator. Bars: 95% jackknife intervals over texts. Seed noise: two "
        "runs that differ by the training seed alone."
    )


def _studies(studies: Sequence[StudyTable]) -> None:
    """All studies made here in one forest plot, and a folded table each: mean scores of the arms
    and their differences to the reference.
    """
    if not studies:
        return
    st.header("Studies here", anchor=False)
    ordered = with_replications(studies)
    differences, questions = [], []
    for study in ordered:
        differences += _forest_rows(study)
        sentences = [f"{study.title}.", *replication_sentences(study, studies)]
        questions.append(f"- {literal(' '.join(sentences))}")
    st.markdown("\n".join(questions))
    if differences:
        draw(
            charts.differences(differences, "arm", ink()),
            "Difference of each arm to its study's reference, with its interval",
        )
        about = (
            "Dot: difference to the study's reference, in points. Line: interval, corrected (Holm) "
            "for the differences of its own study, not for those of the other studies. Filled: "
            "this interval leaves out zero. ↳: the study repeats the one above."
        )
        if any(row["low"] is None for row in differences):
            about += " No line: too few pretraining seeds for an interval."
        st.caption(about)
    for study in ordered:
        with st.expander(literal(study.file)):
            _study_table(study)


def with_replications(studies: Sequence[StudyTable]) -> list[StudyTable]:
    """The largest first, each followed by those that repeat it."""
    sizes = {}
    for study in studies:
        sizes[study.file] = sum(row.budget * len(row.scores) for row in study.rows)

    def position(study: StudyTable) -> tuple[int, str, bool]:
        original = study.replicates if study.replicates in sizes else study.file
        return -sizes[original], original, study.file != original

    return sorted(studies, key=position)


def _points(share: float | None) -> float | None:
    """In points, or percent."""
    return None if share is None else 100 * share


def _forest_rows(study: StudyTable) -> list[dict[str, object]]:
    start = "↳ " if study.replicates else ""
    rows: list[dict[str, object]] = []
    for row in study.rows:
        if row.difference is not None:
            rows.append(
                {
                    "arm": plain(f"{start}{study.file}: {row.arm}, {row.budget / 1e6:,.1f} M"),
                    "difference": _points(row.difference),
                    "low": _points(row.low),
                    "high": _points(row.high),
                }
            )
    return rows


def replication_sentences(study: StudyTable, studies: Sequence[StudyTable]) -> list[str]:
    """What became of the study's differences in those that repeat it."""
    originals = {(row.arm, row.budget): row.difference for row in study.rows}
    sentences = []
    for repeat in studies:
        if repeat.replicates != study.file:
            continue
        for row in repeat.rows:
            original = originals.get((row.arm, row.budget))
            if original is None or row.difference is None:
                continue
            outcome = "did not repeat"
            if row.shown and original * row.difference > 0:
                outcome = "did repeat"
            sentences.append(
                f"{study.file}, {row.arm}: repeated with {len(row.scores)} new seeds "
                f"({repeat.file}): {outcome}."
            )
    return sentences


def _study_table(study: StudyTable) -> None:
    rows = []
    for row in study.rows:
        cells: dict[str, object] = {
            "arm": plain(row.arm),
            "tokens": ShownNumber(row.budget, f"{row.budget / 1e6:,.1f} M"),
            "pretraining seeds": _seeds(row.scores),
            "mean, %": _points(row.mean),
            "difference, points": None,
            "interval": row.spread,
            "level": None,
        }
        if row.difference is not None:
            difference = 100 * row.difference
            cells["difference, points"] = ShownNumber(difference, f"{difference:+.1f}")
        if row.low is not None:
            level = 100 * (row.level or 0.95)
            cells["level"] = ShownNumber(level, f"{level:.4g}%")
        rows.append(cells)
    show_table(rows, alt=f"Arms of the study {study.file}")
    noise = "pretraining seeds"
    if any(row.test_sets for row in study.rows):
        noise += " and test sets"
    tasks = ""
    if study.tasks:
        tasks = literal(f"Tasks scored: {', '.join(study.tasks)}. ")
    st.caption(
        f"{tasks}Interval over {noise}, at the level at which Holm's correction for the "
        "differences of this table, not of other studies, decided."
    )


def _seeds(scores: Collection[str]) -> ShownNumber:
    """How many, and which: two studies of one seed have that pretraining run in common."""
    return ShownNumber(len(scores), f"{len(scores)} ({', '.join(map(plain, scores))})")


def _published() -> None:
    """One table an experiment of the chosen publication, each with what of ours it compares
    with."""
    publications = {p.source: p for p in results().experiments}
    if not publications:
        st.info("There are no published experiments here.")
        return
    st.header("Published experiments", anchor=False)
    source = choose("Publication", list(publications), "publication", from_data=True)
    publication = publications[source]
    st.caption(f"{literal(publication.citation.strip())} {link(publication.url)}")
    for experiment in publication.experiments:
        st.subheader(literal(experiment.title), anchor=False)
        chart = _experiment_chart(experiment)
        if chart is not None:
            draw(chart, f"{experiment.title}: scores as printed")
        with st.expander("Table", expanded=chart is None):
            st.table(_frame(experiment))
            st.caption(literal(" ".join(publication.below(experiment))))
    for line in publication.absent:
        st.caption(literal(line))


def _experiment_chart(experiment: Experiment) -> Any:
    """Curves over columns that are steps of one quantity, dots where one column holds scores; None
    for tables of another kind.
    """
    printed = [column.unit == "percent" for column in experiment.columns]
    columns = list(compress(experiment.columns, printed))
    points = []
    for line in experiment.lines:
        for column, value in zip(columns, compress(line.values, printed), strict=True):
            if value is not None:
                point = {"condition": plain(line.name), "step": plain(column.name), "score": value}
                points.append(point | {"result": "published", "low": None, "high": None})
    if len(columns) == 1:
        return charts.scores(points, "condition", title=f"{columns[0].name}, %", ink=ink())
    if columns and all(column.name[0].isdigit() for column in columns):
        return charts.curves(points, "condition")
    return None


def _frame(experiment: Experiment) -> pd.DataFrame:
    """The cells as printed."""
    cells = pd.DataFrame(
        map(experiment.cells, experiment.lines),
        index=[line.name for line in experiment.lines],
        columns=list(experiment.headings),
    )
    return cells.map(literal).rename(index=literal, columns=literal)
