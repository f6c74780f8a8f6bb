"""The lines of a table: a model under a variant, its rows and what its runs share with others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from operator import attrgetter

from biobench.reporting.averages import suite_averages
from biobench.reporting.evidence import LEAST_SEEDS
from biobench.reporting.groups import Source
from biobench.reporting.results import Results
from biobench.reporting.row import Row

TESTABLE = ("run", "external", "submitted")
"""Sources whose lines have runs or predictions of ours to test; published lines are printed."""
NOT_MODELS = ("baseline", "oracle")
Line = tuple[str, str, Source]
"""Model, variant and source."""
Lines = Mapping[Line, Mapping[str, Row]]
"""Line -> task -> row."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """What a view shows. protocols: line -> under what its runs were made, in words; "" for full
    runs on the shipped protocol and for published lines. marks: line of runs -> whether it was
    reproduced, re-scored or claimed, of a submission. baseline: the best one of each task.
    """

    results: Results
    lines: Lines
    protocols: Mapping[Line, str]
    marks: Mapping[Line, str]
    baseline: Mapping[str, Row]

    def of_protocol(self, protocol: str) -> Lines:
        """The lines under it."""
        return {line: rows for line, rows in self.lines.items() if self.protocols[line] == protocol}

    def means(self, tasks: Collection[str]) -> dict[Line, Row]:
        """Line -> mean over the corpora of these tasks, of the lines that have them all on whole
        test splits.
        """
        scored = []
        for rows in self.lines.values():
            for task, row in rows.items():
                if task in tasks and not row.partial:
                    scored.append(row)
        means: Iterable[Row] = scored
        if len(tasks) > 1:
            infos = {task: replace(self.results.infos[task], in_suite=True) for task in tasks}
            means, _ = suite_averages(scored, infos)
        return {row.line: row for row in means}


def rows_of_view(results: Results, rows: Iterable[Row]) -> ViewRows:
    """The rows of a view, line by line."""
    lines: dict[Line, dict[str, Row]] = defaultdict(dict)
    baseline: dict[str, Row] = {}
    for row in rows:
        if row.source == "baseline":
            best = baseline.get(row.task, row)
            baseline[row.task] = max(best, row, key=attrgetter("mean"))
        elif row.source not in NOT_MODELS:
            lines[row.line][row.task] = row
    protocols = dict.fromkeys(lines, "")
    marks = {}
    for group in results.groups:
        if group.line in lines:
            departures = group.departures.without("weights", "submission", "unlike")
            protocols[group.line] = str(departures)
            marks[group.line] = group.mark
    return ViewRows(
        results=results,
        lines=dict(lines),
        protocols=protocols,
        marks=marks,
        baseline=baseline,
    )


def score(row: Row) -> str:
    """``70.1 ±0.4``: percent, with half the 95% interval where three seeds bear one."""
    words = f"{100 * row.mean:.1f}"
    if row.margin is not None and row.n_seeds >= LEAST_SEEDS:
        words += f" ±{100 * row.margin:.1f}"
    if row.failed:
        words += f" ({row.failed} failed)"
    return words


def shared_tasks(lines: Mapping[Line, Collection[str]], order: Iterable[str]) -> tuple[str, ...]:
    """The set of tasks with the most scores, tasks times the lines that have all of them; then the
    most lines. A set that one line alone has compares nothing, and comes last. In `order`.
    """
    task_sets = set(map(frozenset, lines.values()))
    task_sets |= {tasks & others for tasks, others in combinations(task_sets, 2)}

    def shared_scores(tasks: frozenset[str]) -> tuple[bool, int, int, list[str]]:
        count = sum(map(tasks.issubset, lines.values()))
        is_comparison = count > 1 and len(tasks) > 0
        return is_comparison, count * len(tasks), count, sorted(tasks)

    best = max(task_sets, key=shared_scores, default=frozenset())
    return tuple(sorted(best, key=list(order).index))
