"""One task: what it is, every model's score on it, its labels, its known issues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from biobench.report import charts
from biobench.report.escape import plain
from biobench.report.frame import build
from biobench.report.groups import RunGroup, Source
from biobench.report.names import labels
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.report.slices import sliced
from biobench.report.tasks import TaskInfo
from biobench.schema.kind import get_metric
from leaderboard import curve, page
from leaderboard.ranking import Entry, Ranking, ranking, view_of, views
from leaderboard.table import entry_key, result_of, shown_names

MOST_LINES = 30
"""Models shown at first."""
RARE = 30
"""Gold below which a label's F1 hangs on a few mentions."""


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
        with st.expander("Labels", expanded=True):
            _show_labels(groups)
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
    listed = entries[:MOST_LINES]
    if len(entries) > MOST_LINES and st.toggle(f"Show all {len(entries)}"):
        listed = entries
    words = ""
    baseline = task_ranking.baseline.get(info.id)
    if baseline is not None:
        words = f" Best baseline: {plain(baseline.model)}, {100 * baseline.mean:.1f}."
    st.caption(
        f"{get_metric(info.paper).words}, percent.{page.literal(words)} Runs under another "
        f"protocol have no rank."
    )
    slices = slice_rows(loaded, info.id)
    _score_chart(info.id, listed, baseline)
    _score_table(info.id, listed, slices)
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
        slice_results = sliced(replace(loaded, groups=groups), name)
        for row in build(slice_results, "paper", tasks=[task]).rows:
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
        {"model": plain(name), "part": slice_name, "score": 100 * row.mean}
        for name, (_, rows) in zip(names, best, strict=True)
        for slice_name, row in rows.items()
    ]
    chart = charts.parts(marks, "model", "part", page.ink())
    page.draw(chart, "Score on seen and on unseen mentions, by model")


def _score_chart(task: str, entries: Sequence[Entry], baseline: Row | None) -> None:
    """Every model's score and seeds, the best first."""
    names = shown_names(entries)
    chart_names = labels(_chart_names(entries, names)).values()
    rows = [entry.cells[task] for entry in entries]
    chart = charts.task_scores(list(zip(chart_names, rows, strict=True)), baseline, page.ink())
    page.draw(chart, f"Scores on {task} with intervals, the best first")
    st.caption(charts.TASK_SCORES)


def _chart_names(entries: Sequence[Entry], names: Mapping[str, str]) -> list[str]:
    """A name each, also where a published model was run here too."""
    times = Counter(names[entry.name] for entry in entries)
    unique_names = []
    for entry in entries:
        name = names[entry.name]
        unique_names.append(f"{name}, {result_of(entry)}" if times[name] > 1 else name)
    return unique_names


def _score_table(task: str, entries: Sequence[Entry], slices: SliceRows) -> None:
    names = shown_names(entries)
    table = []
    for e in entries:
        cells: dict[str, object] = {
            "#": e.rank,
            "score": page.score_cell(e.cells[task]),
            "model": page.link_to("models", "model", entry_key(e), names[e.name]),
            "seeds": e.cells[task].n_seeds or None,
            "result": result_of(e),
        }
        slice_scores = slices.get(e.cells[task].line, {})
        if slices:
            cells |= {"seen": None, "unseen": None}
        for slice_name, row in slice_scores.items():
            cells[slice_name] = 100 * row.mean
        table.append(cells)
    page.show_table(
        table,
        config={"model": st.column_config.LinkColumn(display_text=page.LINK, width="large")},
        alt=f"Scores on {task}",
    )


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
    escaped = {name: page.literal(" ".join(value.split())) for name, value in about.items()}
    if spec is not None:
        escaped["homepage"] = page.link(spec.homepage)
    page.facts(escaped)
    if spec is not None:
        page.show_notes("Known issues and choices", list(spec.notes))
        page.show_notes(
            "Deviations from the compared protocol",
            [f"{d.aspect}. Here: {d.here} There: {d.compared}" for d in spec.deviations],
        )
        if spec.counts:
            with st.expander("Counts"):
                st.dataframe(pd.DataFrame(spec.counts))


def _show_labels(groups: Sequence[RunGroup]) -> None:
    """F1 of each label as a chart of the models here, and as a table."""
    rows = _labels(groups)
    marks = [mark for row in rows[:MOST_LINES] for mark in _label_marks(row)]
    if marks:
        page.draw(charts.parts(marks, "label", "model", page.ink()), "F1 of each label, by model")
    st.caption(
        f"F1 of each label, mean over seeds, in percent; in brackets its gold in the test "
        f"documents, rare below {RARE}."
    )
    page.show_table(rows)


def _label_marks(row: Mapping[str, object]) -> list[dict[str, object]]:
    """A mark for each of the first models, beside a name that tells how much gold the label has."""
    scores = dict(row)
    label, support = scores.pop("label"), scores.pop("support in test")
    rare = ", rare" if isinstance(support, int) and support < RARE else ""
    name = f"{label} ({support}{rare})"
    drawn = list(scores.items())[: len(charts.COLOURS)]
    return [{"label": name, "model": model, "score": f1} for model, f1 in drawn if f1 is not None]


def _labels(groups: Sequence[RunGroup]) -> list[dict[str, object]]:
    """A row a label: its support, and its F1 per model."""
    names = [page.key_of((g.model, g.variant, g.source)) for g in groups]
    scores = {name: group.labels() for name, group in zip(names, groups, strict=True)}
    supports: dict[str, int] = {}
    for by_label in scores.values():
        for label, (support, _) in by_label.items():
            supports.setdefault(label, support)
    rows = []
    for label, support in supports.items():
        row: dict[str, object] = {"label": plain(label), "support in test": support}
        for name, by_label in scores.items():
            # a model may have the name of one of the first columns
            column = f"{plain(name)} " if name in ("label", "support in test") else plain(name)
            row[column] = 100 * by_label[label][1] if label in by_label else None
        rows.append(row)
    return rows
