"""The best of the runs here: where it ranks, and what is shown of it against the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from biobench.comparison.compare import Comparison, compare
from biobench.comparison.result import TIE, PairResult
from biobench.comparison.verdict import interval_words, joined, points
from biobench.errors import UsageError
from biobench.report.baselines import no_skill
from biobench.report.entrants import line_name
from biobench.report.evidence import Evidence
from biobench.report.guessing import TaskScores, is_guessing
from biobench.report.results import Results
from biobench.report.row import AverageName, Row
from biobench.schema.kind import get_metric
from leaderboard.lines import TESTABLE, Line, Lines, means, shared_tasks


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


def best_runs(
    results: Results,
    rows: Sequence[Row],
    lines: Lines,
    protocol_of: Mapping[Line, str],
    shared: Sequence[str],
    baseline: Mapping[str, Row],
) -> tuple[BestRun, ...]:
    """The best of the runs here under each protocol that has some."""
    found = []
    for protocol in sorted({protocol_of[line] for line in lines if line in protocol_of}):
        candidates = {
            line: scored
            for line, scored in lines.items()
            if protocol_of.get(line) == protocol and line[2] in TESTABLE
        }
        best = _best_run(results, rows, candidates, protocol, shared, baseline)
        if best is not None:
            found.append(best)
    return tuple(found)


def _best_run(
    results: Results,
    rows: Sequence[Row],
    candidates: Lines,
    protocol: str,
    shared: Sequence[str],
    baseline: Mapping[str, Row],
) -> BestRun | None:
    is_complete = any(set(shared) <= scored.keys() for scored in candidates.values())
    tasks = shared_tasks(candidates, results.infos, shared if is_complete else ())
    mean_of = means(results, rows, tasks)
    best_first = sorted(
        (line for line in mean_of if line in candidates), key=lambda line: -mean_of[line].mean
    )
    if not best_first:
        return None
    best_line, *rivals = best_first
    scores = candidates[best_line]
    judged = [
        task for task in tasks if task in baseline and not get_metric(scores[task].metric).falls
    ]
    published = [row for line, row in mean_of.items() if line[2] == "published"]
    return BestRun(
        name=line_name(best_line[0], best_line[1]),
        protocol=protocol,
        tasks=tasks,
        mean=mean_of[best_line],
        rivals=tuple(line_name(model, variant) for model, variant, _ in rivals),
        published=tuple(sorted(published, key=lambda row: -row.mean)),
        above=sum(scores[task].mean > baseline[task].mean for task in judged),
        judged=len(judged),
        guessing=_is_guessing(results, best_line, scores, tasks),
    )


def _is_guessing(
    results: Results, line: Line, scores: Mapping[str, Row], tasks: Sequence[str]
) -> bool:
    groups = {g.task: g for g in results.groups if (g.model, g.variant, g.source) == line}
    judged = [
        TaskScores(results.infos[task], scores[task].metric, scores[task].values, groups[task])
        for task in tasks
    ]
    return is_guessing(judged, no_skill(results.baselines), Evidence())


def verdict_on(
    results: Results, best: BestRun, average: AverageName = "paper"
) -> tuple[Comparison, PairResult] | None:
    """The best run against the next one that it may be compared with: `compare` of the two under
    the average that made it the best.

    None without such a rival, where the tasks are of several languages, and where the name stands
    for other runs than those of the board's line.
    """
    for rival in best.rivals:
        if rival == best.name:
            continue
        with suppress(UsageError):  # runs under other conditions are no rival
            comparison = compare(
                best.name, rival, results_dir=results, tasks=best.tasks, average=average
            )
            # tasks of several languages have a verdict each, which Compare shows
            if len(comparison.parts) > 1:
                return None
            pair = comparison.pairs[0]
            is_same_line = abs(pair.means[0] - best.mean.mean) < TIE
            return (comparison, pair) if is_same_line else None
    return None


def best_run_sentence(best: BestRun) -> str:
    """The best of the runs here and its mean."""
    start = "Best run here"
    if best.protocol:
        is_named = best.protocol.endswith("protocol")
        start += f" under the {best.protocol}" if is_named else f" ({best.protocol})"
    tasks = joined(best.tasks) if len(best.tasks) <= 2 else f"{len(best.tasks)} tasks"
    margin = ""
    if best.mean.margin is not None and best.mean.n_seeds >= 3:
        margin = f" ±{100 * best.mean.margin:.1f}"
    guessing = ", not above guessing" if best.guessing else ""
    return f"{start}: {best.name}, {100 * best.mean.mean:.1f}{margin} on {tasks}{guessing}."


def best_run_facts(best: BestRun) -> list[str]:
    """Where the best of the runs here stands: a sentence each for its tasks, the best published,
    the published models and the baselines.
    """
    facts = [f"{best.name} has {joined(best.tasks)}."] if len(best.tasks) > 2 else []
    if best.published:
        top = best.published[0]
        gap = 100 * (best.mean.mean - top.mean)
        side = "above" if gap > 0 else "below"
        beaten = sum(best.mean.mean > printed.mean for printed in best.published)
        facts.append(
            f"It is {abs(gap):.1f} points {side} the best published there "
            f"({line_name(top.model, top.variant)}, {100 * top.mean:.1f})."
        )
        facts.append(f"It is above {beaten} of {len(best.published)} published models.")
    if best.judged:
        facts.append(f"It is above the best baseline on {best.above} of {best.judged} tasks.")
    return facts


def rival_sentence(pair: PairResult) -> str:
    """The best run against the next one: the difference and its interval, those of `compare`."""
    interval = "" if pair.here is None else interval_words(pair, pair.here.interval)
    reason = ""
    if pair.here is None and pair.reason:
        reason = f" ({pair.reason.partition(' on ')[0]})"
    guessing = ", not above guessing" if pair.verdict.guessing else ""
    if pair.is_tied:
        tied = f"{pair.better} and {pair.worse}, the best two runs, have the same mean"
        return f"{tied}{interval}{reason}{guessing}:"
    return (
        f"{pair.better} is {points(abs(pair.difference))} above {pair.worse}, the next "
        f"run{interval}{reason}{guessing}:"
    )
