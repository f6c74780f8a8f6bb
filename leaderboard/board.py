"""Page one: who is best, where the runs here stand and whether it is sure; then everybody in one
table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from biobench.comparison.result import PairResult
from biobench.report.frame import build
from biobench.report.names import in_sentences
from biobench.report.printers import render
from biobench.report.results import Results
from biobench.report.tasks import TASK_FAMILIES, TaskInfo
from biobench.version import __version__
from leaderboard import page
from leaderboard.best_runs import (
    BestRun,
    best_run_facts,
    best_run_sentence,
    rival_sentence,
    verdict_on,
)
from leaderboard.costs import show_costs
from leaderboard.launch import is_public
from leaderboard.ranking import Entry, Ranking, possible_ranks, title_of, view_of, views
from leaderboard.ranking import ranking as rank_view
from leaderboard.table import Hidden, hide_sparse, show_cards, show_ranking, shown_names

BOTH = "French and English"
SIZES = {
    "any size": None,
    "under 50 M": 50_000_000,
    "under 150 M": 150_000_000,
    "under 400 M": 400_000_000,
}
"""Choice -> the number of parameters that a model stays below."""
SMALL = SIZES["under 150 M"] or 0
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


@st.cache_resource(max_entries=64, show_spinner=False)
def ranked(
    view: str, tasks: tuple[str, ...], protocol: str | None, state: str, _loaded: Results
) -> Ranking:
    """`ranking` of a folder; `state` stands for its content."""
    del state
    return rank_view(_loaded, view, tasks, protocol)


@st.cache_data(max_entries=64, show_spinner="Comparing the runs")
def ranks_of_runs(
    view: str,
    tasks: tuple[str, ...],
    protocol: str,
    state: str,
    _loaded: Results,
    _ranking: Ranking,
) -> dict[str, str]:
    """`possible_ranks`; `state` stands for the folder's content."""
    del view, tasks, protocol, state
    return possible_ranks(_loaded, _ranking)


@st.cache_data(max_entries=64, show_spinner="Comparing the best runs")
def verdict(
    best: tuple[str, ...], state: str, _best: BestRun, _loaded: Results
) -> tuple[str, str] | None:
    """The sentence and the badges of `verdict_on`; `best` names the models and tasks, `state` the
    folder's content.
    """
    del best, state
    tested = verdict_on(_loaded, _best)
    if tested is None:
        return None
    _, pair = tested
    return rival_sentence(pair), _badges(pair)


def show() -> None:
    """Draw the page."""
    st.title("Biomedical encoders: published models and the runs here")
    loaded = page.results()
    available = views(loaded)
    if not available:
        page.say_no_runs()
        return
    summary = st.container()
    shown, tasks, protocol, hidden, sort = _choices(loaded, available)
    state = page.results_state()
    whole = [ranked(view, tuple(tasks), protocol, state, loaded) for view in shown]
    rankings = [without_small_runs(ranking) for ranking in whole]
    several = len(rankings) > 1
    with summary:
        columns = st.columns(len(rankings)) if several else [st.container()]
        for column, ranking in zip(columns, rankings, strict=True):
            with column.container(border=True, height="stretch"):
                _headline(ranking, loaded)
    if loaded.refusals and not loaded.groups:
        page.say_no_runs()
    hidden_of: dict[str, Hidden] = {}
    for ranking in rankings:
        possible = ranks_of_runs(
            ranking.view, ranking.shared, ranking.protocol, state, loaded, ranking
        )
        hidden_of[ranking.view] = hide_sparse(ranking, hidden)
        show_ranking(ranking, hidden_of[ranking.view], sort, several=several, possible=possible)
    with st.container(key="bb_cards"):
        for ranking in rankings:
            show_cards(ranking, hidden_of[ranking.view], sort)
    _about(rankings, _lines_of(whole) - _lines_of(rankings))
    show_costs(rankings, hidden_of)
    _foot(loaded, rankings)


def _lines_of(rankings: Sequence[Ranking]) -> int:
    return sum(len(ranking.entries) for ranking in rankings)


def _choices(
    loaded: Results, available: Sequence[str]
) -> tuple[list[str], list[str], str | None, Callable[[Entry], bool], str]:
    """What is shown: views, tasks and protocol that are ranked, which entries are hidden, the
    column that sorts.
    """
    languages = [view for view in available if view in ("fr", "en")]
    options = {BOTH: languages} if len(languages) > 1 else {}
    options |= {title_of(view): [view] for view in available}
    with st.container(horizontal=True, vertical_alignment="center", key="bb_choices"):
        chosen = st.radio(
            "Suite",
            list(options),
            list(options).index(_first(loaded, options)),
            key="suite",
            bind="query-params",
            horizontal=True,
            label_visibility="collapsed",
        )
        shown = options[chosen]
        columns = {i: info for i, info in loaded.infos.items() if _in_views(info, shown)}
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
        by = ["mean", *dict.fromkeys(TASK_FAMILIES.values()), *columns, "parameters", "name"]
        shown_as = {"mean": "sort by mean"}
        sort = page.choose("Sort by", by, "sort", shown_as, width=160, label_visibility="collapsed")
        with st.popover("Tasks and runs"):
            tasks = page.choose_several(
                "Rank over these tasks", list(columns), "tasks", placeholder="all of the suite"
            )
            rankings = [ranked(view, (), None, page.results_state(), loaded) for view in shown]
            variants = sorted({entry.protocol for ranking in rankings for entry in ranking.entries})
            protocol = page.choose(
                "Rank the runs under",
                [page.ANY, *(v or "full protocol" for v in variants)],
                "protocol",
                {page.ANY: "the full protocol, where anybody has it"},
            )
            every = ["published", "run", "submitted", "external", "frozen"]
            sources = page.choose_several("Show only", every, "sources")
    words, below = search.casefold().split(), SIZES[size]

    def hidden(entry: Entry) -> bool:
        size = known_size(entry)
        fits = below is None or (size is not None and size < below)
        named = all(word in entry.name.casefold() for word in words)
        return not (fits and named and (not sources or entry.source in sources))

    asked = None if protocol == page.ANY else "" if protocol == "full protocol" else protocol
    return shown, tasks, asked, hidden, sort


def known_size(entry: Entry) -> int | None:
    """Its number of parameters; of a submission only where a run was made again, else it is a
    claim.
    """
    claimed = entry.source == "submitted" and not entry.mark.startswith("reproduced")
    return None if claimed else entry.parameters


def _first(loaded: Results, options: Mapping[str, Sequence[str]]) -> str:
    """Both languages; where the runs here are on neither's tasks, the view that has them."""
    ran = {
        loaded.infos[g.task].suite if loaded.infos[g.task].in_suite else "" for g in loaded.groups
    }
    other = [name for name, of in options.items() if of[0].startswith("other ")]
    return other[0] if ran == {""} and other else next(iter(options))


def _in_views(info: TaskInfo, shown: Sequence[str]) -> bool:
    return view_of(info) in shown


def _headline(ranking: Ranking, loaded: Results) -> None:
    """Who is best, where the best of the runs here stands, and what is shown of it."""
    names = ShortNames(ranking.entries)
    count = len(ranking.shared)
    tasks = "1 task" if count == 1 else f"{count} tasks"
    st.subheader(f"{page.literal(ranking.title)}: {tasks}", anchor=False)
    sentences = [
        *_best_published(ranking, names),
        *_best_small(ranking, names),
        *_best_run_sentences(ranking, names, loaded),
    ]
    st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    details = [
        f"- {sentence}" for best in ranking.best_runs for sentence in _standing(best, names, loaded)
    ]
    if details:
        with st.expander("Where the runs here stand, and whether a lead is real"):
            st.markdown("\n".join(details))


class ShortNames:
    """What models are called in a sentence of a view."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        in_tables = shown_names(entries)
        short = in_sentences(in_tables.values())
        self.by_name = {name: short[in_table] for name, in_table in in_tables.items()}

    def bold(self, entry: Entry) -> str:
        """The short name of an entry."""
        return f"**{page.literal(self.by_name[entry.name])}**"

    def put_into(self, sentence: str) -> str:
        """A sentence with the models' short names in bold."""
        # the longest first: a name may be the beginning of another
        names = sorted(self.by_name, key=len, reverse=True)
        pattern = "|".join(re.escape(page.literal(name)) for name in names)
        bold = {
            page.literal(name): f"**{page.literal(short)}**" for name, short in self.by_name.items()
        }
        return re.sub(pattern, lambda match: bold[match.group()], page.literal(sentence))


def _best_published(ranking: Ranking, names: ShortNames) -> Iterator[str]:
    if not ranking.published:
        return
    top = ranking.published[0]
    if top.mean is None:
        return
    yield f"Best published: {names.bold(top)}, **{100 * top.mean.mean:.1f}**."


def _best_small(ranking: Ranking, names: ShortNames) -> Iterator[str]:
    """The best model of a known small size, where it is not the best of all."""
    ranked_entries = [e for e in ranking.entries if e.rank is not None and e.mean is not None]
    for position, entry in enumerate(ranked_entries):
        size = known_size(entry)
        if size is None or size >= SMALL or entry.mean is None:
            continue
        if position > 0:
            score = f"{100 * entry.mean.mean:.1f} ({page.millions(size)})"
            yield f"Best under 150 M parameters: {names.bold(entry)}, {score}."
        return


def _best_run_sentences(ranking: Ranking, names: ShortNames, loaded: Results) -> Iterator[str]:
    """The best run here under each protocol."""
    for best in ranking.best_runs:
        yield names.put_into(best_run_sentence(best))
    if not ranking.best_runs:
        ran = any(_in_views(loaded.infos[group.task], [ranking.view]) for group in loaded.groups)
        missing = "No runs here under this protocol yet" if ran else "No runs here yet"
        remedy = "." if is_public() else f": `biobench run MODEL --suite {ranking.view}`"
        yield missing + remedy


def _standing(best: BestRun, names: ShortNames, loaded: Results) -> Iterator[str]:
    """Where a best run stands, and what is shown of it against the next one."""
    for fact in best_run_facts(best):
        yield names.put_into(fact)
    models_and_tasks = (best.name, *best.rivals, *best.tasks)
    tested = verdict(models_and_tasks, page.results_state(), best, loaded)
    if tested is not None:
        rival, badges = tested
        yield f"{names.put_into(rival)} {badges}"


def _badges(pair: PairResult) -> str:
    """The words of the verdict; green is what is shown."""
    words = [f"{pair.verdict.here} on {'this task' if len(pair.tasks) == 1 else 'these tasks'}"]
    if pair.verdict.beyond != "not tested":
        words.append(f"{pair.verdict.beyond} for other tasks like these")
    return " ".join(
        f":green-badge[:material/check: {w}]" if w.startswith("shown") else f":orange-badge[{w}]"
        for w in words
    )


def without_small_runs(ranking: Ranking) -> Ranking:
    """Without the runs under the small protocol, unless it is the one that is ranked."""
    if SMALL_PROTOCOL in ranking.protocol:
        return ranking
    entries = tuple(e for e in ranking.entries if SMALL_PROTOCOL not in e.protocol)
    scored = {task for entry in entries for task in entry.cells}
    return replace(
        ranking,
        entries=entries,
        columns=tuple(c for c in ranking.columns if c.id in scored.union(ranking.shared)),
        best_runs=tuple(b for b in ranking.best_runs if SMALL_PROTOCOL not in b.protocol),
    )


def _about(rankings: Sequence[Ranking], hidden: int) -> None:
    """What holds for all tables, once. hidden: lines of runs under the small protocol."""
    marks = [
        "Percent. Each task counts by the average that publications print. ± is half the 95% "
        "interval over seeds.",
        "Blue rows are runs here; the grey row is the best baseline without a model on each task.",
    ]
    if any(ranking.published for ranking in rankings):
        marks.append(
            "Differences to published scores that are printed without spread are not tested."
        )
    if hidden:
        lines = "1 line is" if hidden == 1 else f"{hidden} lines are"
        marks.append(
            f"Not shown: {lines} under the {SMALL_PROTOCOL}; “Tasks and runs” ranks them on their "
            f"own."
        )
    st.caption(" ".join(marks))


@st.cache_data(max_entries=64, show_spinner=False)
def _notes(suites: tuple[str, ...], state: str, _loaded: Results) -> tuple[str, ...]:
    """The notes of the report; `state` stands for the folder's content."""
    del state
    return build(_loaded, "paper", suites=suites).notes


def _download(format: str, suites: Sequence[str], loaded: Results) -> str:
    """The table as `biobench report` prints it."""
    return render(build(loaded, "paper", suites=suites), format)


def _foot(loaded: Results, rankings: Sequence[Ranking]) -> None:
    """Findings, notes, downloads and citation."""
    suites = tuple(ranking.view for ranking in rankings)
    if loaded.findings:
        with st.expander(f"Findings in the results folder ({len(loaded.findings)})", expanded=True):
            st.caption("These files could not be read. Everything else is shown.")
            for finding in loaded.findings:
                st.markdown(f"{page.text(finding)}\n→ {page.text(finding.hint)}")
    page.show_notes("Notes", _notes(suites, page.results_state(), loaded), MOST_NOTES)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Download", width="content")
        for format, mime in FORMATS.items():
            file = f"biobench.{'tex' if format == 'latex' else format}"
            # made when somebody asks for it: large folders take a while
            content = partial(_download, format, suites, loaded)
            st.download_button(format, content, file, mime, key=f"download_{format}")
    with st.expander("Cite"):
        st.code(CITATION.format(version=__version__), language="bibtex")
        st.caption("And every corpus that the results rest on: `biobench export --format bibtex`.")
    last = max((b.started for g in loaded.groups for b in g.briefs), default="")
    st.caption(f"BioBench {__version__}" + (f" · last run {last[:10]}" if last else ""))
