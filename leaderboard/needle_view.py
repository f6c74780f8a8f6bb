"""Needle in a haystack: length x position maps, several models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from biobench.errors import BioBenchError
from biobench.report import charts
from biobench.report.details.needle import CHANCE, NO_EXAMPLE, NOT_READ, NeedleGrid, grid_of
from biobench.report.escape import for_html, plain
from biobench.report.groups import RunGroup
from biobench.report.printers import plain_note
from biobench.report.row import AverageName
from leaderboard.draw import draw, show_table
from leaderboard.folder import inside, results, results_dir
from leaderboard.launch import is_public
from leaderboard.state import SEPARATOR, choose, several_from_link, start, write_link
from leaderboard.table import key_of, literal, shown_names, titles_of

MOST = 6
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
        if not is_public():
            st.code(f"biobench needle MODEL --results-dir {results_dir().name}", language="bash")
        return
    task = choose(words["choose_task"], sorted({g.task for g in groups}), "needle_task")
    group_of = {key_of(g): g for g in groups if g.task == task}
    names = sorted(group_of, key=str.casefold)
    linked = several_from_link("maps", names)
    start("maps", (linked or names)[:MOST])
    st.session_state["maps"] = [n for n in st.session_state["maps"] if n in names]
    chosen = st.multiselect(
        words["choose_maps"], names, key="maps", max_selections=MOST, format_func=titles_of(names, words).__getitem__
    )
    write_link("maps", SEPARATOR.join(chosen))
    if not chosen:
        st.info(words["pick_runs"])
        return
    grids = sorted(
        _grids([group_of[name] for name in chosen], words),
        key=lambda g: (-(g.reads_up_to or 0), -g.over_all_lengths, g.model),
    )
    if grids:
        _ranking(grids, words)
        st.caption(words["needle_help"])
        st.html(maps_html(grids, words))


def _ranking(ranked: Sequence[NeedleGrid], words: Mapping[str, str]) -> None:
    """Who reads furthest, then who answers best over all lengths; accuracy by length, a line a model."""
    names = list(zip(ranked, shown_names(ranked, words), strict=True))
    rows = [
        {"model": name, "length": length, "score": 100 * (share.mean if share else CHANCE), "read": share is not None}
        for grid, name in names
        for length in grid.lengths
        for share in [grid.share(length)]
    ]
    reach = ", ".join(f"{name} {grid.reads_up_to or '–'}" for grid, name in names)
    draw(charts.lengths(rows, ranked[0].unit, words), f"{words['alt_needle']}; {words['reads_up_to']}: {reach}")
    lengths = sorted({n for grid in ranked for n in grid.lengths})
    table = [
        {
            words["model"]: name,
            words["reads_up_to"]: grid.reads_up_to,
            words["over_all"]: 100 * grid.over_all_lengths,
            words["window_short_head"]: grid.window,
        }
        | {str(n): 100 * share.mean if share else None for n in lengths for share in [grid.share(n)]}
        for grid, name in names
    ]
    digits = dict.fromkeys((words["over_all"], *(str(n) for n in lengths)), 1)
    whole = st.column_config.NumberColumn(format="%d")
    config = {words["model"]: st.column_config.TextColumn(pinned=True)}
    config |= {words[key]: whole for key in ("reads_up_to", "window_short_head")}
    show_table(pd.DataFrame(table), digits, config=config, alt=words["alt_needle"])
    st.caption(words["reads_help"])


def show_maps(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    """The maps of one model's groups, named by their tasks; one that cannot be read says why and leaves the others."""
    grids = _grids(groups, words)
    if grids:
        st.html(maps_html(grids, words, [grid.task for grid in grids]))


def _grids(groups: Sequence[RunGroup], words: Mapping[str, str]) -> list[NeedleGrid]:
    grids = []
    for group in groups:
        try:
            grids.append(_read(str(group.store.root), _state(group), group))
        except BioBenchError as error:
            st.warning(
                literal(f"{plain(group.model)}: {plain_note(inside(error.what))}; {plain_note(inside(error.hint))}")
            )
    return grids


def _state(group: RunGroup) -> str:
    """Changes when a run is made again or scored again."""
    return repr([(b.key, b.started, b.scores) for b in group.briefs])


@st.cache_resource(max_entries=32, show_spinner="…")
def _read(store: str, state: str, _group: RunGroup) -> NeedleGrid:
    """`store` and `state` stand for the runs."""
    del store, state
    return grid_of(_group)


def maps_html(grids: Sequence[NeedleGrid], words: Mapping[str, str], names: Sequence[str] = ()) -> str:
    """A table a grid: lengths down, positions across, margins last; tinted by accuracy from chance to all right.

    names: what each is called, its model unless given.
    """
    maps = "".join(_map(g, name, words) for g, name in zip(grids, names or shown_names(grids, words), strict=True))
    return f'{_STYLE}<div class="bb-maps">{maps}</div>'


def _map(grid: NeedleGrid, name: str, words: Mapping[str, str]) -> str:
    about = (
        f"{len(grid.seeds)} {words['seeds']} · {words['window']} {grid.window} · "
        f"{words['majority']} {100 * grid.majority:.1f}"
    )
    positions: tuple[str | None, ...] = (*grid.positions, None)
    head = "".join(f'<th scope="col">{for_html(_name(p, words))}</th>' for p in positions)
    body = "".join(
        f'<tr><th scope="row">{words["all_lengths"] if length is None else length}</th>'
        + "".join(_cell(grid, length, position, words) for position in positions)
        + "</tr>"
        for length in (*grid.lengths, None)
    )
    return (
        f'<div class="bb-map" tabindex="0"><table><caption>{for_html(name)}<small>{for_html(about)}</small></caption>'
        f'<thead><tr><th scope="col">{for_html(grid.unit)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _name(position: str | None, words: Mapping[str, str]) -> str:
    return words["all_positions"] if position is None else words.get(f"position_{position}", position)


def _cell(grid: NeedleGrid, length: int | None, position: str | None, words: Mapping[str, str]) -> str:
    share = grid.share(length, position)
    if share is None:
        beyond = grid.missing(length) == NOT_READ
        title = f' title="{for_html(words["beyond"])}"' if beyond else ""
        return f'<td class="bb-beyond"{title}>{for_html(words["not_read"] if beyond else NO_EXAMPLE)}</td>'
    strength = min(max(2 * share.mean - 1, 0.0), 1.0)
    mean, low, high = (f"{100 * x:.1f}" for x in (share.mean, share.low, share.high))
    title = for_html(f"{share.documents} {words['documents_found']}, {share.groups} {words['pairs']}")
    return (
        f'<td class="{"bb-all" if length is None or position is None else ""}" '
        f'style="background: rgba(0, 114, 178, {0.04 + 0.46 * strength:.2f})" '
        f'title="{title}">{mean}<small>{low}–{high}</small></td>'
    )
