"""One model: what it is, where it stands, its scores beside the best under the same protocol, its
seeds, its cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_table
from biobench.report.escape import plain
from biobench.report.footnotes import marked
from biobench.report.groups import RunGroup
from biobench.report.literature.comparison import NAMES
from leaderboard import page
from leaderboard.board import ranked
from leaderboard.needle import read_grids, show_maps
from leaderboard.ranking import Entry, Ranking, views
from leaderboard.table import entry_key, result_of, shown_names


def show() -> None:
    """Draw the view."""
    loaded = page.results()
    rankings = [ranked(view, (), None, page.results_state(), loaded) for view in views(loaded)]
    entries: dict[str, list[tuple[Ranking, Entry]]] = {}
    for one in rankings:
        for entry in one.entries:
            entries.setdefault(entry_key(entry), []).append((one, entry))
    if not entries:
        st.title("Models")
        st.info("There is no model to show yet.")
        return
    order = sorted(entries, key=lambda key: (not entries[key][0][1].is_run, key.casefold()))
    title = st.container()
    chosen = page.choose("Model", order, "model")
    entry = entries[chosen][0][1]
    line = (entry.model, entry.variant, entry.source)
    title.title(page.literal(shown_names([entry])[entry.name]))
    groups = [g for g in loaded.groups if (g.model, g.variant, g.source) == line]
    about = result_of(entry)
    if not groups:
        source = next((v.source for v in loaded.published if v.model == entry.model), "")
        about += f" in {source}: no runs, so no seeds, speed or memory"
    st.caption(page.literal(about))
    with st.container(horizontal=True, gap="medium"):
        for one, mine in entries[chosen]:
            if mine.mean is None:
                st.metric(
                    f"{page.literal(one.title)}, not ranked",
                    f"{len(mine.cells)} of {len(one.shared)} tasks",
                    width="content",
                )
            else:
                place = (
                    "not ranked"
                    if mine.rank is None
                    else f"rank {mine.rank} of {sum(e.rank is not None for e in one.entries)}"
                )
                st.metric(
                    f"{page.literal(one.title)}, mean of {len(one.shared)}: {place}",
                    page.score(mine.mean),
                    width="content",
                )
    for one, mine in entries[chosen]:
        page.show_table(
            _table(one, mine),
            config={
                "task": st.column_config.LinkColumn(display_text=page.LINK, pinned=True),
                "score": st.column_config.TextColumn(alignment="right"),
            },
            alt=f"Scores by task: {one.title}",
        )
    if groups:
        _card(groups)
        _ledger(groups)
        rows = [row for _, mine in entries[chosen] for row in mine.cells.values()]
        chart = charts.seeds(rows, [plain(row.task) for row in rows], "task")
        if chart is not None:
            with st.expander("Seed by seed"):
                page.draw(chart, "Score of every seed, with means and intervals")
                st.caption("Each dot is one seed; the line is the 95% interval of their mean.")
        needles = [g for g in groups if g.briefs[0].type == "needle"]
        if needles:
            st.header("Needle in a haystack", anchor=False)
            grids = read_grids(needles)
            show_maps(grids, [grid.task for grid in grids])


def _table(one: Ranking, entry: Entry) -> pd.DataFrame:
    """A row a task: the score, the best under the same protocol, the best baseline, and what the
    run cost.
    """
    rows = []
    for task, row in entry.cells.items():
        alike = [e for e in one.entries if task in e.cells and e.protocol == entry.protocol]
        best = max(alike, key=lambda e: e.cells[task].mean)
        bar = one.baseline.get(task)
        rows.append(
            {
                "task": page.link_to("tasks", "task", task, task),
                "average": NAMES.get(row.metric, row.metric),
                "score": page.score(row),
                "behind the best": 100 * (best.cells[task].mean - row.mean),
                "best": f"{100 * best.cells[task].mean:.1f} ({plain(best.name)})",
                "best baseline": None
                if bar is None
                else f"{100 * bar.mean:.1f} ({plain(bar.model)})",
                "seeds": str(row.n_seeds) if row.n_seeds else None,
                "seconds a run": row.seconds,
                "peak memory, GB": None
                if row.peak_memory_bytes is None
                else row.peak_memory_bytes / 1e9,
                "documents cut": None
                if row.truncated_documents is None
                else str(row.truncated_documents),
                "gold lost": None if row.lost_gold is None else str(row.lost_gold),
                "in its training text": "test documents" if marked(row.contamination) else None,
            }
        )
    # what is known of no task (a baseline that nobody measured, costs of printed scores) has no
    # column
    return pd.DataFrame(rows).dropna(axis="columns", how="all")


def _card(groups: Sequence[RunGroup]) -> None:
    record, brief = groups[0].records[0], groups[0].briefs[0]
    started = [b.started[:10] for g in groups for b in g.briefs]
    programs = sorted(
        {
            f"BioBench {r.provenance.biobench}, {r.provenance.device}"
            for g in groups
            for r in g.records
        }
    )
    licence = next((r.model.licence for g in groups for r in g.records if r.model.licence), None)
    about = {
        "revision": record.model.revision or "–",
        "architecture": record.model.architecture,
        "parameters": f"{record.model.parameters:,}",
        "window, tokens": ", ".join(
            str(w) for w in sorted({g.records[0].windows.max_length for g in groups})
        ),
        "weights hash": record.model.hash[:16],
        "evaluated": " – ".join(dict.fromkeys((min(started), max(started)))),
        "made with": "; ".join(programs),
        "licence": licence or "not recorded",
    }
    shown = {name: page.literal(plain(value)) for name, value in about.items()}
    if brief.revision and "/" in brief.model:
        address = f"https://huggingface.co/{brief.model}/tree/{brief.revision}"
        shown["page on the hub"] = page.link(address)
    page.facts(shown)


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
