"""Everybody of a view in one table, and the same rows as cards for a narrow screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from biobench.report.entrants import line_name
from biobench.report.names import without_revisions
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
    short = without_revisions(entry.model for entry in entries)
    names = {}
    for entry in entries:
        variant = "" if entry.variant == entry.protocol else entry.variant
        names[entry.name] = line_name(short[entry.model], variant)
    return names


def entry_key(entry: Entry) -> str:
    """Its name in a link."""
    return page.key_of(entry.line)


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


def rows_of(ranking: Ranking, hidden: Hidden, sort: str) -> list[Entry | None]:
    """The entries on show, None for the line of baselines: below the last that is above it, or at
    the end of what is sorted otherwise. sort: a column, ``mean`` for the order of the ranks.
    """
    rows: list[Entry | None] = sorted(ranking.entries, key=partial(_sort_key, sort=sort))
    position = len(rows)
    if sort == "mean":
        position = _above_baseline(ranking)
    if ranking.baseline:
        rows.insert(position, None)
    return [entry for entry in rows if entry is None or not hidden(entry)]


def hide_sparse(ranking: Ranking, hidden: Hidden) -> Hidden:
    """`hidden`, and runs with few of the tasks behind one line that opens."""
    few_tasks = len(ranking.shared) // FEW
    sparse = []
    for entry in ranking.entries:
        is_sparse = entry.is_run and entry.rank is None and len(entry.cells) <= few_tasks
        if is_sparse and not hidden(entry):
            sparse.append(entry)
    if not sparse:
        return hidden
    count = len({entry.name for entry in sparse})
    models = "1 model" if count == 1 else f"{count} models"
    span = _span([len(entry.cells) for entry in sparse])
    label = f"{page.literal(ranking.title)}: {models} with {span} of {len(ranking.shared)} tasks"
    key = f"few_{ranking.view.replace(' ', '_')}"
    if st.toggle(label, key=key, bind="query-params"):
        return hidden
    return lambda entry: hidden(entry) or entry in sparse


def _sort_key(entry: Entry, sort: str) -> tuple[bool, float, str]:
    """Entries without the value last."""
    if sort == "name":
        return False, 0.0, entry.name.casefold()
    if sort == "parameters":
        return entry.parameters is None, entry.parameters or 0, ""
    row = entry.cells.get(sort) or entry.kinds.get(sort)
    return row is None, 0.0 if row is None else -row.mean, ""


def _above_baseline(ranking: Ranking) -> int:
    """The number of ranked entries above the mean of the best baselines; all where it has none."""
    baseline = ranking.baseline_mean
    above = 0
    for entry in ranking.entries:
        if entry.rank is not None and entry.mean is not None:
            above += baseline is None or entry.mean.mean > baseline
    return above


def _cells(ranking: Ranking, entry: Entry | None) -> Cells:
    """What is known of an entry, or of the best baselines: column -> cell."""
    if entry is None:
        scores, cells = ranking.baseline, Cells(result="baseline")
        if ranking.baseline_mean is not None:
            cells["mean"] = page.percent_cell(ranking.baseline_mean)
    else:
        scores, cells = entry.cells, Cells(rank=entry.rank, result=result_of(entry))
        if entry.mean is not None:
            cells["mean"] = page.score_cell(entry.mean)
        for kind, row in entry.kinds.items():
            cells[kind] = page.percent_cell(row.mean)
        if entry.parameters:
            cells["size"] = page.ShownNumber(entry.parameters, page.millions(entry.parameters))
    for task, row in scores.items():
        cells[task] = page.score_cell(row)
    counts = [row.n_seeds for row in scores.values() if row.n_seeds]
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
        lines = _table_lines(ranking, rows, tasks, possible)
        shades = []
        for entry in rows:
            if entry is None:
                shades.append(LINE)
            else:
                shades.append(HERE if entry.is_run else "")
        picked = page.show_table(
            lines,
            config=column_config(lines, tasks, ranking.average),
            shades=shades,
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
    order = [*TASK_FAMILIES]

    def position(info: TaskInfo) -> tuple[bool, int]:
        place = order.index(info.type) if info.type in order else len(order)
        return info.id not in ranking.shared, place

    return sorted(ranking.columns, key=position)


def _kind_columns(ranking: Ranking) -> list[str]:
    """The kinds of task whose mean says more than other columns do.

    The mean of a kind with one task is that task's column; where every kind has one task, the
    means are the tasks themselves.
    """
    times: Counter[str] = Counter()
    for info in ranking.columns:
        if info.id in ranking.shared and info.type in TASK_FAMILIES:
            times[TASK_FAMILIES[info.type]] += 1
    shown_kinds: set[str] = set()
    for entry in ranking.entries:
        shown_kinds |= entry.kinds.keys()
    kinds = dict.fromkeys(TASK_FAMILIES.values())
    return [kind for kind in kinds if kind in shown_kinds and times[kind] > 1]


def _table_lines(
    ranking: Ranking,
    rows: Sequence[Entry | None],
    tasks: Sequence[TaskInfo],
    possible: Mapping[str, str],
) -> list[Cells]:
    """The cells of the rows, in the order of the columns."""
    names = shown_names(ranking.entries)
    columns = ["rank", "model", "mean", *_kind_columns(ranking)]
    columns += [*(info.id for info in tasks), *LAST]
    if possible:
        columns.insert(3, "possible")
    lines = []
    for entry in rows:
        cells = _cells(ranking, entry)
        if entry is None:
            cells["model"] = page.link_to("tasks", "task", ranking.columns[0].id, BASELINE)
        else:
            cells["model"] = page.link_to("models", "model", entry_key(entry), names[entry.name])
            if entry.name in possible:
                span = possible[entry.name]
                cells["possible"] = page.ShownNumber(int(span.partition("–")[0]), span)
        lines.append({column: cells.get(column) for column in columns})
    return lines


def _offer_comparison(view: str, rows: Sequence[Entry | None], picked: Sequence[int]) -> None:
    """A button that compares the picked models, where `compare` takes so many."""
    chosen: dict[str, None] = {}
    for position in picked:
        # a filter may have shortened the table since they were picked
        entry = rows[position] if position < len(rows) else None
        if entry is not None:
            chosen[entry.name] = None
    if not 2 <= len(chosen) <= 5:
        return
    if st.button("Compare the picked models", type="primary", key=f"compare_{view}"):
        st.switch_page(st.session_state["pages"]["Compare"], query_params={"models": [*chosen]})


def _caption(ranking: Ranking) -> str:
    """What is ranked, said once: tasks where these are a part, protocols."""
    sentences = []
    if ranking.shared and len(ranking.shared) < len(ranking.columns):
        sentences.append(f"Ranked over {page.literal(', '.join(ranking.shared))}.")
    if ranking.protocol:
        sentences.append(f"Ranked: {_protocol_words(ranking.protocol)}.")
    others = {entry.protocol for entry in ranking.entries} - {ranking.protocol, ""}
    if others:
        named = "; ".join(map(_protocol_words, sorted(others)))
        sentences.append(f"Shown, not ranked: {named}.")
    if any(e.rank is None and e.protocol == ranking.protocol for e in ranking.entries):
        sentences.append("Without a rank: rows with a missing task.")
    return " ".join(sentences)


def _protocol_words(protocol: str) -> str:
    return PROTOCOLS.get(protocol) or page.literal(protocol)


def show_cards(ranking: Ranking, hidden: Hidden, sort: str) -> None:
    """The same rows for a narrow screen, the first twenty at first."""
    names = shown_names(ranking.entries)
    st.markdown(f"**{page.literal(ranking.title)}** {_caption(ranking)}")
    rows, key = rows_of(ranking, hidden, sort), f"cards_{ranking.view}"
    count = int(st.session_state.get(key, FIRST_CARDS))
    cards = [_card(ranking, entry, names) for entry in rows[:count]]
    page.show_cards(cards, ranking.title)
    label = f"{count} of {len(rows)}, show more"
    if count < len(rows) and st.button(label, key=f"more_{ranking.view}"):
        st.session_state[key] = count + FIRST_CARDS
        st.rerun()


def _card(ranking: Ranking, entry: Entry | None, names: Mapping[str, str]) -> str:
    cells = _cells(ranking, entry)
    about = [cells["result"]]
    if "size" in cells:
        about.append(cells["size"])
    for info in ranking.columns:
        if info.id in cells:
            about.append(f"{info.id} {cells[info.id]}")
    mean = cells.get("mean", "–")
    if entry is None:
        return page.card(BASELINE, mean, about, kind="bb-line")
    name = names[entry.name]
    if entry.rank is not None:
        name = f"{entry.rank}. {name}"
    link = page.link_to("models", "model", entry_key(entry), "").rstrip("#")
    return page.card(name, mean, about, link=link, kind="bb-here" if entry.is_run else "")
