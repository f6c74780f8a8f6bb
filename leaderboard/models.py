"""One model: what it is, where it stands, its scores beside the best under the same protocol, its
seeds, its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_table
from biobench.report.escape import for_html, plain
from biobench.report.footnotes import marked
from biobench.report.groups import RunGroup
from biobench.report.results import Results
from biobench.report.row import Row
from biobench.schema.kind import get_metric
from leaderboard import page
from leaderboard.board import ranked
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
    line = (entry.model, entry.variant, entry.source)
    groups = page.unread(g for g in loaded.groups if (g.model, g.variant, g.source) == line)
    title.title(page.literal(shown_names([entry])[entry.name]))
    st.caption(page.literal(_about(entry, groups)))
    with st.container(horizontal=True, gap="medium"):
        for ranking, model_entry in chosen:
            _show_rank(ranking, model_entry)
    for ranking, model_entry in chosen:
        _field(ranking, model_entry)
        _show_tasks(ranking, model_entry)
    if groups:
        _card(groups)
        _ledger(groups)
        _seeds([row for _, model_entry in chosen for row in model_entry.cells.values()])
        _needles(groups)
    else:
        _publication(entry, loaded)


def _standings(loaded: Results) -> dict[str, list[Standing]]:
    """Name in the link -> the model's line in each view that has it."""
    standings: dict[str, list[Standing]] = {}
    for view in views(loaded):
        ranking = ranked(view, (), None, page.results_state(), loaded)
        for entry in ranking.entries:
            standings.setdefault(entry_key(entry), []).append((ranking, entry))
    return standings


def _about(entry: Entry, groups: Sequence[RunGroup]) -> str:
    result = result_of(entry)
    if groups:
        return result
    return f"{result}: no runs, so no seeds, speed or memory"


def _show_rank(ranking: Ranking, entry: Entry) -> None:
    """The mean and the rank; without a mean, how many of the tasks it has."""
    title, count = page.literal(ranking.title), len(ranking.shared)
    if entry.mean is None:
        tasks = f"{len(entry.cells)} of {count} tasks"
        st.metric(f"{title}, not ranked", tasks, width="content")
        return
    rank = "not ranked"
    if entry.rank is not None:
        rank = f"rank {entry.rank} of {sum(e.rank is not None for e in ranking.entries)}"
    label = f"{title}, mean of {count}: {rank}"
    st.metric(label, page.score(entry.mean), width="content")


def _field(ranking: Ranking, entry: Entry) -> None:
    """The model among all models of its protocol, task by task."""
    points, rival_dots, baselines = [], [], []
    for task, row in entry.cells.items():
        name = plain(task)
        points.append(charts.mean_point("task", name, row, "this model"))
        for rival in ranking.entries:
            if rival is not entry and rival.protocol == entry.protocol and task in rival.cells:
                score = 100 * rival.cells[task].mean
                rival_dots.append({"task": name, "name": plain(rival.name), "score": score})
        baseline = ranking.baseline.get(task)
        if baseline is not None:
            score = 100 * baseline.mean
            baselines.append({"task": name, "name": plain(baseline.model), "score": score})
    chart = charts.scores(points, "task", behind=rival_dots, baselines=baselines, ink=page.ink())
    page.draw(chart, f"Scores by task among all models: {ranking.title}")
    st.caption(
        "Blue: this model, with its 95% interval over seeds. Grey dots: the other models. "
        "Tick: the best baseline."
    )


def _seeds(rows: Sequence[Row]) -> None:
    points = [charts.mean_point("task", plain(row.task), row, "mean") for row in rows]
    dots = []
    for row in rows:
        dots += charts.seed_dots("task", plain(row.task), row)
    if not dots:
        return
    with st.expander("Seed by seed"):
        chart = charts.scores(points, "task", behind=dots, ink=page.ink())
        page.draw(chart, "Score of every seed, with means and intervals")
        st.caption("Each dot is one seed; the line is the 95% interval of their mean.")


def _needles(groups: Sequence[RunGroup]) -> None:
    needles = [group for group in groups if group.briefs[0].type == "needle"]
    if needles:
        st.header("Needle in a haystack", anchor=False)
        grids = read_grids(needles)
        show_maps(grids, [grid.task for grid in grids])


def _show_tasks(ranking: Ranking, entry: Entry) -> None:
    """The scores by task in a table, and as cards for a narrow screen."""
    rows = _table(ranking, entry)
    name = ranking.view.replace(" ", "_")
    title = f"Scores by task: {ranking.title}"
    with st.container(key=f"bb_table_{name}"):
        page.show_table(
            rows,
            config={"task": st.column_config.LinkColumn(display_text=page.LINK, pinned=True)},
            alt=title,
        )
    with st.container(key=f"bb_cards_{name}"):
        page.show_cards([_task_card(row) for row in rows], title)


def _task_card(row: Mapping[str, object]) -> str:
    """A task, its score, and below them what else is known."""
    texts = {name: for_html(page.cell_text(cell)) for name, cell in row.items() if cell is not None}
    address, _, task = str(row["task"]).partition("#")
    link = f'<a href="{for_html(address)}" target="_self">{for_html(task)}</a>'
    score = texts["score"]
    about = [f"{name}: {text}" for name, text in texts.items() if name not in ("task", "score")]
    return f"<li><div>{link}<b>{score}</b></div><small>{' · '.join(about)}</small></li>"


def _table(ranking: Ranking, entry: Entry) -> list[dict[str, object]]:
    """A row a task: the score, the best under the same protocol, the best baseline, and what the
    run cost.
    """
    rows = [_task_row(ranking, entry, task) for task in entry.cells]
    # what is known of no task (a baseline that nobody measured, costs of printed scores) has no
    # column
    filled = {name for row in rows for name, cell in row.items() if cell is not None}
    return [{name: cell for name, cell in row.items() if name in filled} for row in rows]


def _task_row(ranking: Ranking, entry: Entry, task: str) -> dict[str, object]:
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
        "in its training text": None,
    }
    if marked(row.contamination):
        cells["in its training text"] = "test documents"
    baseline = ranking.baseline.get(task)
    if baseline is not None:
        cells["best baseline"] = _named_score(baseline.model, baseline.mean)
    if row.peak_memory_bytes is not None:
        cells["peak memory, GB"] = row.peak_memory_bytes / 1e9
    return cells


def _named_score(name: str, share: float) -> page.ShownNumber:
    return page.ShownNumber(100 * share, f"{100 * share:.1f} ({plain(name)})")


def _card(groups: Sequence[RunGroup]) -> None:
    """What the records say of the model and of the programs that ran it."""
    record, brief = groups[0].records[0], groups[0].briefs[0]
    records = [record for group in groups for record in group.records]
    days = [brief.started[:10] for group in groups for brief in group.briefs]
    made_with = sorted(
        {f"BioBench {r.provenance.biobench}, {r.provenance.device}" for r in records}
    )
    windows = sorted({group.records[0].windows.max_length for group in groups})
    licence = next((r.model.licence for r in records if r.model.licence), "not recorded")
    about = {
        "revision": record.model.revision or "–",
        "architecture": record.model.architecture,
        "parameters": f"{record.model.parameters:,}",
        "window, tokens": ", ".join(map(str, windows)),
        "weights hash": record.model.hash[:16],
        "evaluated": " – ".join(dict.fromkeys((min(days), max(days)))),
        "made with": "; ".join(made_with),
        "licence": licence,
    }
    escaped = {name: page.literal(plain(value)) for name, value in about.items()}
    if brief.revision and "/" in brief.model:
        address = f"https://huggingface.co/{brief.model}/tree/{brief.revision}"
        escaped["page on the hub"] = page.link(address)
    page.facts(escaped)


def _publication(entry: Entry, loaded: Results) -> None:
    """What a publication says of a model that was not run here."""
    values = [value for value in loaded.published if value.model == entry.model]
    sources = {value.source: value.url for value in values}
    about = {}
    if entry.parameters:
        about["parameters"] = f"{entry.parameters:,}"
    for source, url in sources.items():
        about["published in"] = f"{page.literal(plain(source))} {page.link(url)}"
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
