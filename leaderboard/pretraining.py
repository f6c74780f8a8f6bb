"""Pretraining: runs here (loss, rates, ledgers, CKA), and studies here with the experiments that
papers published.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_table
from biobench.report.details.mechanism import cka_chart
from biobench.report.details.pretraining import Pretraining, StudyTable, TrainingRun
from biobench.report.literature.experiments import Experiment
from biobench.report.printers import plain_note
from leaderboard.launch import is_public
from leaderboard.page import (
    choose,
    choose_several,
    draw,
    link,
    literal,
    pretraining,
    results,
    show_table,
    text,
)

MOST = len(charts.COLOURS)


def show() -> None:
    """Draw the view: experiments first where there are no runs."""
    st.title("Pretraining")
    trained = pretraining()
    if trained.findings:
        with st.expander(f"Findings ({len(trained.findings)})"):
            for finding in trained.findings:
                st.markdown(f"{text(finding)}\n→ {text(finding.hint)}")
    here, experiments = st.tabs(
        ["Runs here", "Experiments"], default=None if trained.runs else "Experiments"
    )
    with here:
        if not trained.runs and not trained.analyses:
            st.info(
                "There are no pretraining runs here. Put them below “pretraining” in the results "
                "folder."
            )
            if not is_public():
                st.code("biobench leaderboard --pretraining-dir FOLDER", language="bash")
        if trained.runs:
            names = [run.name for run in trained.runs]
            chosen = choose_several(
                "Up to six runs", names, "runs", _first(names), max_selections=MOST
            )
            _charts([run for run in trained.runs if run.name in chosen])
            _ledgers(trained.runs)
        if trained.analyses:
            _cka(trained)
    with experiments:
        _studies(trained.studies)
        _published()


def _first(names: Sequence[str]) -> list[str]:
    """Names that end in detour and twin, else the first two."""
    pair = [
        next((n for n in names if n.rsplit("/", 1)[-1].endswith(word)), None)
        for word in ("detour", "twin")
    ]
    return [n for n in pair if n] if all(pair) else list(names[:2])


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
        "Lines: training; diamonds: held-out windows. Objectives differ in what they predict: "
        "losses compare within "
        "one objective only."
    )
    skipped = max(run.skipped for run in runs)
    if skipped:
        st.caption(f"Long curves are thinned to every {skipped + 1}th point.")


def _ledgers(runs: Sequence[TrainingRun]) -> None:
    with_ledger = {run.name: run.ledger for run in runs if run.ledger is not None}
    if len(with_ledger) < 2:
        return
    st.header("Ledgers side by side", anchor=False)
    first = _first(list(with_ledger))
    left, right = st.columns(2)
    with left:
        one = choose("A", sorted(with_ledger, key=lambda n: n != first[0]), "ledger_a")
    with right:
        other = choose(
            "B",
            sorted((n for n in with_ledger if n != one), key=lambda n: n != first[1]),
            "ledger_b",
        )
    try:
        table = ledger_table(with_ledger[one], with_ledger[other])
    except StoreError as error:
        # the other parts of the page do without it
        st.warning(text(error.what))
        return
    (st.success if table.matched else st.warning)(literal(plain_note(table.verdict)))
    only = st.toggle("Only what differs", key="only_differing", bind="query-params")
    rows = [
        {
            "quantity": name,
            "A": plain_note(a),
            "B": plain_note(b),
            "equal": "yes" if a == b else "no: twins must agree" if binding else "no, may differ",
        }
        for name, a, b, binding in table.rows
        if not only or a != b
    ]
    show_table(rows)


def _cka(trained: Pretraining) -> None:
    st.header("Divergence of representations (1 − CKA)", anchor=False)
    names = {a.name: a for a in trained.analyses}
    left, right = st.columns(2)
    with left:
        chosen = names[choose("Analysis", list(names), "analysis")]
    present = [
        e for e in ("debiased", "biased") if any(x["estimator"] == e for x in chosen.data["lines"])
    ]
    if not present:
        st.info("This analysis holds no layers.")
        return
    with right:
        estimator = choose("Estimator", present, "estimator")
    st.text(f"A: {chosen.pair[0]}\nB: {chosen.pair[1]}")
    draw(
        cka_chart(chosen.data, estimator=estimator),
        "Divergence of representations by layer",
        width="content",
    )
    st.caption(
        "Bars: 95% jackknife intervals over texts. Seed noise: two runs that differ by the "
        "training seed alone."
    )


def _studies(studies: Sequence[StudyTable]) -> None:
    """One table a study that was made here: mean scores of the arms and their differences to the
    reference.
    """
    if studies:
        st.header("Studies here", anchor=False)
    for study in sorted(
        studies, key=lambda s: -sum(r.budget * len(r.scores) for r in s.rows)
    ):  # the largest first
        st.subheader(literal(study.study[:1].upper() + study.study[1:]), anchor=False)
        rows = [
            {
                "arm": literal(row.arm),
                "tokens": f"{row.budget / 1e6:,.1f} M",
                "pretraining seeds": str(len(row.scores)),
                "mean, %": "–" if row.mean is None else f"{100 * row.mean:.1f}",
                "difference, points": "–"
                if row.difference is None
                else f"{100 * row.difference:+.1f}",
                "interval": row.spread,
                "level": f"{100 * (row.level or 0.95):.4g}%" if row.low is not None else "–",
            }
            for row in study.rows
        ]
        st.table(pd.DataFrame(rows).set_index("arm"))
        over = "pretraining seeds"
        if any(row.test_sets for row in study.rows):
            over += " and test sets"
        st.caption(f"Interval over {over}, at the level of a correction for all rows.")


def _published() -> None:
    """One table an experiment of the chosen publication, each with what of ours it compares
    with."""
    publications = {p.source: p for p in results().experiments}
    if not publications:
        st.info("There are no published experiments here.")
        return
    st.header("Published experiments", anchor=False)
    publication = publications[choose("Publication", list(publications), "publication")]
    st.caption(f"{literal(publication.citation.strip())} {link(publication.url)}")
    for experiment in publication.experiments:
        st.subheader(literal(experiment.title), anchor=False)
        st.table(_frame(experiment))
        st.caption(literal(" ".join(publication.below(experiment))))
    for line in publication.absent:
        st.caption(literal(line))


def _frame(experiment: Experiment) -> pd.DataFrame:
    """The cells as printed."""
    return pd.DataFrame(
        [[literal(cell) for cell in experiment.cells(line)] for line in experiment.lines],
        index=[literal(line.name) for line in experiment.lines],
        columns=[literal(heading) for heading in experiment.headings],
    )
