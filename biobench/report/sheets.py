"""The table as people read it: models down, tasks across, one sheet of texts a suite."""

from __future__ import annotations

from typing import NamedTuple

from biobench.report.entrants import line_name
from biobench.report.footnotes import MARK, marked
from biobench.report.frame import Report
from biobench.report.groups import Source
from biobench.report.literature.comparison import LIKELY
from biobench.report.row import METRICS, Row
from biobench.score.slices import SLICES

SUITES = {"fr": "French", "en": "English", "needle": "Needle in a haystack"}
"""The shipped suites in their order, with their titles."""
SOURCES = ("run", "frozen", "external", "submitted", "published", "baseline", "oracle")
"""The sources in the order of printed tables."""


class Sheet(NamedTuple):
    """A table of texts as every format shows it: columns and rows begin with the model and its
    source.
    """

    suite: str
    title: str
    columns: list[str]
    rows: list[list[str]]


def sheets(report: Report) -> list[Sheet]:
    """A sheet a suite: fr, en, needle, then others."""
    order = {suite: place for place, suite in enumerate(SUITES)}
    return [
        _of_suite(report, s)
        for s in sorted({c.suite for c in report.columns}, key=lambda s: (order.get(s, 3), s))
    ]


def _of_suite(report: Report, suite: str) -> Sheet:
    """The lines of each source stand together, in the order of `SOURCES`; those with the best
    average come first, then those without one by name. Averages over corpora and over tasks stand
    before the tasks where there are any.
    """
    tasks = [c.id for c in report.columns if c.suite == suite]
    averages = {row.line: row for row in report.averages if row.suite == suite}
    cells: dict[tuple[str, str, Source], dict[str, Row]] = {}
    for row in report.rows:
        if row.suite == suite:
            cells.setdefault(row.line, {})[row.task] = row
    place = {line: -averages[line].mean if line in averages else 1.0 for line in cells}
    lines = sorted(cells, key=lambda line: (SOURCES.index(line[2]), place[line], line))
    has_average = any(line in averages for line in lines)
    rows = []
    for line in lines:
        mean = averages.get(line)
        by_task = "–" if mean is None or mean.task_mean is None else f"{100 * mean.task_mean:.1f}"
        first = [percent(mean), by_task] if has_average else []
        rows.append(
            [
                line_name(*line[:2]),
                line[2],
                *first,
                *(percent(cells[line].get(task)) for task in tasks),
            ]
        )
    columns = ["model", "source", *(["average", "by task"] if has_average else []), *tasks]
    return Sheet(suite, report.title or SUITES.get(suite, suite), columns, rows)


def percent(row: Row | None) -> str:
    """``70.1 ±0.4``: mean and half the 95% interval in percent; a dash where there is no score.

    A dagger follows where part of the test documents stands in the model's training text, a double
    dagger where a published value's average is likely, not stated.
    """
    if row is None:
        return "–"
    text = f"{100 * row.mean:.1f}"
    if row.margin is not None:
        text += f" ±{100 * row.margin:.1f}"
    if row.failed:
        text += f" ({row.failed} failed)"
    return " ".join([text, *[MARK] * marked(row.contamination), *[LIKELY] * row.only_likely])


def caption(report: Report) -> str:
    """What the numbers are."""
    if report.caption:
        return report.caption
    words = {
        "macro_f1": "Macro F1 over the labels with gold in the full test split",
        "micro_f1": "Micro F1",
        "weighted_f1": "F1 weighted by gold support",
    }
    if report.average != "paper":
        averaging = words[METRICS[report.average]]
    elif any(row.source == "published" for row in report.rows):
        averaging = "Each task by the average of its published scores"
    else:
        averaging = "Each task by the average that its spec names"
    part = ""
    if report.slice:
        part = f"Of {SLICES[report.slice].words} ({SLICES[report.slice].meaning}). "
    return (
        f"{part}{averaging}, in percent; ± is half the 95% t interval over seeds (this task and "
        "test set, other seeds), missing where there is one seed, where all seeds gave the same "
        "score, and for published means. The average is the mean over corpora of their tasks' "
        "means."
    )
