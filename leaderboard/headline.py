"""The cards at the top of page one: who is best, where the runs here stand, is it sure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import streamlit as st

from biobench.comparison.result import PairResult
from biobench.report.names import in_sentences
from biobench.report.results import Results
from biobench.report.row import AverageName
from leaderboard import page
from leaderboard.best_runs import (
    BestRun,
    best_run_facts,
    best_run_sentence,
    rival_sentence,
    verdict_on,
)
from leaderboard.launch import is_public
from leaderboard.ranking import Entry, Ranking, view_of
from leaderboard.table import shown_names

SMALL = 150_000_000
"""Parameters that a small model stays below."""


def show_headline(ranking: Ranking, loaded: Results) -> None:
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
    _show_list(sentences)
    details: list[str] = []
    for best in ranking.best_runs:
        details += _standing(best, ranking.average, names, loaded)
    if details:
        with st.expander("Where the runs here stand, and whether a lead is real"):
            _show_list(details)


def _show_list(sentences: Sequence[str]) -> None:
    st.markdown("\n".join(f"- {sentence}" for sentence in sentences))


class ShortNames:
    """What models are called in a sentence of a view."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        in_tables = shown_names(entries)
        short = in_sentences(in_tables.values())
        self.bold = {}
        # the longest first: a name may be the beginning of another
        for name in sorted(in_tables, key=len, reverse=True):
            self.bold[page.literal(name)] = f"**{page.literal(short[in_tables[name]])}**"
        self.pattern = re.compile("|".join(map(re.escape, self.bold)))

    def put_into(self, sentence: str) -> str:
        """A sentence with the models' short names in bold."""
        return self.pattern.sub(lambda match: self.bold[match.group()], page.literal(sentence))


def _best_published(ranking: Ranking, names: ShortNames) -> Iterator[str]:
    for entry in ranking.published[:1]:
        if entry.mean is not None:
            name = names.bold[page.literal(entry.name)]
            yield f"Best published: {name}, **{100 * entry.mean.mean:.1f}**."


def _best_small(ranking: Ranking, names: ShortNames) -> Iterator[str]:
    """The best model of a known small size, where it is not the best of all."""
    for entry in ranking.entries:
        size = entry.known_parameters
        if entry.rank is None or entry.mean is None or size is None or size >= SMALL:
            continue
        if entry.rank > 1:
            name = names.bold[page.literal(entry.name)]
            score = f"{100 * entry.mean.mean:.1f} ({page.millions(size)})"
            yield f"Best under 150 M parameters: {name}, {score}."
        return


def _best_run_sentences(ranking: Ranking, names: ShortNames, loaded: Results) -> Iterator[str]:
    """The best run here under each protocol."""
    for best in ranking.best_runs:
        yield names.put_into(best_run_sentence(best))
    if ranking.best_runs:
        return
    missing = "No runs here yet"
    if any(view_of(loaded.infos[group.task]) == ranking.view for group in loaded.groups):
        missing = "No runs here under this protocol yet"
    remedy = "." if is_public() else f": `biobench run MODEL --suite {ranking.view}`"
    yield missing + remedy


def _standing(
    best: BestRun, average: AverageName, names: ShortNames, loaded: Results
) -> Iterator[str]:
    """Where a best run stands, and what is shown of it against the next one."""
    for fact in best_run_facts(best):
        yield names.put_into(fact)
    models_and_tasks = (best.name, *best.rivals, *best.tasks)
    tested = _verdict(models_and_tasks, average, page.results_state(), best, loaded)
    if tested is not None:
        rival, badges = tested
        yield f"{names.put_into(rival)} {badges}"


@st.cache_data(max_entries=64, show_spinner="Comparing the best runs")
def _verdict(
    models_and_tasks: tuple[str, ...],
    average: AverageName,
    state: str,
    _best: BestRun,
    _loaded: Results,
) -> tuple[str, str] | None:
    """The sentence and the badges of `verdict_on`; `models_and_tasks` stand for the best run,
    `state` for the folder's content.
    """
    del models_and_tasks, state
    tested = verdict_on(_loaded, _best, average)
    if tested is None:
        return None
    _, pair = tested
    return rival_sentence(pair), _badges(pair)


def _badges(pair: PairResult) -> str:
    """The words of the verdict; green is what is shown."""
    tasks = "this task" if len(pair.tasks) == 1 else "these tasks"
    badges = _badge(f"{pair.verdict.here} on {tasks}")
    if pair.verdict.beyond != "not tested":
        badges += " " + _badge(f"{pair.verdict.beyond} for other tasks like these")
    return badges


def _badge(words: str) -> str:
    if words.startswith("shown"):
        return f":green-badge[:material/check: {words}]"
    return f":orange-badge[{words}]"
