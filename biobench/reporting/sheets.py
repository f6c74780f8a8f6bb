"""The table as people read it: models down, tasks across, one sheet of texts a suite."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from biobench.core.grouped import grouped
from biobench.reporting.entrants import line_name
from biobench.reporting.footnotes import MARK, marked
from biobench.reporting.frame import Report
from biobench.reporting.groups import Source
from biobench.reporting.literature.comparison import LIKELY
from biobench.reporting.row import METRICS, Row, in_percent
from biobench.schema.kind import get_metric
from biobench.score.slices import SLICES

SUITES = {"fr": "French", "en": "English", "needle": "Needle in a haystack"}
"""The shipped suites in their order, with their titles."""
Line = tuple[str, str, Source]
"""Model, variant and source."""
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
    shipped_suites = list(SUITES)
    other_suites = {info.suite for info in report.columns}.difference(shipped_suites)
    tables = [_of_suite(report, suite) for suite in (*shipped_suites, *sorted(other_suites))]
    return [sheet for sheet in tables if sheet.rows]


def _of_suite(report: Report, suite: str) -> Sheet:
    """The lines of each source stand together, in the order of `SOURCES`; those with the best
    average come first, then those without one by name. Averages over corpora and over tasks stand
    before the tasks where there are any.
    """
    tasks = [info.id for info in report.columns if info.suite == suite]
    averages = {row.line: row for row in report.averages if row.suite == suite}
    of_suite = [row for row in report.rows if row.suite == suite]
    columns = ["model", "source"]
    if averages:
        columns += ["average", "by task"]
    title = report.title or SUITES.get(suite, suite)
    sheet = Sheet(suite, title, columns + tasks, [])

    def rank(line: Line) -> tuple[int, float, Line]:
        mean = 1.0
        if line in averages:
            mean = -averages[line].mean
        return SOURCES.index(line[2]), mean, line

    lines = grouped(of_suite, lambda row: row.line)
    for line in sorted(lines, key=rank):
        model, variant, source = line
        by_task = {row.task: row for row in lines[line]}
        cells = [line_name(model, variant), source]
        if averages:
            cells += _average_cells(averages.get(line))
        cells += [percent(by_task.get(task)) for task in tasks]
        sheet.rows.append(cells)
    return sheet


def _average_cells(mean: Row | None) -> list[str]:
    if mean is None or mean.task_mean is None:
        return [percent(mean), "–"]
    return [percent(mean), in_percent(mean.task_mean)]


def percent(row: Row | None) -> str:
    """``70.1 ±0.4``: mean and half the 95% interval in percent; a dash where there is no score.

    A dagger follows where part of the test documents stands in the model's training text, a double
    dagger where a published value's average is likely, not stated.
    """
    if row is None:
        return "–"
    text = in_percent(row.mean)
    if row.margin is not None:
        text += f" ±{in_percent(row.margin)}"
    if row.failed:
        text += f" ({row.failed} failed)"
    if marked(row.contamination):
        text += f" {MARK}"
    if row.only_likely:
        text += f" {LIKELY}"
    return text


def _metrics_of(rows: Sequence[Row]) -> str:
    """`` (micro F1: bc5cdr; macro F1 else)``: which average each task counts by."""
    metrics = dict.fromkeys((row.metric, row.task) for row in rows)
    tasks_of = grouped(metrics, itemgetter(0))
    if not tasks_of:
        return ""
    commonest = max(tasks_of, key=lambda metric: len(tasks_of[metric]))
    others = []
    for metric, pairs in tasks_of.items():
        if metric != commonest:
            tasks = ", ".join(task for _, task in pairs)
            others.append(f"{get_metric(metric).words}: {tasks}")
    last = get_metric(commonest).words
    return f" ({'; '.join([*others, f'{last} else'])})" if others else f" ({last})"


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
        averaging = f"Each task by the average of its published scores{_metrics_of(report.rows)}"
    else:
        averaging = f"Each task by the average that its spec names{_metrics_of(report.rows)}"
    part = ""
    if report.slice:
        part = f"Of {SLICES[report.slice].words} ({SLICES[report.slice].meaning}). "
    text = (
        f"{part}{averaging}, in percent; ± is half the 95% t interval over seeds (this task and "
        "test set, other seeds), missing where there is one seed, where all seeds gave the same "
        "score, and for published means."
    )
    if report.averages:
        text += (
            " The average is the mean over corpora of their tasks' means, `by task` the plain mean "
            "of the tasks; a model that lacks a task has neither."
        )
    return text
