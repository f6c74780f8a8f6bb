"""Page one: who is best, where the runs here stand and whether it is sure; then everybody in one
table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from biobench.comparison.compare import Comparison
from biobench.comparison.result import PairResult
from biobench.report import charts
from biobench.report.frame import build
from biobench.report.names import in_sentences
from biobench.report.printers import render
from biobench.report.results import Results
from biobench.report.tasks import TASK_FAMILIES, TaskInfo
from biobench.version import __version__
from leaderboard import page
from leaderboard.best_runs import BestRun, best_run_sentence, rival_sentence, verdict_on
from leaderboard.launch import is_public
from leaderboard.ranking import Entry, Ranking, possible_ranks, ranking, title_of, views
from leaderboard.table import result_of, show_cards, show_ranking, shown_names

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
COSTS = {
    "parameters": "parameters",
    "tokens a second in training": "train_tokens_per_second",
    "peak memory, bytes": "peak_memory_bytes",
    "seconds a run": "seconds",
}
"""Axis -> field of a row."""
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
    return ranking(_loaded, view, tasks, protocol)


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


@st.cache_resource(max_entries=64, show_spinner="Comparing the best runs")
def verdict(
    best: tuple[str, ...], state: str, _best: BestRun, _loaded: Results
) -> tuple[Comparison, PairResult] | None:
    """`verdict_on`; `best` names the models and tasks, `state` the folder's content."""
    del best, state
    return verdict_on(_loaded, _best)


def show() -> None:
    """Draw the page."""
    st.title("Biomedical encoders: published models and the runs here")
    loaded = page.results()
    known = views(loaded)
    if not known:
        page.say_no_runs()
        return
    summary = st.container()
    shown, tasks, protocol, hidden, sort = _choices(loaded, known)
    whole = [ranked(view, tuple(tasks), protocol, page.results_state(), loaded) for view in shown]
    rankings = [without_small_runs(one) for one in whole]
    with summary:
        for place, one in zip(
            st.columns(max(2, len(rankings))) if len(rankings) > 1 else [st.container()],
            rankings,
            strict=False,
        ):
            with place.container(border=True, height="stretch"):
                _headline(one, loaded)
    if loaded.refusals and not loaded.groups:
        page.say_no_runs()
    for one in rankings:
        possible = ranks_of_runs(
            one.view, one.shared, one.protocol, page.results_state(), loaded, one
        )
        show_ranking(one, hidden, sort, several=len(rankings) > 1, possible=possible)
    with st.container(key="bb_cards"):
        for one in rankings:
            show_cards(one, hidden, sort)
    _about(
        rankings, sum(len(one.entries) for one in whole) - sum(len(one.entries) for one in rankings)
    )
    _scatter(rankings)
    _foot(loaded, rankings)


def _choices(
    loaded: Results, known: Sequence[str]
) -> tuple[list[str], list[str], str | None, Callable[[Entry], bool], str]:
    """What is shown: views, tasks and protocol that are ranked, which entries are hidden, the
    column that sorts.
    """
    languages = [view for view in known if view in ("fr", "en")]
    options = {BOTH: languages} if len(languages) > 1 else {}
    options |= {title_of(view): [view] for view in known}
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
            variants = sorted({entry.protocol for one in rankings for entry in one.entries})
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
    return (info.suite if info.in_suite else f"other {info.suite}") in shown


def _headline(one: Ranking, loaded: Results) -> None:
    """Who is best, where the best of the runs here stands, and what is shown of it."""
    names = shown_names(one.entries)
    short = in_sentences(names.values())
    count = len(one.shared)

    def name(entry: Entry) -> str:
        return f"**{page.literal(short[names[entry.name]])}**"

    st.subheader(
        f"{page.literal(one.title)}: {count} task{'' if count == 1 else 's'}", anchor=False
    )
    lines = []
    if one.published and (top := one.published[0]).mean is not None:
        seeds = min(row.n_seeds for row in top.cells.values())
        cite = next(
            (v.source.partition(" (")[0] for v in loaded.published if v.model == top.model), ""
        )
        about = f"{cite}, {seeds} seeds" if seeds else cite
        lines.append(
            f"Best published: {name(top)}, **{100 * top.mean.mean:.1f}** ({page.literal(about)})."
        )
    order = [entry for entry in one.entries if entry.rank is not None and entry.mean is not None]
    small = next((e for e in order if (known_size(e) or SMALL) < SMALL), None)
    if small is not None and small.mean is not None and small is not order[0]:
        size = page.millions(known_size(small) or 0)
        lines.append(
            f"Best under 150 M parameters: {name(small)}, {100 * small.mean.mean:.1f} ({size})."
        )
    for best in one.best_runs:
        lines.append(_named(best_run_sentence(best), one, short, names))
        tested = verdict((best.name, *best.rivals, *best.tasks), page.results_state(), best, loaded)
        if tested is not None:
            lines[-1] += (
                f" {_named(rival_sentence(tested[1]), one, short, names)} {_badges(tested[1])}"
            )
    if not one.best_runs:
        ran = any(_in_views(loaded.infos[g.task], [one.view]) for g in loaded.groups)
        which = "No runs here under this protocol yet" if ran else "No runs here yet"
        lines.append(which + ("." if is_public() else f": `biobench run MODEL --suite {one.view}`"))
    st.markdown("\n".join(f"- {line}" for line in lines))


def _badges(pair: PairResult) -> str:
    """The words of the verdict; green is what is shown."""
    words = [f"{pair.verdict.here} on {'this task' if len(pair.tasks) == 1 else 'these tasks'}"]
    if pair.verdict.beyond != "not tested":
        words.append(f"{pair.verdict.beyond} for other tasks like these")
    return " ".join(
        f":green-badge[:material/check: {w}]" if w.startswith("shown") else f":orange-badge[{w}]"
        for w in words
    )


def _named(sentence: str, one: Ranking, short: Mapping[str, str], names: Mapping[str, str]) -> str:
    """A sentence with the models' short names in bold."""
    known = {e.name: short[names[e.name]] for e in one.entries if names[e.name] in short}
    # the longest first: a name may be the beginning of another
    pattern = "|".join(
        re.escape(page.literal(text_of)) for text_of in sorted(known, key=len, reverse=True)
    )
    bold = {page.literal(name): f"**{page.literal(shown)}**" for name, shown in known.items()}
    return re.sub(pattern, lambda match: bold[match.group()], page.literal(sentence))


def without_small_runs(one: Ranking) -> Ranking:
    """Without the runs under the small protocol, unless it is the one that is ranked."""
    if SMALL_PROTOCOL in one.protocol:
        return one
    entries = tuple(e for e in one.entries if SMALL_PROTOCOL not in e.protocol)
    columns = tuple(
        c for c in one.columns if c.id in one.shared or any(c.id in e.cells for e in entries)
    )
    best = tuple(b for b in one.best_runs if SMALL_PROTOCOL not in b.protocol)
    return replace(one, entries=entries, columns=columns, best_runs=best)


def _about(rankings: Sequence[Ranking], hidden: int) -> None:
    """What holds for all tables, once. hidden: lines of runs under the small protocol."""
    marks = [
        "Percent. Each task counts by the average that publications print. ± is half the 95% "
        "interval over seeds.",
        "Blue rows are runs here; the grey row is the best baseline without a model on each task.",
    ]
    if any(one.published for one in rankings):
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


def _scatter(rankings: Sequence[Ranking]) -> None:
    """Score against what a model costs, published models included where their size is known."""
    st.subheader("Score and cost", anchor=False)
    cost = page.choose("Cost", list(COSTS), "cost", width=260)
    for place, one in zip(st.columns(len(rankings)), rankings, strict=True):
        names = in_sentences(shown_names(one.entries).values())
        points = [
            {
                "model": names[shown_names(one.entries)[e.name]],
                "cost": value,
                "score": 100 * e.mean.mean,
                "result": result_of(e),
                "here": e.is_run,
            }
            for e in one.entries
            if e.mean is not None
            and e.source != "submitted"  # what a submission costs is its author's word
            and (value := e.parameters if cost == "parameters" else getattr(e.mean, COSTS[cost]))
            is not None
        ]
        with place:
            st.markdown(f"**{page.literal(one.title)}**")
            if points:
                best = max(points, key=lambda p: p["score"])
                alt = f"Mean score against {cost}; the highest: {best['model']}"
                page.draw(charts.scatter(points, cost, page.ink()), alt)
            else:
                st.caption("Not known of the models with a mean.")


def _foot(loaded: Results, rankings: Sequence[Ranking]) -> None:
    """Findings, notes, downloads and citation."""
    report = build(loaded, "paper", suites=[one.view for one in rankings])
    if loaded.findings:
        with st.expander(f"Findings in the results folder ({len(loaded.findings)})", expanded=True):
            st.caption("These files could not be read. Everything else is shown.")
            for finding in loaded.findings:
                st.markdown(f"{page.text(finding)}\n→ {page.text(finding.hint)}")
    page.show_notes("Notes", report.notes)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("Download", width="content")
        for format, mime in FORMATS.items():
            # rendered when somebody asks for it: large folders take a while
            file = f"biobench.{'tex' if format == 'latex' else format}"
            st.download_button(
                format, partial(render, report, format), file, mime, key=f"download_{format}"
            )
    with st.expander("Cite"):
        st.code(CITATION.format(version=__version__), language="bibtex")
        st.caption("And every corpus that the results rest on: `biobench export --format bibtex`.")
    last = max((b.started for g in loaded.groups for b in g.briefs), default="")
    st.caption(f"BioBench {__version__}" + (f" · last run {last[:10]}" if last else ""))
