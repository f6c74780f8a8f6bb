"""One task: what it is, every model's score on it, its labels, its known issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from biobench.report import charts
from biobench.report.escape import plain
from biobench.report.frame import build
from biobench.report.groups import RunGroup, Source
from biobench.report.literature.comparison import NAMES
from biobench.report.names import labels
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.report.slices import sliced
from biobench.report.tasks import TaskInfo
from leaderboard import curve, page
from leaderboard.ranking import Entry, Ranking, ranking, view_of, views
from leaderboard.table import entry_key, result_of, shown_names

MOST_LINES = 30
"""Models shown at first."""


def show() -> None:
    """Draw the view."""
    loaded = page.results()
    tasks = _listed_tasks(loaded)
    title = st.container()
    task = page.choose("Task", tasks, "task", {i: i for i in tasks})
    info = loaded.infos[task]
    title.title(page.literal(plain(info.name)))
    if view_of(info) in views(loaded):
        _ranked_scores(loaded, info, ranking(loaded, view_of(info), (task,)))
    curve.show(loaded, task)
    _card(info)
    groups = [g for g in loaded.groups if g.task == task][:MOST_LINES]
    if groups:
        with st.expander("Labels", expanded=False):
            st.caption("F1 of each label, mean over seeds, in percent.")
            page.show_table(_labels(groups))
    readings = {f"{v.caption} {v.reading}" for v in loaded.published if v.task == info.published_as}
    page.show_notes("Published numbers", sorted(readings))
    page.show_notes("Notes", build(loaded, "paper", tasks=[task]).notes)


def _listed_tasks(loaded: Results) -> list[str]:
    """Tasks with runs here, then those with published values, then the rest of the suites."""
    ran = {group.task for group in loaded.groups}
    published = {value.task for value in loaded.published}
    tasks = [task for task, info in loaded.infos.items() if info.in_suite or task in ran]

    def position(task: str) -> tuple[bool, bool]:
        return task not in ran, loaded.infos[task].published_as not in published

    return sorted(tasks, key=position)


def _ranked_scores(loaded: Results, info: TaskInfo, task_ranking: Ranking) -> None:
    """Every model's score on the task, the best first."""
    entries = [entry for entry in task_ranking.entries if info.id in entry.cells]
    entries.sort(key=lambda entry: -entry.cells[info.id].mean)
    if not entries:
        return
    shown = entries[:MOST_LINES]
    if len(entries) > MOST_LINES and st.toggle(f"Show all {len(entries)}"):
        shown = entries
    words = ""
    baseline = task_ranking.baseline.get(info.id)
    if baseline is not None:
        words = f" Best baseline: {plain(baseline.model)}, {100 * baseline.mean:.1f}."
    st.caption(
        f"{NAMES.get(info.paper, info.paper)}, percent.{page.literal(words)} Runs under another "
        f"protocol have no rank."
    )
    slices = slice_rows(loaded, info.id)
    _scores(info.id, shown, slices)
    _seen_and_unseen(slices)


SliceRows = Mapping[tuple[str, str, Source], Mapping[str, Row]]
"""(model, variant, source) -> slice -> its row."""


def slice_rows(loaded: Results, task: str) -> SliceRows:
    """The scores on seen and on unseen mentions of every line that has both."""
    groups = tuple(
        group
        for group in loaded.groups
        if group.task == task and all({"seen", "unseen"} <= b.slices.keys() for b in group.briefs)
    )
    if not groups:
        return {}
    of_line: dict[tuple[str, str, Source], dict[str, Row]] = {}
    for name in ("seen", "unseen"):
        part = sliced(replace(loaded, groups=groups), name)
        for row in build(part, "paper", tasks=[task]).rows:
            of_line.setdefault(row.line, {})[name] = row
    return of_line


def _seen_and_unseen(slices: SliceRows) -> None:
    if not slices:
        return
    st.subheader("Seen and unseen mentions")
    st.caption(
        "Seen: the training documents hold the mention's text. New mentions tell encoders apart; "
        "the training dictionary finds none of them."
    )
    best = sorted(slices.items(), key=lambda item: -item[1]["unseen"].mean)[:MOST_LINES]
    names = list(labels([page.key_of(line) for line, _ in best]).values())
    marks = [
        {"model": plain(name), "part": part, "score": 100 * row.mean}
        for name, (_, rows) in zip(names, best, strict=True)
        for part, row in rows.items()
    ]
    page.draw(charts.parts(marks, page.ink()), "Score on seen and on unseen mentions, by model")


def _scores(task: str, entries: Sequence[Entry], slices: SliceRows) -> None:
    names = shown_names(entries)
    table = []
    for e in entries:
        cells: dict[str, str | float | None] = {
            "#": str(e.rank) if e.rank else None,
            "score": page.score(e.cells[task]),
            "model": page.link_to("models", "model", entry_key(e), names[e.name]),
            "seeds": str(e.cells[task].n_seeds or "–"),
            "result": result_of(e),
        }
        parts = slices.get(e.cells[task].line, {})
        if slices:
            cells["seen"] = 100 * parts["seen"].mean if parts else None
            cells["unseen"] = 100 * parts["unseen"].mean if parts else None
        table.append(cells)
    page.show_table(
        pd.DataFrame(table),
        config={
            "model": st.column_config.LinkColumn(display_text=page.LINK, width="large"),
            "score": st.column_config.TextColumn(alignment="right"),
        },
        alt=f"Scores on {task}",
    )
    rows = [e.cells[task] for e in entries]
    chart = charts.seeds(
        rows, list(labels([f"{names[e.name]}, {result_of(e)}" for e in entries]).values()), "model"
    )
    if chart is not None:
        page.show_seeds(chart)


def _card(info: TaskInfo) -> None:
    spec = info.spec
    about = {"language": info.language, "type": info.type.replace("_", " "), "corpus": info.corpus}
    if spec is None:
        st.caption(
            "This task does not ship with BioBench; its records are all that is known of it."
        )
    else:
        about |= {
            "access": spec.access,
            "licence": spec.licence,
            "homepage": spec.homepage,
            "citation": spec.citation,
        }
    shown = {name: page.literal(" ".join(value.split())) for name, value in about.items()}
    if spec is not None:
        shown["homepage"] = page.link(spec.homepage)
    page.facts(shown)
    if spec is not None:
        page.show_notes("Known issues and choices", list(spec.notes))
        page.show_notes(
            "Deviations from the compared protocol",
            [f"{d.aspect}. Here: {d.here} There: {d.compared}" for d in spec.deviations],
        )
        if spec.counts:
            with st.expander("Counts"):
                st.dataframe(pd.DataFrame(spec.counts))


def _labels(groups: Sequence[RunGroup]) -> pd.DataFrame:
    """A row a label: its support, and its F1 per model."""
    names = [page.key_of((g.model, g.variant, g.source)) for g in groups]
    scores = {name: group.labels() for name, group in zip(names, groups, strict=True)}
    supports: dict[str, int] = {}
    for by_label in scores.values():
        for label, (support, _) in by_label.items():
            supports.setdefault(label, support)
    first = {
        "label": [plain(label) for label in supports],
        "support in test": list(supports.values()),
    }
    # a model may have the name of one of the first columns
    of_models = {
        f"{plain(name)} " if name in first else plain(name): [
            100 * by_label[x][1] if x in by_label else None for x in supports
        ]
        for name, by_label in scores.items()
    }
    return pd.DataFrame(first | of_models)
