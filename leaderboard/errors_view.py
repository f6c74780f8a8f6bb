"""One run's predictions, document by document, alone or against another's; with the text where it may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import BioBenchError
from biobench.report.details.marked import to_html
from biobench.report.details.mistakes import (
    KINDS,
    SIDES,
    JudgedDocument,
    Kind,
    Side,
    judge,
    lay_beside,
    tally,
    tally_beside,
)
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.names import shorten
from biobench.report.row import AverageName
from biobench.schema.record import RunRecord
from leaderboard.draw import show_table
from leaderboard.folder import results, say_no_runs
from leaderboard.launch import is_public, own_tasks
from leaderboard.state import choose, list_from_link, start, write_link
from leaderboard.table import key_of, titles_of

PAGE = 10
"""Documents shown at a time."""
ANY = ""
"""Instead of a label: every one."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here."""
    del average
    st.title(words["errors_view"])
    loaded = results()
    if not loaded.groups:
        say_no_runs(words)
        return
    lines = titles_of([key_of(g) for g in loaded.groups], words)
    left, middle, right = st.columns(3)
    with left:
        line = choose(words["choose_model"], sorted(lines), "errors_model", lines)
    group_of = {g.task: g for g in loaded.groups if key_of(g) == line}
    with middle:
        task = choose(words["choose_task"], sorted(group_of), "errors_task")
    group = group_of[task]
    with right:
        seed = choose(words["choose_seed"], [str(s) for s in group.seeds], "errors_seed")
    record = next(r for r in group.records if str(r.seed) == seed)
    if record.redacted:
        st.info(words["withheld"])
        return
    judged = _judged(record.predictions_sha256, group, record)
    texts = _texts(record)
    if not texts and not is_public():
        st.caption(words["no_text"])
    rivals = {key_of(g): g for g in loaded.groups if g.task == task and key_of(g) != line}
    names = {ANY: words["nobody"]} | titles_of(rivals, words)
    rival = choose(words["against"], [ANY, *sorted(rivals)], "errors_against", names)
    if rival:
        _against(judged, rivals[rival], record, texts, words)
        return
    show_table(_tally(judged, words))
    _documents(_filtered(judged, words), texts, words)


def _against(
    judged: Sequence[JudgedDocument],
    group: RunGroup,
    record: RunRecord,
    texts: Mapping[str, str],
    words: Mapping[str, str],
) -> None:
    """What one model gets right and the other does not, in the run of the same seed where there is one."""
    other = next((r for r in group.records if r.seed == record.seed), group.records[0])
    shared = lay_beside(judged, _judged(other.predictions_sha256, group, other))
    if not shared:
        st.info(words["unlike_documents"])
        return
    counts = tally_beside(shared)
    keys = ("both_right", "only_a_count", "only_b_count", "neither")
    rows = [
        {words["label"]: plain(label)} | {words[key]: counted[side] for key, side in zip(keys, SIDES, strict=True)}
        for label, counted in counts.items()
    ]
    st.text(f"A: {record_name(record)}\nB: {record_name(other)}")
    show_table(pd.DataFrame(rows))
    st.caption(words["against_help"])
    left, right = st.columns((7, 3))
    with left:
        side: Side = (
            "only_a"
            if choose(
                words["kinds"],
                ["only_a", "only_b"],
                "errors_side",
                {"only_a": words["only_a"], "only_b": words["only_b"]},
            )
            == "only_a"
            else "only_b"
        )
    with right:
        label = choose(words["only_label"], [ANY, *counts], "errors_label", {ANY: words["any_label"]})
    # the marks of the one that is wrong say how it is wrong
    wrong = [one.second if side == "only_a" else one.first for one in shared if one.has(side, label or None)]
    _documents(wrong, texts, words)


def record_name(record: RunRecord) -> str:
    """Model and seed of a run, as text."""
    return f"{shorten(plain(record.model.id))} ({record.seed})"


@st.cache_resource(max_entries=8)
def _judged(predictions: str, _group: RunGroup, _record: RunRecord) -> list[JudgedDocument]:
    """`predictions`: the file's hash, which names its content."""
    del predictions
    return judge(*_group.store.load_predictions(_record))


def _texts(record: RunRecord) -> Mapping[str, str]:
    """Document id -> text, empty where the data of the run is not at hand."""
    try:
        fold = 0 if record.resampling is None else record.resampling.fold
        return _read_texts(record.task.id, record.overrides, record.limit, record.task.data_hash, fold)
    except BioBenchError:
        # a spec that is not shipped, or data that is not here: the marks are shown without text
        return {}


@st.cache_resource(max_entries=4)
def _read_texts(task: str, overrides: tuple[str, ...], limit: int | None, data_hash: str, fold: int) -> dict[str, str]:
    """Raises BioBenchError, which is not kept, so that data that comes later is seen."""
    loaded = load_task(own_tasks().get(task, task), overrides)
    data = load_data(replace(loaded, fold=fold), None, limit, offline=True)
    allowed = loaded.spec.access != "agreement" and data.hash == data_hash
    return {d.id: d.reading for d in data.test} if allowed else {}


def _tally(judged: Sequence[JudgedDocument], words: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {words["label"]: label, **{_kind(kind, words): counted[kind] for kind in KINDS}}
            for label, counted in tally(judged).items()
        ]
    )


def _filtered(judged: Sequence[JudgedDocument], words: Mapping[str, str]) -> list[JudgedDocument]:
    left, right = st.columns((7, 3))
    mistakes = KINDS[:-1]
    start("errors_kinds", list_from_link("errors_kinds", KINDS, mistakes))
    kinds = left.multiselect(words["kinds"], KINDS, key="errors_kinds", format_func=lambda k: _kind(k, words))
    write_link("errors_kinds", "" if tuple(kinds) == mistakes else ",".join(kinds))
    labels = sorted({mark.label for one in judged for mark in one.marks})
    with right:
        names = {ANY: words["any_label"]} | {x: plain(x) for x in labels}
        label = choose(words["only_label"], [ANY, *labels], "errors_label", names)
    return [one for one in judged if any(m.kind in kinds and label in (ANY, m.label) for m in one.marks)]


def _kind(kind: Kind, words: Mapping[str, str]) -> str:
    return words["label_error" if kind == "label" else kind]


def _documents(judged: Sequence[JudgedDocument], texts: Mapping[str, str], words: Mapping[str, str]) -> None:
    if not judged:
        st.info(words["no_documents"])
        return
    pages = (len(judged) + PAGE - 1) // PAGE
    page = int(st.number_input(words["page"], 1, pages, key="errors_page")) if pages > 1 else 1
    st.caption(f"{len(judged)} {words['documents_found']}")
    for one in judged[(page - 1) * PAGE : page * PAGE]:
        st.html(to_html(one, texts.get(one.document.id, ""), words))
