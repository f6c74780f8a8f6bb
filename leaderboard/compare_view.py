"""Two to five models against each other: the verdict in words, then differences task by task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
import streamlit as st

from biobench.comparison.classes import class_differences, comparable_groups
from biobench.comparison.compare import Comparison, compare
from biobench.comparison.placing import differ_within
from biobench.comparison.result import Compared, PairResult, TaskLine
from biobench.comparison.twins import Twins
from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.entrants import Entrant, find_entrants, line_name
from biobench.report.escape import plain
from biobench.report.names import in_sentences, shorten, without_revisions
from biobench.report.render import plain_note
from biobench.report.rows import AverageName
from biobench.report.table import Results
from biobench.report.wide import SUITES as NAMES
from leaderboard.board import best_two
from leaderboard.draw import draw, ink, show_table
from leaderboard.folder import inside, results, results_dir, results_state, trained_by
from leaderboard.state import SEPARATOR, choose, from_link, list_from_link, several_from_link, start, switch, write_link
from leaderboard.table import literal
from leaderboard.words import metric_in, spoken

MOST = 5
SUITES = ("all", "fr", "en", "needle")


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    st.title(words["compare_view"])
    loaded = results()
    names = _names(loaded)
    linked = several_from_link("models", names)
    best_suite, best = best_two(average)
    usual = [name for name in best if name in names]
    start("models", (linked or usual)[:MOST])
    st.session_state["models"] = [n for n in st.session_state["models"] if n in names]
    # the pair that page one names is asked where it names it: one answer for one question
    start("compare_suite", from_link("compare_suite", SUITES, _usual_suite(linked or usual, usual, best_suite)))
    chosen = st.multiselect(
        words["choose_models"],
        names,
        key="models",
        max_selections=MOST,
        format_func=without_revisions(names).__getitem__,
    )
    left, right = st.columns(2)
    suite = left.selectbox(words["suite"], SUITES, key="compare_suite", format_func=words.__getitem__)
    documents = switch(right, words["documents"], "documents", words["documents_help"])
    write_link("models", "" if chosen == usual else SEPARATOR.join(chosen))
    write_link("compare_suite", "" if suite == _usual_suite(chosen, usual, best_suite) else suite)
    if len(chosen) < 2:
        st.info(words["pick_two"])
        return
    part = None if suite == "all" else suite
    tasks = _tasks(loaded, chosen, part, words)
    folder = str(results_dir().resolve())
    state, ledgers = results_state(), _ledgers(loaded, chosen)
    try:
        comparison = _compare(tuple(chosen), folder, state, part, tasks, average, documents, ledgers)
    except StoreError as error:
        if not ledgers:
            raise
        # a damaged ledger takes the verdict on twins away, not the comparison
        st.warning(literal(plain_note(inside(str(error)))))
        comparison = _compare(tuple(chosen), folder, state, part, tasks, average, documents, ())
    short = in_sentences(comparison.models)
    _verdict(comparison, short, words)
    _twins(comparison, words)
    _link(chosen, suite, tasks, average, documents, words)
    for pair in comparison.pairs:
        _pair(pair, short, words)
    if len(comparison.models) > 2:
        st.header(words["standings"])
        for one in comparison.parts or (comparison,):
            if comparison.parts:
                st.caption(NAMES.get(one.language, one.language))
            show_table(_standings(one, words), {words["score"]: 1})
        st.caption(words["letters_help"])
    _classes(find_entrants(chosen, loaded), comparison, words)
    with st.expander(words["details"]):
        st.code(comparison.text(), language=None)


@st.cache_resource(max_entries=32)
def _compare(
    models: tuple[str, ...],
    folder: str,
    state: str,
    suite: str | None,
    tasks: tuple[str, ...],
    average: AverageName,
    documents: bool,
    ledgers: tuple[tuple[str, str, int], ...],
) -> Comparison:
    """`state` stands for the folder's content."""
    del state
    named = {model: path for model, path, _ in ledgers}
    return compare(
        models, results_dir=folder, suite=suite, tasks=tasks, average=average, documents=documents, ledgers=named
    )


def _ledgers(loaded: Results, chosen: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
    """(model, ledger, time of change) of those that a run of the pretraining folder made, by their weights."""
    ledgers = []
    for name in chosen:
        run = trained_by(g for g in loaded.groups if line_name(g.model, g.variant) == name)
        if run is not None and run.ledger is not None:
            ledgers.append((name, str(run.ledger), run.ledger.stat().st_mtime_ns))
    return tuple(ledgers)


def _names(loaded: Results) -> list[str]:
    """Runs first, then published models, by name."""
    ran = sorted({line_name(g.model, g.variant) for g in loaded.groups}, key=str.casefold)
    return ran + sorted({line_name(v.model, v.variant) for v in loaded.published} - set(ran), key=str.casefold)


def _usual_suite(chosen: Sequence[str], usual: Sequence[str], suite: str) -> str:
    """Where these models are compared unless the reader says otherwise: all tasks, but page one's pair on its suite."""
    return suite if list(chosen) == list(usual) and suite in SUITES else "all"


def _link(
    chosen: Sequence[str],
    suite: str,
    tasks: Sequence[str],
    average: AverageName,
    documents: bool,
    words: Mapping[str, str],
) -> None:
    """The address of exactly this comparison, with the framework's button that copies it."""
    query = {
        "models": SEPARATOR.join(chosen),
        "compare_suite": suite,
        "average": average,
    }
    query |= {"compare_tasks": ",".join(tasks)} if tasks else {}
    query |= {"documents": "1"} if documents else {}
    page = str(st.context.url or "").partition("?")[0]
    with st.popover(words["copy_link"], icon=":material/link:"):
        st.code(f"{page}?{urlencode(query, quote_via=quote)}", language=None, wrap_lines=True)


def _tasks(loaded: Results, chosen: Sequence[str], suite: str | None, words: Mapping[str, str]) -> tuple[str, ...]:
    """The tasks that the reader narrows the comparison to; empty for all that the models share."""
    runs = [{g.task for g in loaded.groups if name in (g.model, line_name(g.model, g.variant))} for name in chosen]
    printed = [{v.task for v in loaded.published if line_name(v.model, v.variant) == name} for name in chosen]
    options = [
        task
        for task, info in loaded.infos.items()
        if suite in (None, info.suite)
        and all(task in ran or info.published_as in values for ran, values in zip(runs, printed, strict=True))
    ]
    start("compare_tasks", list_from_link("compare_tasks", options, ()))
    st.session_state["compare_tasks"] = [t for t in st.session_state["compare_tasks"] if t in options]
    if len(options) < 2:
        return ()
    picked = st.multiselect(words["only_tasks"], options, key="compare_tasks", placeholder=words["all"])
    write_link("compare_tasks", ",".join(picked))
    return tuple(picked)


def _twins(comparison: Comparison, words: Mapping[str, str]) -> None:
    """A badge for each pair whose ledgers are known; the verdict says in words what differs."""
    for twins in comparison.twins:
        key = "noise_pair" if twins.noise_pair else "twins" if twins.matched else "no_twins"
        # names come from users: the badge holds none of them
        shown = words[key] if len(comparison.models) == 2 else f"{words[key]} ({_place(comparison, twins)})"
        if twins.matched:
            st.badge(shown, icon=":material/check:", color="green")
        else:
            st.badge(shown, icon=":material/close:", color="orange")


def _place(comparison: Comparison, twins: Twins) -> str:
    return " – ".join(str(comparison.models.index(name) + 1) for name in (twins.first, twins.second))


def _named(text: str, short: Mapping[str, str]) -> str:
    """A text of the comparison with the models' short names."""
    # the longest first: a name may be the beginning of another
    known = "|".join(re.escape(name) for name in sorted(short, key=len, reverse=True) if short[name] != name)
    return re.sub(known, lambda found: short[found.group()], text) if known else text


def _verdict(comparison: Comparison, short: Mapping[str, str], words: Mapping[str, str]) -> None:
    lines = comparison.verdict
    # twins come first in it and have their badge here: the result is the headline
    about = len(comparison.twins)
    first, others = lines[about], (*lines[:about], *lines[about + 1 :])
    with st.container(border=True, key="bb_verdict"):
        st.markdown(f"## {literal(plain_note(_named(first, short)))}")
        if effect := _effect(comparison, words):
            st.text(effect)
    with st.expander(words["how_sure"]):
        # names come from users: text, never Markdown
        for sentence in others:
            st.text(shorten(plain_note(sentence)))
        for note in comparison.notes:
            st.text(f"* {shorten(plain_note(spoken(note)))}")


def _effect(comparison: Comparison, words: Mapping[str, str]) -> str:
    """Effect and interval of a pair that is not told apart; of one that is, the verdict has them."""
    if len(comparison.pairs) > 1 or comparison.parts:
        return ""
    (result,) = comparison.pairs
    test = result.within.test
    if result.pair.different or differ_within(result.within) or test is None or test.interval is None:
        return ""
    ends = (result.within.difference, test.interval.low, test.interval.high)
    return words["effect"].format(*(f"{100 * value:+.1f}" for value in ends))


def _standings(compared: Compared, words: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                words["model"]: shorten(plain(s.model)),
                words["letters"]: s.ties or "–",
                words["score"]: 100 * s.score,
            }
            for s in compared.standings
        ]
    )


def _pair(result: PairResult, short: Mapping[str, str], words: Mapping[str, str]) -> None:
    pair = result.pair
    st.header(words["difference"].split(",")[0].capitalize(), anchor=False)
    st.text(f"A: {short[pair.first]}\nB: {short[pair.second]}")
    shown = (("wins", pair.comparison.wins), ("ties", pair.comparison.ties), ("losses", pair.comparison.losses))
    with st.container(horizontal=True, gap="medium"):
        for key, count in shown:
            st.metric(words[key], count, width="content")
    lines = sorted(result.tasks, key=lambda line: -line.difference)
    rows = [_row(line) for line in lines]
    alt = words["alt_differences"].format(_in_words(rows, words))
    draw(charts.differences(rows, words, ink()), alt)
    st.caption(words["difference_help"])
    _show_differences(_table(lines, rows, words), words)


def _in_words(rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> str:
    """What the chart shows: the tasks with the largest differences each way."""
    order = sorted(rows, key=lambda row: -row["difference"])
    ends = order if len(order) <= 2 else (order[0], order[-1])
    return ", ".join(f"{row['task']} {row['difference']:.1f}" for row in ends)


def _show_differences(frame: pd.DataFrame, words: Mapping[str, str]) -> None:
    ends = {words["interval_head"]: st.column_config.TextColumn(alignment="right")}
    digits = {"A": 1, "B": 1, words["difference"]: 1}
    show_table(frame, digits, signed=words["difference"], config=ends)


def _classes(entrants: Sequence[Entrant], comparison: Comparison, words: Mapping[str, str]) -> None:
    """Differences label by label, for a pair and a task that the reader chooses."""
    named = {e.label: e for e in entrants}
    pairs: dict[str, tuple[Entrant, Entrant]] = {}
    shared: dict[str, list[str]] = {}
    for place, result in enumerate(comparison.pairs, 1):
        a, b = named[result.pair.first], named[result.pair.second]
        tasks = [t for t in comparison.tasks if comparable_groups(a, b, t) is not None]
        if tasks:
            pairs[str(place)], shared[str(place)] = (a, b), tasks
    if not pairs:
        return
    st.header(words["classes"], anchor=False)
    left, right = st.columns(2)
    with left:
        short = in_sentences(comparison.models)
        names = {key: f"{short[a.label]} − {short[b.label]}" for key, (a, b) in pairs.items()}
        pair = choose(words["pair"], list(pairs), "classes_pair", names)
    with right:
        task = choose(words["choose_task"], shared[pair], "classes_task")
    groups = comparable_groups(*pairs[pair], task)
    assert groups is not None
    rows = [
        {
            words["label"]: plain(line.label),
            words["support"]: line.support,
            "A": 100 * line.first,
            "B": 100 * line.second,
            words["difference"]: 100 * line.difference,
            words["interval_head"]: _interval(
                None if line.low is None else 100 * line.low, 100 * (line.high or 0.0), words
            ),
        }
        for line in class_differences(*groups)
    ]
    _show_differences(pd.DataFrame(rows), words)
    st.caption(words["classes_help"])


def _row(line: TaskLine) -> dict[str, Any]:
    """In points."""
    interval = line.widest
    return {
        "task": line.task,
        "difference": 100 * line.difference,
        "low": None if interval is None else 100 * interval.low,
        "high": None if interval is None else 100 * interval.high,
    }


def _table(lines: Sequence[TaskLine], rows: Sequence[Mapping[str, Any]], words: Mapping[str, str]) -> pd.DataFrame:
    table = []
    for line, row in zip(lines, rows, strict=True):
        table.append(
            {
                words["task"]: line.task,
                words["metric"]: metric_in(line.metric, words),
                "A": 100 * line.first,
                "B": 100 * line.second,
                words["difference"]: row["difference"],
                words["interval_head"]: _interval(row["low"], row["high"], words),
            }
        )
    return pd.DataFrame(table)


def _interval(low: float | None, high: float, words: Mapping[str, str]) -> str:
    return "–" if low is None else f"{low:+.1f} … {high:+.1f}"
