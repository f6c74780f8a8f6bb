"""Tie groups of a suite's complete lines: letters instead of bare ranks."""

from __future__ import annotations

import math
from functools import lru_cache

from biobench.report.conditions import lengths_read
from biobench.report.rows import Report, Row
from biobench.stats import compare_many

MOST = 30
"""Lines up to which all pairs are tested; with more, a family-wise correction tells hardly anything apart."""
PRINTED = 0.001
"""Step of published scores, a fraction."""

Line = tuple[str, str, str]
_Entry = tuple[Line, tuple[tuple[str, str, tuple[float, ...]], ...]]
"""A line and its (task, corpus, scores over seeds) in one order of tasks for all lines."""


def tie_groups(report: Report, suite: str) -> dict[Line, str]:
    """Line -> letters; lines that share one were not told apart at 5% (t over corpora, Holm's correction).

    Only lines with every task of the suite take part. Empty where there are fewer than two of them or more
    than 30, where the suite has a single corpus, or where windows differ so that needle scores are over other lengths.
    """
    averaged = [c for c in report.columns if c.suite == suite and c.in_suite and c.id not in report.unranked]
    corpora = {c.id: c.corpus for c in averaged}
    complete = [row.line for row in report.averages if row.suite == suite and row.complete]
    if not 2 <= len(complete) <= MOST or len(set(corpora.values())) < 2:
        return {}
    read = {(g.model, g.variant, g.source, g.task): lengths_read(g.briefs[0]) for g in report.groups}
    if any(len({read.get((*line, task), ()) for line in complete}) > 1 for task in corpora):
        return {}
    cells: dict[Line, dict[str, Row]] = {line: {} for line in complete}
    for row in report.rows:
        if row.line in cells and row.task in corpora:
            cells[row.line][row.task] = row
    entries = tuple(
        (line, tuple((task, corpus, own[task].values or (own[task].mean,)) for task, corpus in corpora.items()))
        for line, own in sorted(cells.items())
        if own.keys() == corpora.keys()
    )
    # as in `compare`: gaps that agree to less than one answer is worth agree by chance
    runs = {g.task: g for g in report.groups if g.task in corpora and (g.model, g.variant, g.source) in cells}
    unit = math.sqrt(sum(g.unit**2 for g in runs.values()) / len(corpora))
    return dict(_letters(entries, unit)) if len(entries) > 1 else {}


@lru_cache(maxsize=32)
def _letters(entries: tuple[_Entry, ...], unit: float) -> tuple[tuple[Line, str], ...]:
    names = [str(i) for i in range(len(entries))]
    scores = [[values for _, _, values in cells] for _, cells in entries]
    printed = any(len(values) == 1 for model in scores for values in model)
    found = compare_many(
        scores,
        names,
        tasks=[task for task, _, _ in entries[0][1]],
        clusters=[corpus for _, corpus, _ in entries[0][1]],
        resolution=max(unit, PRINTED if printed else 0.0),
        paired_seeds=False,
    )
    return tuple((entries[int(s.model)][0], s.ties or "") for s in found.standings)
