"""The best of the runs here: where it ranks, and what is shown of it against the next one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from biobench.comparison.compare import compare
from biobench.comparison.result import TIE, PairResult
from biobench.comparison.verdict import interval_words, joined, points
from biobench.errors import UsageError
from biobench.reporting.baselines import no_skill
from biobench.reporting.evidence import Evidence
from biobench.reporting.guessing import TaskScores, is_guessing
from biobench.reporting.results import Results
from biobench.reporting.row import AverageName, Row
from biobench.schema.kind import get_metric
from leaderboard.lines import TESTABLE, Line, ViewRows, score, shared_tasks

MOST_NAMED = 2
"""Tasks that a headline names; of more it says how many they are."""


@dataclass(frozen=True, slots=True)
class BestRun:
    """The best of the runs here under one protocol, over the `tasks` that most of them have.

    rivals: the others with these tasks, best first. published: printed models with these tasks,
    best first, only under the full protocol. above: tasks where it is above the best baseline, of
    so many `judged`; guessing: its mean is not above what a policy without skill reaches.
    """

    name: str
    protocol: str
    tasks: tuple[str, ...]
    mean: Row
    rivals: tuple[str, ...]
    published: tuple[Row, ...]
    above: int
    judged: int
    guessing: bool


def best_runs(view_rows: ViewRows, shared: Sequence[str]) -> tuple[BestRun, ...]:
    """The best of the runs here under each protocol that has some.

    shared: the tasks to judge them on, where one of them has them all.
    """
    lines_of: dict[str, dict[Line, Mapping[str, Row]]] = defaultdict(dict)
    for line, scored in view_rows.lines.items():
        if line[2] in TESTABLE:
            lines_of[view_rows.protocols[line]][line] = scored
    found = []
    for protocol, lines in sorted(lines_of.items()):
        tasks = tuple(shared)
        if not any(map(set(tasks).issubset, lines.values())):
            tasks = shared_tasks(lines, view_rows.results.infos)
        means = sorted(view_rows.means(tasks).values(), key=lambda row: -row.mean)
        runs = [row for row in means if row.line in lines]
        published: tuple[Row, ...] = ()
        if not protocol:  # that of the printed scores
            published = tuple(row for row in means if row.source == "published")
        if runs:
            found.append(_best_run(view_rows, protocol, tasks, runs, published))
    return tuple(found)


def _best_run(
    view_rows: ViewRows,
    protocol: str,
    tasks: tuple[str, ...],
    runs: Sequence[Row],
    published: tuple[Row, ...],
) -> BestRun:
    """The first of `runs`, means over the tasks, best first."""
    best, *rivals = runs
    results = view_rows.results
    groups = {group.task: group for group in results.groups if group.line == best.line}
    scored, is_above = [], []
    for task in tasks:
        row = view_rows.lines[best.line][task]
        scored.append(TaskScores(results.infos[task], row.metric, row.values, groups[task]))
        if task in view_rows.baseline and not get_metric(row.metric).falls:
            is_above.append(row.mean > view_rows.baseline[task].mean)
    return BestRun(
        name=best.name,
        protocol=protocol,
        tasks=tasks,
        mean=best,
        rivals=tuple(row.name for row in rivals),
        published=published,
        above=sum(is_above),
        judged=len(is_above),
        guessing=is_guessing(scored, no_skill(results.baselines), Evidence()),
    )


def verdict_on(
    results: Results, best: BestRun, average: AverageName = "paper"
) -> PairResult | None:
    """The best run against the next one that it may be compared with: `compare` of the two under
    the average that made it the best.

    None without such a rival, where the tasks are of several languages (Compare shows a verdict for
    each), and where the name stands for other runs than those of the board's line.
    """
    for rival in best.rivals:
        if rival == best.name:
            continue
        with suppress(UsageError):  # runs under other conditions are no rival
            comparison = compare(
                best.name, rival, results_dir=results, tasks=best.tasks, average=average
            )
            pair = comparison.pairs[0]
            is_same_line = abs(pair.means[0] - best.mean.mean) < TIE
            return pair if is_same_line and len(comparison.parts) == 1 else None
    return None


def best_run_sentence(best: BestRun) -> str:
    """The best of the runs here and its mean."""
    start = "Best run here"
    if best.protocol.endswith("protocol"):
        start += f" under the {best.protocol}"
    elif best.protocol:
        start += f" ({best.protocol})"
    tasks = f"{len(best.tasks)} tasks"
    if len(best.tasks) <= MOST_NAMED:
        tasks = joined(best.tasks)
    return f"{start}: {best.name}, {score(best.mean)} on {tasks}{_guessing(best.guessing)}."


def _guessing(is_so: bool) -> str:
    """How a sentence says that a model is not above guessing."""
    return ", not above guessing" if is_so else ""


def best_run_facts(best: BestRun) -> Iterator[str]:
    """Where the best of the runs here stands: a sentence each for its tasks, the best published,
    the published models and the baselines.
    """
    model = best.name
    if len(best.tasks) > MOST_NAMED:
        yield f"{model} is judged on {joined(best.tasks)}."
    if best.published:
        top = best.published[0]
        gap = 100 * (best.mean.mean - top.mean)
        side = "above" if gap > 0 else "below"
        beaten = sum(best.mean.mean > printed.mean for printed in best.published)
        yield (
            f"{model} is {abs(gap):.1f} points {side} the best published there "
            f"({top.name}, {100 * top.mean:.1f})."
        )
        yield f"{model} is above {beaten} of {len(best.published)} published models."
    if best.judged:
        yield f"{model} is above the best baseline on {best.above} of {best.judged} tasks."


def rival_sentence(pair: PairResult) -> str:
    """The best run against the next one: the difference and its interval, those of `compare`."""
    answer = f"{pair.better} is {points(abs(pair.difference))} above {pair.worse}, the next run"
    if pair.is_tied:
        answer = f"{pair.better} and {pair.worse}, the best two runs, have the same mean"
    if pair.here is not None:
        answer += interval_words(pair, pair.here.interval)
    elif pair.reason:
        answer += f" ({pair.reason.partition(' on ')[0]})"
    return f"{answer}{_guessing(pair.verdict.guessing)}:"
