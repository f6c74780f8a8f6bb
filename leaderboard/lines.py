"""The lines of a table: a model under a variant, its rows and what its runs share with others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from biobench.report.averages import suite_averages
from biobench.report.groups import RunGroup, Source
from biobench.report.results import Results
from biobench.report.row import Row

TESTABLE = ("run", "external", "submitted")
"""Sources whose lines have runs or predictions of ours to test; published lines are printed."""
NOT_MODELS = ("baseline", "oracle")
Line = tuple[str, str, Source]
"""Model, variant and source."""
Lines = Mapping[Line, Mapping[str, Row]]
"""Line -> task -> row."""


def protocols(results: Results) -> dict[Line, str]:
    """Line -> under what its runs were made, in words; "" for full runs on the shipped protocol."""
    return {
        (group.model, group.variant, group.source): _protocol_of(group) for group in results.groups
    }


def _protocol_of(group: RunGroup) -> str:
    departures = group.departures
    if departures.whole:
        return ""
    return str(departures.without("weights", "submission", "unlike"))


def means(results: Results, rows: Iterable[Row], tasks: Collection[str]) -> dict[Line, Row]:
    """Line -> mean over the corpora of these tasks, of the lines that have them all on whole test
    splits.
    """
    scored = [
        row
        for row in rows
        if row.task in tasks and not row.partial and row.source not in NOT_MODELS
    ]
    if len(tasks) == 1:
        return {row.line: row for row in scored}
    infos = {task: replace(results.infos[task], in_suite=True) for task in tasks}
    return {row.line: row for row in suite_averages(scored, infos)[0]}


def shared_tasks(
    lines: Mapping[Line, Collection[str]], order: Iterable[str], chosen: Collection[str] = ()
) -> tuple[str, ...]:
    """`chosen`, else the set of tasks with the most scores, tasks times the lines that have all of
    them; then the most lines. In `order`.
    """
    best = set(chosen) or _most_shared(lines)
    return tuple(task for task in order if task in best)


def _most_shared(lines: Mapping[Line, Collection[str]]) -> set[str]:
    sets = {frozenset(tasks) for tasks in lines.values()}
    candidates = sets | {tasks & tasks_of_another for tasks in sets for tasks_of_another in sets}
    best: tuple[int, int, list[str]] = (0, 0, [])
    for tasks in candidates:
        count = sum(tasks <= set(scored) for scored in lines.values())
        best = max(best, (count * len(tasks), count, sorted(tasks)))
    return set(best[2])
