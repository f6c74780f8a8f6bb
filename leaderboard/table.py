"""Everybody of a view in one table, and the same rows as cards for a narrow screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from biobench.report.escape import for_html
from biobench.report.names import without_revisions
from biobench.report.row import Row
from biobench.report.tasks import TASK_FAMILIES, TaskInfo
from leaderboard import page
from leaderboard.columns import LAST, Cells, column_config
from leaderboard.ranking import PROTOCOLS, Entry, Ranking

BASELINE = "best baseline without a model"
FIRST_CARDS = 20
ROW = 27
"""Pixels of a row: nineteen published models stand on one screen."""
FEW = 3
"""A row of a run with at most a third of the tasks is mostly dashes."""
MOST_ROWS = 16
"""Rows that a table shows before it scrolls."""
HERE = "background-color: rgba(0, 114, 178, 0.13)"
LINE = "background-color: rgba(128, 128, 128, 0.18)"


def shown_names(entries: Sequence[Entry]) -> dict[str, str]:
    """Name -> as it is read: the protocol is said once, above, and a revision stays where it tells
    two apart.
    """
    short = without_revisions(e.model for e in entries)
    return {
        e.name: short[e.model] if e.variant == e.protocol else f"{short[e.model]} [{e.variant}]"
        for e in entries
    }


def entry_key(entry: Entry) -> str:
    """Its name in a link."""
    return page.key_of((entry.model, entry.variant, entry.source))


def result_of(entry: Entry) -> str:
    """What a line is: published, run here, and under what."""
    kind = {"run": "run here", "frozen": "frozen encoder"}.get(entry.source, entry.source)
    if entry.mark:
        kind += f", {entry.mark}"
    if entry.protocol and entry.source != "frozen":
        kind += f", {entry.protocol}"
    return kind


Hidden = Callable[[Entry], bool]
"""Whether the choices on the page leave an entry out."""
SORTS = ("parameters", "name", *TASK_FAMILIES.values())
"""What rows may be sorted by besides tasks; anything else leaves them in the order of the ranks."""


def rows_of(ranking: Ranking, hidden: Hidden, sort: str) -> list[Entry | None]:
    """The entries on show, None for the line of baselines: below the last that is above it, or at
    the end.
    """
    is_sorted = sort in SORTS or any(sort == info.id for info in ranking.columns)
    entries = list(ranking.entries)
    if is_sorted:
        entries.sort(key=lambda entry: _sort_key(entry, sort))
    rows: list[Entry | None] = [*entries]
    if ranking.baseline and is_sorted:
        rows.append(None)
    elif ranking.baseline:
        rows.insert(_above_baseline(ranking), None)
    return [entry for entry in rows if entry is None or not hidden(entry)]


def hide_sparse(ranking: Ranking, hidden: Hidden) -> Hidden:
    """`hidden`, and runs with few of the tasks behind one line that opens."""
    few_tasks = len(ranking.shared) // FEW
    sparse = [
        entry
        for entry in ranking.entries
        if entry.is_run
        and entry.rank is None
        and len(entry.cells) <= few_tasks
        and not hidden(entry)
    ]
    if not sparse:
        return hidden
    names = {entry.name for entry in sparse}
    models = "1 model" if len(names) == 1 else f"{len(names)} models"
    span = _span([len(entry.cells) for entry in sparse])
    label = f"{page.literal(ranking.title)}: {models} with {span} of {len(ranking.shared)} tasks"
    key = f"few_{ranking.view.replace(' ', '_')}"
    if st.toggle(label, key=key, bind="query-params"):
        return hidden
    return lambda entry: hidden(entry) or entry in sparse


def _sort_key(entry: Entry, sort: str) -> tuple[bool, float, str]:
    """Entries without the value last, equal ones by name."""
    if sort == "parameters":
        return entry.parameters is None, entry.parameters or 0, entry.name
    if sort == "name":
        return False, 0.0, entry.name.casefold()
    row = entry.cells.get(sort) or entry.kinds.get(sort)
    if row is None:
        return True, 0.0, entry.name
    return False, -row.mean, entry.name


def _above_baseline(ranking: Ranking) -> int:
    """The number of ranked entries above the mean of the best baselines; all where it has none."""
    ranked = [e.mean for e in ranking.entries if e.rank is not None and e.mean is not None]
    baseline = ranking.baseline_mean
    if baseline is None:
        return len(ranked)
    return sum(mean.mean > baseline for mean in ranked)


def _baseline_cells(ranking: Ranking, tasks: Sequence[TaskInfo]) -> Cells:
    mean = ranking.baseline_mean
    return {
        "rank": None,
        "mean": None if mean is None else page.percent_cell(mean),
        **_score_cells(ranking.baseline, tasks),
        "result": "baseline",
    }


def _entry_cells(
    ranking: Ranking, entry: Entry, kinds: Sequence[str], tasks: Sequence[TaskInfo]
) -> Cells:
    cells: Cells = {"rank": entry.rank, "mean": None, "size": None}
    if entry.mean is not None:
        cells["mean"] = page.score_cell(entry.mean)
    for kind in kinds:
        if kind in entry.kinds:
            cells[kind] = page.percent_cell(entry.kinds[kind].mean)
    cells |= _score_cells(entry.cells, tasks)
    if entry.parameters:
        cells["size"] = page.ShownNumber(entry.parameters, page.millions(entry.parameters))
    cells["result"] = result_of(entry)
    return cells


def _score_cells(scores: Mapping[str, Row], tasks: Sequence[TaskInfo]) -> Cells:
    """The score of each task, and the fewest and the most seeds behind them."""
    cells: Cells = dict.fromkeys((info.id for info in tasks), None)
    for info in tasks:
        if info.id in scores:
            cells[info.id] = page.score_cell(scores[info.id])
    counts = [row.n_seeds for row in scores.values() if row.n_seeds]
    cells["seeds"] = None
    if counts:
        cells["seeds"] = page.ShownNumber(min(counts), _span(counts))
    return cells


def _span(counts: Sequence[int]) -> str:
    """``3–5``: the fewest and the most; one number where they are the same."""
    fewest, most = min(counts), max(counts)
    return str(fewest) if fewest == most else f"{fewest}–{most}"


def show_ranking(
    ranking: Ranking,
    hidden: Hidden,
    sort: str,
    *,
    several: bool,
    possible: Mapping[str, str],
) -> None:
    """Rank, name and scores first, then what is known besides.

    several: other tables stand on the page.
    possible: name -> the ranks among the runs here that the comparison leaves.
    """
    rows = rows_of(ranking, hidden, sort)
    title = f"**{page.literal(ranking.title)}**" if several else ""
    with st.container(key=f"bb_table_{ranking.view.replace(' ', '_')}", gap="xsmall"):
        if about := " · ".join(words for words in (title, _caption(ranking)) if words):
            st.markdown(about)
        if not any(rows):
            st.info("Nothing matches these filters.")
            return
        tasks = _ordered_tasks(ranking)
        asked = (asked_of(ranking, rows), tuple(possible.items()))
        lines = _table_lines(asked, page.results_state(), ranking, rows, tasks, possible)
        picked = page.show_table(
            lines,
            config=column_config(lines, tasks, ranking.average),
            shades=[_shade(entry) for entry in rows],
            height=min(len(rows) + 1, MOST_ROWS) * ROW + 8,
            row_height=ROW,
            on_select="rerun",
            selection_mode="multi-row",
            key=f"rows_{ranking.view}",
            alt=f"Scores of all models: {ranking.title}",
        )
        _offer_comparison(ranking.view, rows, picked["selection"]["rows"])


def _ordered_tasks(ranking: Ranking) -> list[TaskInfo]:
    """Shared tasks first, each half by kind."""
    place_of_type = {type: place for place, type in enumerate(TASK_FAMILIES)}

    def position(info: TaskInfo) -> tuple[bool, int]:
        return info.id not in ranking.shared, place_of_type.get(info.type, len(place_of_type))

    return sorted(ranking.columns, key=position)


def _kind_columns(ranking: Ranking) -> list[str]:
    """The kinds of task whose mean says more than other columns do.

    The mean of a kind with one task is that task's column; where every kind has one task, the
    means are the tasks themselves.
    """
    tasks_of_kind = Counter(
        TASK_FAMILIES.get(info.type) for info in ranking.columns if info.id in ranking.shared
    )
    kinds = [
        kind
        for kind in dict.fromkeys(TASK_FAMILIES.values())
        if any(kind in entry.kinds for entry in ranking.entries)
    ]
    if len(kinds) >= len(ranking.shared):
        return []
    return [kind for kind in kinds if tasks_of_kind[kind] > 1]


def asked_of(ranking: Ranking, rows: Sequence[Entry | None]) -> tuple[object, ...]:
    """What stands for a ranking and its rows on show in a cache."""
    row_keys = tuple(BASELINE if entry is None else entry_key(entry) for entry in rows)
    return (ranking.view, ranking.average, ranking.shared, ranking.protocol, row_keys)


@st.cache_resource(max_entries=64, show_spinner=False)
def _table_lines(
    asked: tuple[object, ...],
    state: str,
    _ranking: Ranking,
    _rows: Sequence[Entry | None],
    _tasks: Sequence[TaskInfo],
    _possible: Mapping[str, str],
) -> list[Cells]:
    """The cells of the rows, in the order of the columns; `asked` stands for the rows, `state` for
    the folder's content.
    """
    del asked, state
    names = shown_names(_ranking.entries)
    kinds = _kind_columns(_ranking)
    columns = ["rank", "model", "mean", *kinds, *(info.id for info in _tasks), *LAST]
    if _possible:
        columns.insert(3, "possible")
    lines = []
    for entry in _rows:
        if entry is None:
            cells = _baseline_cells(_ranking, _tasks)
            cells["model"] = page.link_to("tasks", "task", _ranking.columns[0].id, BASELINE)
        else:
            cells = _entry_cells(_ranking, entry, kinds, _tasks)
            cells["model"] = page.link_to("models", "model", entry_key(entry), names[entry.name])
            if entry.name in _possible:
                span = _possible[entry.name]
                cells["possible"] = page.ShownNumber(int(span.partition("–")[0]), span)
        lines.append({column: cells.get(column) for column in columns})
    return lines


def _shade(entry: Entry | None) -> str:
    """The ground of runs here and of the line of baselines."""
    if entry is None:
        return LINE
    return HERE if entry.is_run else ""


def _offer_comparison(view: str, rows: Sequence[Entry | None], picked: Sequence[int]) -> None:
    """A button that compares the picked models, where `compare` takes so many."""
    # a filter may have shortened the table since they were picked
    entries = [rows[position] for position in picked if position < len(rows)]
    chosen = list(dict.fromkeys(entry.name for entry in entries if entry is not None))
    if not 2 <= len(chosen) <= 5:
        return
    if st.button("Compare the picked models", type="primary", key=f"compare_{view}"):
        st.switch_page(st.session_state["pages"]["Compare"], query_params={"models": chosen})


def _caption(ranking: Ranking) -> str:
    """What is ranked, said once: tasks where these are a part, protocols."""
    sentences = []
    if ranking.shared and any(info.id not in ranking.shared for info in ranking.columns):
        sentences.append(f"Ranked over {page.literal(', '.join(ranking.shared))}.")
    if ranking.protocol:
        sentences.append(f"Ranked: {_protocol_words(ranking.protocol)}.")
    unranked_protocols = sorted(
        {entry.protocol for entry in ranking.entries} - {ranking.protocol, ""}
    )
    if unranked_protocols:
        named = "; ".join(_protocol_words(protocol) for protocol in unranked_protocols)
        sentences.append(f"Shown, not ranked: {named}.")
    if any(e.rank is None and e.protocol == ranking.protocol for e in ranking.entries):
        sentences.append("Without a rank: rows with a missing task.")
    return " ".join(sentences)


def _protocol_words(protocol: str) -> str:
    return PROTOCOLS.get(protocol) or page.literal(protocol)


def show_cards(ranking: Ranking, hidden: Hidden, sort: str) -> None:
    """The same rows for a narrow screen, the first twenty at first."""
    rows = rows_of(ranking, hidden, sort)
    count = int(st.session_state.get(f"cards_{ranking.view}", FIRST_CARDS))
    names = shown_names(ranking.entries)
    caption = _caption(ranking)
    title = f"**{page.literal(ranking.title)}**"
    st.markdown(f"{title} · {caption}" if caption else title)
    page.show_cards([_card(ranking, entry, names) for entry in rows[:count]], ranking.title)
    if count < len(rows) and st.button(
        f"{count} of {len(rows)}, show more", key=f"more_{ranking.view}"
    ):
        st.session_state[f"cards_{ranking.view}"] = count + FIRST_CARDS
        st.rerun()


def _card(ranking: Ranking, entry: Entry | None, names: Mapping[str, str]) -> str:
    if entry is None:
        cells = _escaped(_baseline_cells(ranking, ranking.columns))
        title, kind, about = f"<span>{BASELINE}</span>", "bb-line", cells["result"]
    else:
        cells = _escaped(_entry_cells(ranking, entry, (), ranking.columns))
        link = page.link_to("models", "model", entry_key(entry), "").rstrip("#")
        title = f'<a href="{for_html(link)}" target="_self">{for_html(names[entry.name])}</a>'
        kind, about = "bb-here" if entry.is_run else "", cells["result"]
        if entry.parameters:
            about += f" · {cells['size']}"
    scores = " · ".join(
        f"{for_html(info.id)} {cells[info.id]}" for info in ranking.columns if cells[info.id] != "–"
    )
    head = f"<div><b>{cells['rank']}</b>{title}<b>{cells['mean']}</b></div>"
    return f'<li class="{kind}">{head}<small>{about}<br>{scores}</small></li>'


def _escaped(cells: Cells) -> dict[str, str]:
    return {name: for_html("–" if value is None else str(value)) for name, value in cells.items()}
