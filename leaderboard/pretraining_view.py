"""Pretraining runs beside each other: loss, learning rate, throughput, CKA, ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_table
from biobench.report.details.mechanism import cka_chart
from biobench.report.details.pretraining import Pretraining, TrainingRun
from biobench.report.render import plain_note
from biobench.report.rows import AverageName
from leaderboard.draw import draw, show_table
from leaderboard.folder import inside, pretraining
from leaderboard.launch import is_public
from leaderboard.state import SEPARATOR, choose, several_from_link, start, switch, write_link
from leaderboard.table import literal

MOST = len(charts.COLOURS)


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here."""
    del average
    st.title(words["pretraining_view"])
    trained = pretraining()
    if trained.findings:
        with st.expander(f"{words['findings']} ({len(trained.findings)})"):
            for finding in trained.findings:
                st.text(f"{plain_note(inside(str(finding)))}\n→ {plain_note(inside(finding.hint))}")
    if not trained.runs and not trained.analyses:
        st.info(words["no_pretraining"])
        if not is_public():
            st.code("biobench leaderboard --pretraining-dir FOLDER", language="bash")
        return
    if trained.runs:
        runs = _chosen(trained.runs, words)
        _charts(runs, words)
        _ledgers(trained.runs, words)
    if trained.analyses:
        _cka(trained, words)


def _chosen(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> list[TrainingRun]:
    """The runs to draw; at first a detour and its twin where the folder holds two runs or more."""
    names = [run.name for run in runs]
    linked = several_from_link("runs", names)
    start("runs", (linked or _first(names))[:MOST])
    st.session_state["runs"] = [n for n in st.session_state["runs"] if n in names]
    chosen = st.multiselect(words["choose_runs"], names, key="runs", max_selections=MOST)
    write_link("runs", SEPARATOR.join(chosen))
    return [run for run in runs if run.name in chosen]


def _first(names: Sequence[str]) -> list[str]:
    """Names that end in detour and twin, else the first two."""
    pair = [next((n for n in names if n.rsplit("/", 1)[-1] == word), None) for word in ("detour", "twin")]
    return [n for n in pair if n] if all(pair) else list(names[:2])


def _charts(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> None:
    if not runs:
        st.info(words["pick_runs"])
        return
    st.header(words["loss_curves"], anchor=False)
    draw(charts.losses(runs, words), words["alt_curves"])
    st.caption(words["loss_help"])
    skipped = max(run.skipped for run in runs)
    if skipped:
        st.caption(words["thinned"].format(skipped + 1))
    left, right = st.columns(2)
    for column, field, format in ((left, "learning_rate", ".1e"), (right, "tokens_per_second", "~s")):
        chart = charts.over_tokens(runs, field, format, words)
        if chart is not None:
            column.header(words[field].capitalize(), anchor=False)
            draw(chart, f"{words[field]}: {words['alt_curves']}", column)
    with st.expander(words["details"]):
        show_table(_summary(runs, words))


def _summary(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> pd.DataFrame:
    """The last line of each phase and event: the charts' ends as numbers."""
    rows: list[dict[str, Any]] = []
    for run in runs:
        last = {(p.phase, p.event): p for p in run.points}
        rows += [
            {
                words["training_run"]: run.name,
                words["phase"]: phase,
                words["event"]: words[event],
                words["tokens"]: f"{p.tokens:,}",
                words["loss"]: f"{p.loss:.4f}",
                words["learning_rate"]: "–" if p.learning_rate is None else f"{p.learning_rate:.3g}",
                words["tokens_per_second"]: "–" if p.tokens_per_second is None else f"{round(p.tokens_per_second):,}",
            }
            for (phase, event), p in last.items()
        ]
    return pd.DataFrame(rows)


def _ledgers(runs: Sequence[TrainingRun], words: Mapping[str, str]) -> None:
    with_ledger = {run.name: run.ledger for run in runs if run.ledger is not None}
    if len(with_ledger) < 2:
        return
    st.header(words["ledgers"], anchor=False)
    names = list(with_ledger)
    first = _first(names)
    left, right = st.columns(2)
    with left:
        one = choose("A", sorted(names, key=lambda n: n != first[0]), "ledger_a")
    with right:
        other = choose("B", sorted((n for n in names if n != one), key=lambda n: n != first[1]), "ledger_b")
    try:
        table = ledger_table(with_ledger[one], with_ledger[other])
    except StoreError as error:
        # the other parts of the page do without it
        st.warning(literal(plain_note(inside(error.what))))
        return
    (st.success if table.matched else st.warning)(literal(plain_note(table.verdict)))
    only = switch(st.container(), words["only_differing"], "only_differing")
    rows = [
        {
            words["quantity"]: name,
            "A": plain_note(a),
            "B": plain_note(b),
            words["equal"]: words["yes"] if a == b else words["no_binding"] if binding else words["no_free"],
        }
        for name, a, b, binding in table.rows
        if not only or a != b
    ]
    show_table(pd.DataFrame(rows))


def _cka(trained: Pretraining, words: Mapping[str, str]) -> None:
    st.header(words["cka"], anchor=False)
    names = {a.name: a for a in trained.analyses}
    left, right = st.columns(2)
    with left:
        chosen = names[choose(words["analysis"], list(names), "analysis")]
    there = [e for e in ("debiased", "biased") if any(x["estimator"] == e for x in chosen.data["lines"])]
    if not there:
        st.info(words["no_lines"])
        return
    with right:
        estimator = choose(words["estimator"], there, "estimator")
    st.text(f"A: {chosen.pair[0]}\nB: {chosen.pair[1]}")
    draw(cka_chart(chosen.data, estimator=estimator), words["cka"], width="content")
    st.caption(words["cka_help"])
    lines = [x for x in chosen.data["lines"] if x["estimator"] == estimator]
    with st.expander(words["details"]):
        show_table(pd.DataFrame([_cka_row(x, words) for x in lines]))


def _cka_row(line: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, str]:
    def shown(value: Mapping[str, float | None] | None, scale: float) -> str:
        if value is None:
            return "–"
        middle, *ends = (
            "…" if value[k] is None else f"{scale * (value[k] or 0):.2f}" for k in ("value", "low", "high")
        )
        return f"{middle} [{' … '.join(ends)}]"

    return {
        words["layer"]: line["where"],
        words["divergence"]: shown(line["divergence"], 100),
        words["seed_noise"]: shown(line["noise"], 100),
        words["ratio"]: shown(line["ratio"], 1),
    }
