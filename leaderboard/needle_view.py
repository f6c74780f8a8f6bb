"""Needle in a haystack: length x position maps, several models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import streamlit as st

from biobench.report.escape import for_html, plain
from biobench.report.groups import RunGroup
from biobench.report.needle import NeedleRow, needle_grid
from biobench.report.rows import AverageName
from leaderboard.folder import results, results_dir
from leaderboard.state import choose, start, write_link

MOST = 6
SEPARATOR = "\x1f"
_STYLE = """
<style>
.bb-maps { display: flex; flex-wrap: wrap; gap: 1.2rem 2rem; align-items: flex-start; }
.bb-map { max-width: 100%; overflow-x: auto; }
.bb-map table { border-collapse: separate; border-spacing: 2px; font-variant-numeric: tabular-nums;
  font-size: .9rem; }
.bb-map caption { caption-side: top; text-align: left; font-weight: 600; padding-bottom: .35rem; max-width: 26rem;
  overflow-wrap: anywhere; }
.bb-map caption small { font-weight: 400; opacity: .8; display: block; }
.bb-map th { font-weight: 500; padding: .2rem .5rem; text-align: right; }
.bb-map thead th { text-align: center; }
.bb-map td { padding: .45rem .6rem; text-align: center; white-space: nowrap; border-radius: .2rem; min-width: 4.4rem; }
.bb-map td small { opacity: .85; display: block; font-size: .75rem; }
.bb-map .bb-all { border: 1px solid rgba(128, 128, 128, .4); }
.bb-map .bb-beyond { background: repeating-linear-gradient(135deg, rgba(128,128,128,.25) 0 4px, transparent 4px 9px);
  opacity: .75; }
</style>
"""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here."""
    del average
    st.title(words["needle"])
    groups = [g for g in results().groups if g.briefs[0].type == "needle"]
    if not groups:
        st.info(words["no_needle"])
        st.code(f"biobench needle MODEL --results-dir {results_dir()}", language="bash")
        return
    task = choose(words["choose_task"], sorted({g.task for g in groups}), "needle_task")
    own = {g.briefs[0].model for g in groups if g.task == task}
    names = sorted(own, key=str.casefold)
    linked = [n for n in str(st.query_params.get("maps", "")).split(SEPARATOR) if n in names]
    start("maps", (linked or names)[:MOST])
    st.session_state["maps"] = [n for n in st.session_state["maps"] if n in names]
    chosen = st.multiselect(words["choose_maps"], names, key="maps", max_selections=MOST, format_func=plain)
    write_link("maps", SEPARATOR.join(chosen))
    if not chosen:
        st.info(words["pick_runs"])
        return
    st.caption(words["needle_help"])
    st.html(maps_html(_rows([g for g in groups if g.task == task], task, chosen), words))


def _rows(groups: Sequence[RunGroup], task: str, models: Sequence[str]) -> list[NeedleRow]:
    """The grids of these models from every store that has runs of them."""
    found = []
    for store in sorted({g.store.root for g in groups if g.briefs[0].model in models}):
        keys = sorted(b.key for g in groups if g.store.root == store for b in g.briefs if b.model in models)
        found += _read(str(store), task, tuple(models), tuple(keys))
    return found


@st.cache_resource(max_entries=16, show_spinner="…")
def _read(store: str, task: str, models: tuple[str, ...], keys: tuple[str, ...]) -> list[NeedleRow]:
    """`keys` stand for the runs' content."""
    del keys
    return needle_grid(Path(store), [task], models)


def maps_html(rows: Sequence[NeedleRow], words: Mapping[str, str]) -> str:
    """A table a grid: lengths down, positions across, margins last; tinted by accuracy from chance to all right."""
    grids: dict[tuple[str, str, int, int, float], list[NeedleRow]] = {}
    for row in rows:
        grids.setdefault((row.model, row.variant, row.seeds, row.window, row.majority), []).append(row)
    return f'{_STYLE}<div class="bb-maps">{"".join(_map(own, words) for own in grids.values())}</div>'


def _map(rows: Sequence[NeedleRow], words: Mapping[str, str]) -> str:
    first = rows[0]
    name = f"{first.model} [{first.variant}]" if first.variant else first.model
    about = (
        f"{first.seeds} {words['seeds']} · {words['window']} {first.window} · "
        f"{words['majority']} {100 * first.majority:.1f}"
    )
    cells = {(row.length, row.position): row for row in rows}
    lengths, positions = ([*dict.fromkeys(getattr(r, k) for r in rows)] for k in ("length", "position"))
    head = "".join(f'<th scope="col">{for_html(_name(p, words))}</th>' for p in positions)
    body = "".join(
        f'<tr><th scope="row">{words["all_lengths"] if length is None else length}</th>'
        + "".join(_cell(cells[length, position], words) for position in positions)
        + "</tr>"
        for length in lengths
    )
    return (
        f'<div class="bb-map" tabindex="0"><table><caption>{for_html(name)}<small>{for_html(about)}</small></caption>'
        f'<thead><tr><th scope="col">{for_html(words["length"])}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _name(position: str | None, words: Mapping[str, str]) -> str:
    return words["all_positions"] if position is None else words.get(f"position_{position}", position)


def _cell(row: NeedleRow, words: Mapping[str, str]) -> str:
    if row.score is None or row.low is None or row.high is None:
        return f'<td class="bb-beyond" title="{for_html(words["beyond"])}">{for_html(words["not_read"])}</td>'
    whole = row.length is None or row.position is None
    share = min(max(2 * row.score - 1, 0.0), 1.0)
    title = for_html(f"{row.documents} {words['documents_found']}, {row.groups} {words['pairs']}")
    return (
        f'<td class="{"bb-all" if whole else ""}" style="background: rgba(0, 114, 178, {0.04 + 0.46 * share:.2f})" '
        f'title="{title}">{100 * row.score:.1f}<small>{100 * row.low:.1f}–{100 * row.high:.1f}</small></td>'
    )
