"""The cards at the top of page one: who is best, where the runs here stand, is it sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st

from biobench.comparison.result import PairResult
from biobench.comparison.verdict import joined
from biobench.reporting.results import Results
from leaderboard import page
from leaderboard.best_runs import (
    MOST_NAMED,
    best_run_facts,
    best_run_sentence,
    rival_sentence,
    verdict_on,
)
from leaderboard.launch import is_public
from leaderboard.numbers import millions
from leaderboard.ranking import Ranking, view_of
from leaderboard.table import sentence_names

SMALL = 150_000_000
"""Parameters that a small model stays below."""


def show_headline(ranking: Ranking, loaded: Results) -> None:
    """Who is best, where the best of the runs here stands, and what is shown of it."""
    short = sentence_names(ranking.entries)
    count = len(ranking.shared)
    tasks = "1 task" if count == 1 else f"{count} tasks"
    heading, on_tasks = f"{page.literal(ranking.title)}: {tasks}", ""
    if any(best.tasks != ranking.shared for best in ranking.best_runs):
        # the sentences are about several sets of tasks, and each names its own
        named = joined(ranking.shared) if count <= MOST_NAMED else tasks
        heading, on_tasks = page.literal(ranking.title), f" on {named}"
    st.subheader(heading, anchor=False)
    points, details = [], []
    runs_sentences = map(best_run_sentence, ranking.best_runs)
    for sentence in (*_best_published(ranking, on_tasks), *runs_sentences):
        points.append(page.with_short_names(sentence, short))
    if not ranking.best_runs:
        points.append(_no_runs(ranking, loaded))
    for best in ranking.best_runs:
        for fact in best_run_facts(best):
            details.append(page.with_short_names(fact, short))
        make = partial(verdict_on, loaded, best, ranking.average)
        asked = (ranking.average, best.name, best.rivals, best.tasks)
        pair = page.made_once(make, "verdict", *asked)
        if pair is not None:
            sentence = page.with_short_names(rival_sentence(pair), short)
            details.append(f"{sentence} {_badges(pair)}")
    _show_list(points)
    if details:
        with st.expander("Where the runs here stand, and whether a lead is real"):
            _show_list(details)


def _show_list(sentences: Sequence[str]) -> None:
    st.markdown("\n".join(map("- {}".format, sentences)))


def _best_published(ranking: Ranking, on_tasks: str) -> Iterator[str]:
    """The best published model, and the best model of a known small size where it is not the best
    of all. on_tasks: the tasks of their means, where the heading does not say them.
    """
    for entry in ranking.published[:1]:
        if entry.mean is not None:
            yield f"Best published{on_tasks}: {entry.name}, mean {100 * entry.mean.mean:.1f}."
    for entry in ranking.ranked:
        size = entry.known_parameters
        if size is None or size >= SMALL or entry.mean is None:
            continue
        if entry.rank != 1:
            score = f"mean {100 * entry.mean.mean:.1f} ({millions(size)})"
            yield f"Best under 150 M parameters{on_tasks}: {entry.name}, {score}."
        return


def _no_runs(ranking: Ranking, loaded: Results) -> str:
    missing = "No runs here yet"
    if any(view_of(loaded.infos[group.task]) == ranking.view for group in loaded.groups):
        missing = "No runs here under this protocol yet"
    remedy = "." if is_public() else f": `biobench run MODEL --suite {ranking.view}`"
    return missing + remedy


def _badges(pair: PairResult) -> str:
    """The words of the verdict; green is what is shown."""
    tasks = "this task" if len(pair.tasks) == 1 else "these tasks"
    answers = [f"{pair.verdict.here} on {tasks}"]
    if pair.verdict.beyond != "not tested":
        answers.append(f"{pair.verdict.beyond} for other tasks like these")
    badges = []
    for answer in answers:
        style = "orange-badge["
        if answer.startswith("shown"):
            style = "green-badge[:material/check: "
        badges.append(f":{style}{answer}]")
    return " ".join(badges)
