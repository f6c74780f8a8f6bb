"""One model: what it is, where it stands, its scores beside the best under the same protocol, its
seeds, its cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import streamlit as st

from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_table
from biobench.report.escape import plain
from biobench.report.footnotes import marked
from biobench.report.groups import RunGroup
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.schema.kind import get_metric
from leaderboard import page
from leaderboard.board import ranked
from leaderboard.lines import score
from leaderboard.needle import read_grids, show_maps
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
    chosen = standings[page.choose("Model", order, "model")]
    entry = chosen[0][1]
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
        _field(ranking, model_entry)
        _show_tasks(ranking, model_entry)
    if groups:
        _card(groups)
        _ledger(groups)
        _needles(groups)
    else:
        _publication(entry, loaded)


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
    if len(tasks) < len(ranking.shared) and tasks:
        ranking = ranked(loaded, ranking.view, tasks, ranking.protocol)
        entry = next(other for other in ranking.entries if other.line == entry.line)
    about = None
    if guessed:
        about = f"not above guessing, left out: {page.literal(', '.join(guessed))}"
    if entry.mean is None or not tasks:
        count = len(entry.cells) - len(guessed)
        number, label = f"{count} of {len(ranking.shared)} tasks", f"{title}, not ranked"
    else:
        rank = "not ranked"
        if entry.rank is not None:
            rank = f"rank {entry.rank} of {sum(e.rank is not None for e in ranking.entries)}"
        number, label = score(entry.mean), f"{title}, mean of {len(tasks)}: {rank}"
    with st.container(width="content", gap="xsmall"):
        st.metric(label, number, width="content")
        if about:
            st.caption(about)


def _field(ranking: Ranking, entry: Entry) -> None:
    """The model among all models of its protocol, task by task."""
    points, rival_dots, baselines = [], [], []
    for task, row in entry.cells.items():
        name = plain(task)
        points.append(charts.mean_point("task", name, row, "this model"))
        for rival in ranking.entries:
            if rival is not entry and rival.protocol == entry.protocol and task in rival.cells:
                rival_dots.append(_dot(name, rival.name, rival.cells[task]))
        if task in ranking.baseline:
            baselines.append(_dot(name, ranking.baseline[task].model, ranking.baseline[task]))
    chart = charts.scores(points, "task", behind=rival_dots, baselines=baselines, ink=page.ink())
    page.draw(chart, f"Scores by task among all models: {ranking.title}")
    st.caption(
        "Blue: this model, with its 95% interval over seeds. Grey dots: the other models. "
        "Tick: the best baseline."
    )


def _dot(task: str, model: str, row: Row) -> dict[str, object]:
    return {"task": task, "name": plain(model), "score": 100 * row.mean}


def _needles(groups: Sequence[RunGroup]) -> None:
    needles = [group for group in groups if group.briefs[0].type == "needle"]
    if needles:
        st.header("Needle in a haystack", anchor=False)
        show_maps({grid.task: grid for grid in read_grids(needles)})


def _show_tasks(ranking: Ranking, entry: Entry) -> None:
    """The scores by task in a table, and as cards for a narrow screen."""
    rows = [_task_row(ranking, entry, task) for task in entry.cells]
    name = ranking.view.replace(" ", "_")
    title = f"Scores by task: {ranking.title}"
    with st.container(key=f"bb_table_{name}"):
        page.show_table(
            rows,
            config={"task": st.column_config.LinkColumn(display_text=page.LINK, pinned=True)},
            alt=title,
        )
    cards = []
    for task, row in zip(entry.cells, rows, strict=True):
        about = []
        for column, cell in row.items():
            if cell is not None and column not in ("task", "score"):
                about.append(f"{column}: {page.cell_text(cell)}")
        link = page.link_to("tasks", "task", task, "").rstrip("#")
        cards.append(page.card(task, row["score"], about, link=link))
    with st.container(key=f"bb_cards_{name}"):
        page.show_cards(cards, title)


def _task_row(ranking: Ranking, entry: Entry, task: str) -> dict[str, object]:
    """The score, the best under the same protocol, the best baseline, and what the run cost."""
    row = entry.cells[task]
    rivals = [e for e in ranking.entries if task in e.cells and e.protocol == entry.protocol]
    best = max(rivals, key=lambda rival: rival.cells[task].mean)
    best_mean = best.cells[task].mean
    cells: dict[str, object] = {
        "task": page.link_to("tasks", "task", task, task),
        "average": get_metric(row.metric).words,
        "score": page.score_cell(row),
        "behind the best": 100 * (best_mean - row.mean),
        "best": _named_score(best.name, best_mean),
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
        baseline = ranking.baseline[task]
        cells["best baseline"] = _named_score(baseline.model, baseline.mean)
    if row.peak_memory_bytes is not None:
        cells["peak memory, GB"] = row.peak_memory_bytes / 1e9
    return cells


def _named_score(name: str, share: float) -> page.ShownNumber:
    return page.ShownNumber(100 * share, f"{100 * share:.1f} ({plain(name)})")


def _card(groups: Sequence[RunGroup]) -> None:
    """What the records say of the model and of the programs that ran it."""
    record, brief = groups[0].records[0], groups[0].briefs[0]
    model = record.model
    days, made_with, windows = set(), set(), set()
    for group in groups:
        windows.add(str(group.records[0].windows.max_length))
        for other in group.records:
            days.add(other.provenance.started[:10])
            made_with.add(f"BioBench {other.provenance.biobench}, {other.provenance.device}")
    about = {
        "revision": model.revision or "–",
        "architecture": model.architecture,
        "parameters": f"{model.parameters:,}",
        "window, tokens": ", ".join(sorted(windows, key=int)),
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
    for value in loaded.published:
        if value.model == entry.model:
            about["published in"] = f"{page.literal(plain(value.source))} {page.link(value.url)}"
    page.facts(about)


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
        page.facts({plain(row.name): page.literal(plain(row.first)) for row in rows})
        st.caption("From the training ledger of the run that exported exactly these weights.")
