"""One model: what it is, where it stands, its scores beside the best under the same protocol, its
seeds, its cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.reporting import charts
from biobench.reporting.details.ledgers import ledger_table
from biobench.reporting.escape import plain
from biobench.reporting.footnotes import marked
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results
from biobench.reporting.row import Row
from biobench.schema.kind import get_metric
from leaderboard import page
from leaderboard.board import ranked
from leaderboard.choices import choose
from leaderboard.lines import score
from leaderboard.needle import needle_groups, read_grids, show_maps
from leaderboard.numbers import ShownNumber, score_cell
from leaderboard.ranking import Entry, Ranking, views
from leaderboard.table import entry_key, result_of, shown_names

Standing = tuple[Ranking, Entry]
"""A view, and the model's line in it."""


def show() -> None:
    """Draw the view."""
    loaded = page.results()
    standings = _standings(loaded)
    if not standings:
        st.title("Models")
        st.info("There is no model to show yet.")
        return
    order = sorted(standings, key=lambda key: (not standings[key][0][1].is_run, key.casefold()))
    title = st.container()
    chosen = standings[choose("Model", order, "model", from_data=True)]
    _, entry = chosen[0]
    groups = page.unread(group for group in loaded.groups if group.line == entry.line)
    title.title(page.literal(shown_names([entry])[entry.name]))
    about = result_of(entry)
    if not groups:
        about += ": no runs, so no seeds, speed or memory"
    st.caption(page.literal(about))
    with st.container(horizontal=True, gap="medium"):
        for ranking, model_entry in chosen:
            _show_rank(loaded, ranking, model_entry)
    for ranking, model_entry in chosen:
        if len(chosen) > 1:
            st.subheader(page.literal(ranking.title), anchor=False)
        _field(ranking, model_entry)
        _show_tasks(ranking, model_entry)
    shown = "Blue: this model."
    if groups:
        shown = "Blue: this model, with its 95% interval over seeds."
    st.caption(f"{shown} Grey dots: the other models. Tick: the best baseline.")
    if not groups:
        _publication(entry, loaded)
        return
    _card(groups)
    _ledger(groups)
    needles = needle_groups(groups)
    if needles:
        st.header("Needle in a haystack", anchor=False)
        show_maps({grid.task: grid for grid in read_grids(needles)})


def _standings(loaded: Results) -> dict[str, list[Standing]]:
    """Name in the link -> the model's line in each view that has it."""
    standings: dict[str, list[Standing]] = defaultdict(list)
    for view in views(loaded):
        ranking = ranked(loaded, view)
        for entry in ranking.entries:
            standings[entry_key(entry)].append((ranking, entry))
    return standings


def _show_rank(loaded: Results, ranking: Ranking, entry: Entry) -> None:
    """The mean and the rank; without a mean, how many of the tasks it has.

    A task on which the model guesses ranks nobody: the others do, among all models that have them.
    """
    title = page.literal(ranking.title)
    guessed = [task for task, row in entry.cells.items() if row.guessing]
    tasks = tuple(task for task in ranking.shared if task not in guessed)
    if tasks and tasks != ranking.shared:
        ranking = ranked(loaded, ranking.view, tasks, ranking.protocol)
        entry = next(other for other in ranking.entries if other.line == entry.line)
    number = f"{len(entry.cells) - len(guessed)} of {len(ranking.shared)} tasks"
    label = f"{title}, not ranked"
    if entry.mean is not None and tasks:
        rank = "not ranked"
        if entry.rank is not None:
            rank = f"rank {entry.rank} of {len(ranking.ranked)}"
        number, label = score(entry.mean), f"{title}, mean of {len(tasks)}: {rank}"
    with st.container(width="content", gap="xsmall"):
        st.metric(label, number, width="content")
        if guessed:
            names = page.literal(", ".join(guessed))
            st.caption(f"not above guessing, left out: {names}")


def _field(ranking: Ranking, entry: Entry) -> None:
    """The model among all models of its protocol, task by task."""
    points, rival_dots, baselines = [], [], []
    for task, row in entry.cells.items():
        points.append(charts.mean_point("task", plain(task), row, "this model"))
        for rival in ranking.scores_on(task, entry.protocol):
            if rival is not row:
                rival_dots.append(_dot(rival))
        if task in ranking.baseline:
            baselines.append(_dot(ranking.baseline[task]))
    chart = charts.scores(points, "task", behind=rival_dots, baselines=baselines, ink=page.ink())
    page.draw(chart, f"Scores by task among all models: {ranking.title}")


def _dot(row: Row) -> dict[str, object]:
    return {"task": plain(row.task), "name": plain(row.name), "score": 100 * row.mean}


def _show_tasks(ranking: Ranking, entry: Entry) -> None:
    """The scores by task in a table, and as cards for a narrow screen."""
    rows = [_task_row(ranking, entry, task) for task in entry.cells]
    table = pd.DataFrame(rows, dtype=object)
    name = ranking.view.replace(" ", "_")
    title = f"Scores by task: {ranking.title}"
    with st.container(key=f"bb_table_{name}"):
        page.show_table(
            table,
            config={"task": st.column_config.LinkColumn(display_text=page.LINK, pinned=True)},
            alt=title,
        )
    with st.container(key=f"bb_cards_{name}"):
        page.show_cards(table, title, link="task", number="score")


def _task_row(ranking: Ranking, entry: Entry, task: str) -> dict[str, object]:
    """The score, the best under the same protocol, the best baseline, and what the run cost."""
    row = entry.cells[task]
    best = max(ranking.scores_on(task, entry.protocol), key=attrgetter("mean"))
    cells: dict[str, object] = {
        "task": page.link_to("tasks", "task", task, task),
        "average": get_metric(row.metric).words,
        "score": score_cell(row),
        "behind the best": 100 * (best.mean - row.mean),
        "best": _named_score(best),
        "best baseline": None,
        "seeds": row.n_seeds or None,
        "seconds a run": row.seconds,
        "peak memory, GB": None,
        "documents cut": row.truncated_documents,
        "gold lost": row.lost_gold,
        "remark": None,
    }
    if row.guessing:
        cells |= {"behind the best": None, "remark": "not above guessing"}
    elif marked(row.contamination):
        cells["remark"] = "test documents in its training text"
    if task in ranking.baseline:
        cells["best baseline"] = _named_score(ranking.baseline[task])
    if row.peak_memory_bytes is not None:
        cells["peak memory, GB"] = row.peak_memory_bytes / 1e9
    return cells


def _named_score(row: Row) -> ShownNumber:
    return ShownNumber(100 * row.mean, f"{100 * row.mean:.1f} ({plain(row.name)})")


def _card(groups: Sequence[RunGroup]) -> None:
    """What the records say of the model and of the programs that ran it."""
    brief, model = groups[0].briefs[0], groups[0].records[0].model
    days, made_with, windows = set(), set(), set()
    for record in chain.from_iterable(group.records for group in groups):
        windows.add(record.windows.max_length)
        days.add(record.provenance.started[:10])
        made_with.add(f"BioBench {record.provenance.biobench}, {record.provenance.device}")
    about = {
        "revision": model.revision or "–",
        "architecture": model.architecture,
        "parameters": f"{model.parameters:,}",
        "window, tokens": ", ".join(map(str, sorted(windows))),
        "weights hash": model.hash[:16],
        "evaluated": " – ".join(sorted({min(days), max(days)})),
        "made with": "; ".join(sorted(made_with)),
        "licence": model.licence or "not recorded",
    }
    escaped = {name: page.literal(plain(value)) for name, value in about.items()}
    if brief.revision and "/" in brief.model:
        address = f"https://huggingface.co/{brief.model}/tree/{brief.revision}"
        escaped["page on the hub"] = page.link(address)
    page.facts(escaped)


def _publication(entry: Entry, loaded: Results) -> None:
    """What a publication says of a model that was not run here."""
    about = {}
    if entry.parameters:
        about["parameters"] = f"{entry.parameters:,}"
    values = []
    for value in loaded.published:
        if (value.model, value.variant) == (entry.model, entry.variant):
            values.append(value)
    for value in values:
        about["published in"] = f"{page.literal(plain(value.source))} {page.link(value.url)}"
    checkpoint = next((value.checkpoint for value in values if value.checkpoint), None)
    about |= {"weights": "no public ones known", "licence": "not recorded"}
    if checkpoint is not None:
        about["weights"] = page.link(f"https://huggingface.co/{checkpoint.id}")
        if checkpoint.note:
            about["weights"] += f" ({page.literal(plain(checkpoint.note))})"
        if checkpoint.licence:
            about["licence"] = page.literal(plain(checkpoint.licence))
    page.facts(about)
    if checkpoint is not None:
        st.caption("To run it here, under the protocol of your own runs:")
        languages = {value.language for value in values}
        for language in sorted(languages):
            command = f"biobench run {checkpoint.id} --suite {language}"
            st.code(command, language="bash", wrap_lines=True)


def _ledger(groups: Sequence[RunGroup]) -> None:
    """How the model was made, where a run of the pretraining folder made it."""
    run = page.trained_by(groups)
    if run is None or run.ledger is None:
        return
    with st.expander(f"How it was pretrained: {page.literal(plain(run.name))}"):
        try:
            rows = ledger_table(run.ledger, run.ledger).rows
        except StoreError as error:
            # the other parts of the page do without it
            st.warning(page.text(error.what))
            return
        about = {}
        for row in rows:
            about[plain(row.name)] = page.literal(plain(row.first))
        page.facts(about)
        st.caption("From the training ledger of the run that exported exactly these weights.")
