"""Page one: who is best, where the runs here stand and whether it is sure; then everybody in one
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from biobench.report.frame import Report, build
from biobench.report.printers import render
from biobench.report.results import Results
from biobench.report.row import AverageName
from biobench.report.tasks import TASK_FAMILIES
from biobench.version import __version__
from leaderboard import page
from leaderboard.costs import show_costs
from leaderboard.headline import SMALL, show_headline
from leaderboard.ranking import Entry, Ranking, possible_ranks, title_of, view_of, views
from leaderboard.ranking import ranking as rank_view
from leaderboard.table import Hidden, hide_sparse, show_cards, show_ranking

BOTH = "French and English"
SIZES = {
    "any size": None,
    "under 50 M": 50_000_000,
    "under 150 M": SMALL,
    "under 400 M": 400_000_000,
}
"""Choice -> the number of parameters that a model stays below."""
FULL_PROTOCOL = "full protocol"
SMALL_PROTOCOL = "small protocol"
MOST_NOTES = 10
FORMATS = {
    "csv": "text/csv",
    "json": "application/json",
    "md": "text/markdown",
    "latex": "text/x-tex",
}
CITATION = """@software{{biobench,
  title   = {{BioBench: benchmark suite and leaderboard for biomedical encoders
             in French and English}},
  author  = {{{{The BioBench authors}}}},
  version = {{{version}}}
}}"""


def ranked(
    loaded: Results,
    view: str,
    tasks: tuple[str, ...] = (),
    protocol: str | None = None,
    average: AverageName = "paper",
) -> Ranking:
    """`ranking`, kept while the folder's content is the same."""
    make = partial(rank_view, loaded, view, tasks, protocol, average)
    return page.made_once(make, "ranking", view, tasks, protocol, average)


def show() -> None:
    """Draw the page."""
    st.title("Biomedical encoders: published models and the runs here")
    loaded = page.results()
    available = views(loaded)
    if not available:
        page.say_no_runs()
        return
    summary = st.container()
    choices = _choices(loaded, available)
    rankings = []
    hidden_lines = 0
    for view in choices.views:
        everybody = ranked(loaded, view, choices.tasks, choices.protocol, choices.average)
        if not everybody.entries:
            average = page.AVERAGES[choices.average]
            st.info(f"{page.literal(everybody.title)}: nothing here has a score under {average}.")
            continue
        ranking = without_small_runs(everybody)
        hidden_lines += len(everybody.entries) - len(ranking.entries)
        rankings.append(ranking)
    if loaded.refusals and not loaded.groups:
        page.say_no_runs()
    if rankings:
        with summary:
            _show_headlines(rankings, loaded)
        hidden_of = _show_tables(rankings, choices, loaded)
        _about(rankings, choices.average, hidden_lines)
        show_costs(rankings, hidden_of)
    _foot(loaded, choices)


def _show_headlines(rankings: Sequence[Ranking], loaded: Results) -> None:
    """A card for each view, side by side."""
    for column, ranking in zip(st.columns(len(rankings)), rankings, strict=True):
        with column.container(border=True, height="stretch"):
            show_headline(ranking, loaded)


def _show_tables(
    rankings: Sequence[Ranking], choices: Choices, loaded: Results
) -> dict[str, Hidden]:
    """The table of each view, and the same rows as cards. Gives which entries each one hides."""
    hidden_of: dict[str, Hidden] = {}
    for ranking in rankings:
        hidden = hide_sparse(ranking, choices.hides)
        hidden_of[ranking.view] = hidden
        ranks = partial(possible_ranks, loaded, ranking)
        possible = page.made_once(ranks, "possible ranks", *ranking.key)
        several = len(rankings) > 1
        show_ranking(ranking, hidden, choices.sort, several=several, possible=possible)
    with st.container(key="bb_cards"):
        for ranking in rankings:
            show_cards(ranking, hidden_of[ranking.view], choices.sort)
    return hidden_of


@dataclass(frozen=True, slots=True)
class Choices:
    """What a reader chose. tasks: those that are ranked over, none for all; protocol: None for the
    full one where anybody has it; words: of the search.
    """

    views: tuple[str, ...]
    tasks: tuple[str, ...]
    protocol: str | None
    average: AverageName
    sort: str
    most_parameters: int | None
    words: tuple[str, ...]

    def hides(self, entry: Entry) -> bool:
        """Whether size or name leave an entry out."""
        size = entry.known_parameters
        if self.most_parameters is not None and (size is None or size >= self.most_parameters):
            return True
        return not all(word in entry.name.casefold() for word in self.words)


def _choices(loaded: Results, available: Sequence[str]) -> Choices:
    """One row of choices; those that few need stand behind a button."""
    with st.container(horizontal=True, vertical_alignment="center", key="bb_choices"):
        chosen_views = _choose_views(loaded, available)
        search = st.text_input(
            "Search models",
            key="search",
            max_chars=200,
            bind="query-params",
            width=190,
            placeholder="Search models",
            label_visibility="collapsed",
        )
        size = page.choose("Size", list(SIZES), "size", width=130, label_visibility="collapsed")
        columns = _tasks_of(chosen_views, loaded)
        by = ["mean", *dict.fromkeys(TASK_FAMILIES.values()), *columns, "parameters", "name"]
        shown_as = {"mean": "sort by mean"}
        sort = page.choose("Sort by", by, "sort", shown_as, width=160, label_visibility="collapsed")
        average = page.choose_average(("paper", "macro"), width=145, label_visibility="collapsed")
        with st.popover("Tasks and runs"):
            tasks = page.choose_several(
                "Rank over these tasks", columns, "tasks", placeholder="all of the suite"
            )
            protocol = _choose_protocol(loaded, chosen_views, average)
    return Choices(
        views=chosen_views,
        tasks=tuple(tasks),
        protocol=protocol,
        average=average,
        sort=sort,
        most_parameters=SIZES[size],
        words=tuple(search.casefold().split()),
    )


def _choose_views(loaded: Results, available: Sequence[str]) -> tuple[str, ...]:
    """Both languages at first; where the runs here are on neither's tasks, the view that has
    them.
    """
    options: dict[str, tuple[str, ...]] = {}
    languages = tuple(view for view in available if view in ("fr", "en"))
    if len(languages) > 1:
        options[BOTH] = languages
    options |= {title_of(view): (view,) for view in available}
    opening = 0
    ran_views = {view_of(loaded.infos[group.task]) for group in loaded.groups}
    with_scores = sorted(ran_views.intersection(available))
    if with_scores and all(view.startswith("other ") for view in ran_views):
        opening = list(options).index(title_of(with_scores[0]))
    chosen = st.radio(
        "Suite",
        list(options),
        opening,
        key="suite",
        bind="query-params",
        horizontal=True,
        label_visibility="collapsed",
    )
    return options[chosen]


def _choose_protocol(
    loaded: Results, chosen_views: Sequence[str], average: AverageName
) -> str | None:
    """The protocol whose runs are ranked; None for the full one where anybody has it."""
    names = {page.ANY: "the full protocol, where anybody has it"}
    protocols: set[str] = set()
    for view in chosen_views:
        everybody = ranked(loaded, view, average=average)
        protocols.update(entry.protocol for entry in everybody.entries)
    options = [page.ANY, *(protocol or FULL_PROTOCOL for protocol in sorted(protocols))]
    chosen = page.choose("Rank the runs under", options, "protocol", names)
    if chosen == page.ANY:
        return None
    return chosen if chosen != FULL_PROTOCOL else ""


def without_small_runs(ranking: Ranking) -> Ranking:
    """Without the runs under the small protocol, unless it is the one that is ranked."""
    if SMALL_PROTOCOL in ranking.protocol:
        return ranking
    entries = []
    tasks_left = set(ranking.shared)
    for entry in ranking.entries:
        if SMALL_PROTOCOL not in entry.protocol:
            entries.append(entry)
            tasks_left |= entry.cells.keys()
    return replace(
        ranking,
        entries=tuple(entries),
        columns=tuple(info for info in ranking.columns if info.id in tasks_left),
        best_runs=tuple(b for b in ranking.best_runs if SMALL_PROTOCOL not in b.protocol),
    )


def _about(rankings: Sequence[Ranking], average: AverageName, hidden_lines: int) -> None:
    """What holds for all tables, once. hidden_lines: of runs under the small protocol."""
    has_published = any(not entry.is_run for ranking in rankings for entry in ranking.entries)
    named_by = "publications print" if has_published else "its spec names"
    averaging = f"Each task counts by the average that {named_by}."
    if average == "macro":
        averaging = "Each task counts by macro F1; a published score only where it is one."
    marks = [
        f"Percent. {averaging} ± is half the 95% interval over seeds.",
        "Blue rows are runs here; the grey row is the best baseline without a model on each task.",
    ]
    if has_published:
        marks.append(
            "Differences to published scores that are printed without spread are not tested."
        )
    if hidden_lines:
        lines = "1 line is" if hidden_lines == 1 else f"{hidden_lines} lines are"
        marks.append(
            f"Not shown: {lines} under the {SMALL_PROTOCOL}; “Tasks and runs” ranks them on their "
            f"own."
        )
    st.caption(" ".join(marks))


def _report(choices: Choices, loaded: Results) -> Report:
    """The table of `biobench report` over the tasks on show."""
    return build(loaded, choices.average, tasks=_tasks_of(choices.views, loaded))


def _tasks_of(chosen_views: Sequence[str], loaded: Results) -> list[str]:
    """Ids of the tasks that some views show."""
    tasks = []
    for task, info in loaded.infos.items():
        if view_of(info) in chosen_views:
            tasks.append(task)
    return tasks


def _notes(choices: Choices, loaded: Results) -> list[str]:
    return list(_report(choices, loaded).notes)


def _download(format: str, choices: Choices, loaded: Results) -> str:
    return render(_report(choices, loaded), format)


def _last_day(loaded: Results) -> str:
    """When the last run started, as a sentence goes on; empty without runs."""
    days = [brief.started[:10] for group in loaded.groups for brief in group.briefs]
    return f" · last run {max(days)}" if days else ""


def _foot(loaded: Results, choices: Choices) -> None:
    """Findings, notes, downloads and citation."""
    page.show_findings(loaded.findings, "Findings in the results folder", expanded=True)
    asked = ("notes", choices.views, choices.average)
    notes = page.made_once(partial(_notes, choices, loaded), *asked)
    page.show_notes("Notes", notes, MOST_NOTES)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Download", width="content")
        for format, mime in FORMATS.items():
            file = f"biobench.{'tex' if format == 'latex' else format}"
            # made when somebody asks for it: large folders take a while
            content = partial(_download, format, choices, loaded)
            st.download_button(format, content, file, mime, key=f"download_{format}")
    with st.expander("Cite"):
        st.code(CITATION.format(version=__version__), language="bibtex")
        st.caption("And every corpus that the results rest on: `biobench export --format bibtex`.")
    st.caption(f"BioBench {__version__}{page.made_once(partial(_last_day, loaded), 'last day')}")
