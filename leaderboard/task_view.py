"""One task: what it is, its known issues, its labels, and every model's score on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import BioBenchError
from biobench.report import charts
from biobench.report.details.marked import sample
from biobench.report.escape import plain
from biobench.report.frame import build, cells
from biobench.report.groups import RunGroup
from biobench.report.names import in_sentences, labels
from biobench.report.printers import plain_note
from biobench.report.row import AverageName, Row
from biobench.report.tasks import TaskInfo
from biobench.schema.document import Document
from leaderboard.draw import draw, facts, show_table
from leaderboard.folder import results
from leaderboard.state import choose
from leaderboard.table import literal, shown_names
from leaderboard.words import metric_in, score, spoken

SAMPLES = 3
"""Documents shown."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    loaded = results()
    tasks = [i for i, info in loaded.infos.items() if info.in_suite or any(g.task == i for g in loaded.groups)]
    names = {i: f"{loaded.infos[i].name} ({i})" for i in tasks}
    # what has no score yet comes last
    scored = {row.task for row in cells(loaded, average).rows if row.source not in ("baseline", "oracle")}
    tasks.sort(key=lambda i: i not in scored)
    task = choose(words["choose_task"], tasks, "task", names)
    info = loaded.infos[task]
    st.title(literal(plain(info.name)))
    _card(info, words)
    _samples(info, words)
    report = build(loaded, average, tasks=[task])
    rows = sorted(report.rows, key=lambda r: -r.mean)
    groups = [g for g in loaded.groups if g.task == task]
    if rows:
        st.header(words["distribution"])
        show_table(_scores(rows, words), config={words["score"]: st.column_config.TextColumn(alignment="right")})
        names = labels(shown_names(rows, words))
        chart = charts.seeds(rows, list(names.values()), "model", words)
        if chart is not None:
            draw(chart, words["alt_seeds"])
            st.caption(words["points"])
    if groups:
        st.header(words["labels"])
        st.caption(words["labels_help"])
        frame = _labels(groups, words)
        show_table(frame, dict.fromkeys(frame.columns[2:], 1))
    readings = sorted({(v.caption, v.reading) for v in loaded.published if v.task == info.published_as})
    if readings:
        st.header(words["readings"])
        for caption, reading in readings:
            st.text(f"{caption} {reading}")
    if report.notes:
        with st.expander(f"{words['notes']} ({len(report.notes)})"):
            for note in report.notes:
                st.text(plain_note(spoken(note)))


def _card(info: TaskInfo, words: Mapping[str, str]) -> None:
    spec = info.spec
    about = {
        words["language"]: words.get(info.language, info.language),
        words["type"]: words.get(f"type_{info.type}", info.type),
        words["corpus"]: info.corpus,
    }
    if spec is None:
        st.caption(words["not_shipped"])
    else:
        about |= {
            words["access"]: words.get(f"access_{spec.access}", spec.access),
            words["licence"]: spec.licence,
            words["homepage"]: spec.homepage,
            words["citation"]: spec.citation,
        }
    facts({name: literal(" ".join(value.split())) for name, value in about.items()})
    if spec is not None and spec.notes:
        with st.expander(words["known_issues"]):
            for note in spec.notes:
                st.text(note)
    if spec is not None and spec.deviations:
        with st.expander(words["deviations"]):
            for deviation in spec.deviations:
                st.text(deviation.aspect)
                st.text(f"{words['here']}: {deviation.here}")
                st.text(f"{words['there']}: {deviation.compared}")
    if spec is not None and spec.counts:
        with st.expander(words["counts"]):
            st.dataframe(pd.DataFrame(spec.counts))


def _samples(info: TaskInfo, words: Mapping[str, str]) -> None:
    """A few training documents with their gold, where the data is at hand and may be shown; on demand."""
    spec = info.spec
    if spec is None or not st.toggle(words["samples"], key=f"samples_{info.id}"):
        return
    if spec.access == "agreement":
        st.info(words["samples_withheld"])
        return
    try:
        documents = _read_samples(info.id)
    except BioBenchError:
        # not here, or not whole: the command that is named tells which
        st.info(words["samples_absent"].format(info.id))
        return
    for document in documents:
        st.html(sample(document))
    st.caption(words["samples_help"])


@st.cache_data(max_entries=32, show_spinner="…")
def _read_samples(task: str) -> list[Document]:
    """Raises BioBenchError, which is not kept, so that data that comes later is seen."""
    return list(load_data(load_task(task), None, offline=True).train[:SAMPLES])


def _scores(rows: Sequence[Row], words: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                words["model"]: name,
                words["source"]: words[r.source],
                words["metric"]: metric_in(r.metric, words),
                words["score"]: score(r),
                words["seeds"]: r.n_seeds or None,
            }
            for name, r in zip(shown_names(rows, words), rows, strict=True)
        ]
    )


def _labels(groups: Sequence[RunGroup], words: Mapping[str, str]) -> pd.DataFrame:
    """A row a label: its support, and its F1 per model."""
    shown = shown_names(groups, words)
    short = in_sentences(shown)
    if len(set(short.values())) < len(shown):
        short = dict(zip(shown, shown, strict=True))
    named = [(short[name], group) for name, group in zip(shown, groups, strict=True)]
    scores = {name: group.labels() for name, group in named}
    supports: dict[str, int] = {}
    for by_label in scores.values():
        for label, (support, _) in by_label.items():
            supports.setdefault(label, support)
    first = {words["label"]: [plain(label) for label in supports], words["support"]: list(supports.values())}
    frame = pd.DataFrame(
        {
            # a model may have the name of one of the first columns
            f"{name} " if name in first else name: [100 * by_label[x][1] if x in by_label else None for x in supports]
            for name, by_label in scores.items()
        }
    )
    return pd.concat([pd.DataFrame(first), frame], axis=1)
