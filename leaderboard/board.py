"""Page one: who is best, where the runs here stand and whether it is sure; then everybody in one
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter

import streamlit as st

from biobench.comparison.verdict import joined
from biobench.core.grouped import grouped
from biobench.reporting.frame import Report, build
from biobench.reporting.printers import render
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName
from biobench.reporting.tasks import TASK_FAMILIES
from biobench.version import __version__
from leaderboard import page
from leaderboard.choices import (
    ANY,
    AVERAGES,
    choose,
    choose_average,
    choose_several,
    warn_of_others,
)
from leaderboard.costs import show_costs
from leaderboard.headline import SMALL, show_headline
from leaderboard.ranking import Entry, Ranking, possible_ranks, title_of, view_of, views
from leaderboard.ranking import ranking as rank_view
from leaderboard.table import fold_sparse, show_cards, show_ranking

BOTH = "French and English"
SIZES = {
    "any size": None,
    "under 50 M": 50_000_000,
    "under 150 M": SMALL,
    "under 400 M": 400_000_000,
}
"""Choice -> the number of parameters that a model stays below."""
MOST_NOTES = 10
POSSIBLE = (
    "Possible: the ranks among the runs here that the comparison of their means leaves open "
    "(95%, corrected by Holm for all pairs)."
)
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
    for view in choices.views:
        ranking = ranked(loaded, view, choices.tasks, choices.protocol, choices.average)
        if ranking.entries:
            rankings.append(ranking)
        else:
            average = AVERAGES[choices.average]
            st.info(f"{page.literal(ranking.title)}: nothing here has a score under {average}.")
    if loaded.refusals and not loaded.groups:
        page.say_no_runs()
    if rankings:
        with summary:
            _show_headlines(rankings, loaded)
        shown = _show_tables(rankings, choices, loaded)
        _about(rankings, choices.average)
        show_costs(shown)
    _foot(loaded, choices)


def _show_headlines(rankings: Sequence[Ranking], loaded: Results) -> None:
    """A card for each view, side by side."""
    for column, ranking in zip(st.columns(len(rankings)), rankings, strict=True):
        with column.container(border=True, height="stretch"):
            show_headline(ranking, loaded)


def _show_tables(rankings: Sequence[Ranking], choices: Choices, loaded: Results) -> list[Ranking]:
    """The table of each view, and the same rows as cards. Gives the rankings with the entries that
    are on show.
    """
    several = len(rankings) > 1
    shown = []
    hints = ["Tick two to five rows to compare them (Space, by keyboard)."]
    for ranking in rankings:
        # ranks are among everybody, whatever the choices leave out
        make = partial(possible_ranks, loaded, ranking)
        possible = page.made_once(make, "possible ranks", *ranking.key)
        if possible and POSSIBLE not in hints:
            hints.append(POSSIBLE)
        chosen = ranking.of_entries(choices.allows)
        # whoever searches is shown all that match
        if not choices.words:
            chosen = fold_sparse(chosen)
        show_ranking(chosen, choices.sort, several=several, possible=possible)
        shown.append(chosen)
    with st.container(key="bb_table_hints"):
        st.caption(" ".join(hints))
    with st.container(key="bb_cards"):
        for ranking in shown:
            show_cards(ranking, choices.sort)
        st.page_link(st.session_state["pages"]["Compare"], label="Compare two to five models")
    return shown


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

    def allows(self, entry: Entry) -> bool:
        """Whether its size and name are those that are looked for."""
        if self.most_parameters is not None:
            size = entry.known_parameters
            if size is None or size >= self.most_parameters:
                return False
        return all(word in entry.name.casefold() for word in self.words)


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
        size = choose("Size", list(SIZES), "size", width=130, label_visibility="collapsed")
        columns = _tasks_of(chosen_views, loaded)
        by = ["mean", *dict.fromkeys(TASK_FAMILIES.values()), *columns, "parameters", "name"]
        shown_as = {"mean": "sort by mean"}
        sort = choose("Sort by", by, "sort", shown_as, width=160, label_visibility="collapsed")
        average = choose_average(("paper", "macro"), width=145, label_visibility="collapsed")
        with st.popover("Tasks and runs"):
            tasks = choose_several(
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
    if {"fr", "en"} <= {*available}:
        options[BOTH] = ("fr", "en")
    options |= {title_of(view): (view,) for view in available}
    opening = 0
    ran_views = {view_of(loaded.infos[group.task]) for group in loaded.groups}
    with_scores = sorted(ran_views.intersection(available))
    if with_scores and all(view.startswith("other ") for view in ran_views):
        opening = list(options).index(title_of(with_scores[0]))
    warn_of_others("suite", options.keys())
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
    names = {ANY: "full, where anybody has it", "": "full protocol"}
    protocols: set[str] = set()
    for view in chosen_views:
        everybody = ranked(loaded, view, average=average)
        protocols.update(entry.protocol for entry in everybody.entries)
    options = [ANY, *sorted(protocols)]
    chosen = choose("Rank the runs under", options, "protocol", names)
    return None if chosen == ANY else chosen


def _about(rankings: Sequence[Ranking], average: AverageName) -> None:
    """What holds for all tables, once."""
    entries = chain.from_iterable(ranking.entries for ranking in rankings)
    has_published = any(entry.source == "published" for entry in entries)
    averaging = "Each task counts by the average that its spec names."
    if average == "macro":
        averaging = "Each task counts by macro F1; a published score only where it is one."
    elif has_published:
        averaging = (
            "Each task counts by the average that we read in its publications; the task's page "
            "says where they state none or another."
        )
    sentences = [
        f"Percent. {averaging} ± is half the 95% interval over seeds.",
        "The mean is over corpora: tasks of one corpus count once, by their own mean, so it may "
        "differ from a mean that a publication prints.",
        *_one_corpus(rankings),
        "Blue rows are runs here; the grey row is the best baseline without an encoder.",
    ]
    if has_published:
        sentences.append(
            "Differences to published scores that are printed without spread are not tested."
        )
        sentences.append(
            "CLM detour: pretrained for a while to predict the next word; MLM: to fill in hidden "
            "words; 25B: billions of training tokens."
        )
    st.caption(" ".join(sentences))


def _one_corpus(rankings: Sequence[Ranking]) -> Iterator[str]:
    """Which of the tasks on show are of one corpus."""
    for ranking in rankings:
        by_corpus = grouped(ranking.columns, attrgetter("corpus"))
        for infos in by_corpus.values():
            if len(infos) > 1:
                names = joined([info.id for info in infos])
                yield f"{page.literal(names)} are of one corpus."


def _report(choices: Choices, loaded: Results) -> Report:
    """The table of `biobench report` over the tasks on show."""
    return build(loaded, choices.average, tasks=_tasks_of(choices.views, loaded))


def _tasks_of(chosen_views: Sequence[str], loaded: Results) -> list[str]:
    """Ids of the tasks that some views show."""
    return [task for task, info in loaded.infos.items() if view_of(info) in chosen_views]


def _notes(choices: Choices, loaded: Results) -> list[str]:
    return list(_report(choices, loaded).notes)


def _download(format: str, choices: Choices, loaded: Results) -> str:
    return render(_report(choices, loaded), format)


def _last_day(loaded: Results) -> str:
    """When the last run started, as a sentence goes on; empty without runs."""
    days = [""]
    for group in loaded.groups:
        days.append(max(brief.started[:10] for brief in group.briefs))
    last_day = max(days)
    return f" · last run {last_day}" if last_day else ""


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
        st.caption(
            "And every corpus that the results rest on: `biobench export MODEL --format bibtex`."
        )
    st.caption(f"BioBench {__version__}{page.made_once(partial(_last_day, loaded), 'last day')}")
