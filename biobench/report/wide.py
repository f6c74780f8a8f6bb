"""The table as people read it: models down, tasks across, one block a suite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biobench.report.footnotes import MARK, marked
from biobench.report.frame import Report
from biobench.report.groups import Source
from biobench.report.literature.beside import LIKELY
from biobench.report.row import METRICS, Row
from biobench.report.tasks import TaskInfo

SUITES = {"fr": "French", "en": "English", "needle": "Needle in a haystack"}
_LAST = {"oracle": 3, "baseline": 2, "frozen": 1}
RUNS_FIRST = ("run", "frozen", "external", "submitted", "published", "baseline", "oracle")
"""The sources in the order of printed tables."""


@dataclass(frozen=True, slots=True)
class ModelLine:
    """One model in one block. cells: task -> row; average: over the suite, None where it has none."""

    model: str
    variant: str
    source: str
    cells: Mapping[str, Row]
    average: Row | None

    @property
    def name(self) -> str:
        """Model and, in brackets, what sets its runs apart."""
        return f"{self.model} [{self.variant}]" if self.variant else self.model


@dataclass(frozen=True, slots=True)
class Block:
    """A suite's part of the report."""

    suite: str
    title: str
    columns: tuple[TaskInfo, ...]
    lines: tuple[ModelLine, ...]


def blocks(report: Report, *, runs_first: bool = False) -> list[Block]:
    """One block a suite. Lines with the best average first, then those without one by name; oracles last.

    runs_first: the lines of each source together, in the order of `RUNS_FIRST`.
    """
    result = []
    for suite in report.suites:
        averages = {row.line: row for row in report.averages if row.suite == suite}
        cells: dict[tuple[str, str, Source], dict[str, Row]] = {}
        for row in report.rows:
            if row.suite == suite:
                cells.setdefault(row.line, {})[row.task] = row
        lines = [ModelLine(*line, of_line, averages.get(line)) for line, of_line in cells.items()]
        lines.sort(key=_order)
        if runs_first:
            lines.sort(key=lambda line: RUNS_FIRST.index(line.source))
        columns = tuple(c for c in report.columns if c.suite == suite)
        result.append(Block(suite, report.title or SUITES.get(suite, suite), columns, tuple(lines)))
    return result


def _order(line: ModelLine) -> tuple[int, float, str, str, str]:
    mean = 1.0 if line.average is None else -line.average.mean
    return _LAST.get(line.source, 0), mean, line.model, line.variant, line.source


def percent(row: Row | None, *, margin: bool = True) -> str:
    """``70.1 ±0.4``: mean and half the 95% interval in percent; a dash where there is no score.

    A dagger follows where part of the test documents stands in the model's training text, a double dagger where a
    published value's average is likely, not stated.
    """
    if row is None:
        return "–"
    text = f"{100 * row.mean:.1f}"
    if margin and row.margin is not None:
        text += f" ±{100 * row.margin:.1f}"
    if row.failed:
        text += f" ({row.failed} failed)"
    return " ".join([text, *[MARK] * marked(row.contamination), *[LIKELY] * row.only_likely])


def headings(block: Block) -> list[str]:
    """Names of the columns of scores: the averages over corpora and over tasks where there are any, then the tasks."""
    average = ["average", "by task"] if any(line.average for line in block.lines) else []
    return [*average, *(c.id for c in block.columns)]


def cells_of(block: Block, line: ModelLine) -> list[str]:
    """The line's cells below `headings`."""
    task_mean = None if line.average is None else line.average.task_mean
    average = [percent(line.average), "–" if task_mean is None else f"{100 * task_mean:.1f}"]
    has_average = any(other.average for other in block.lines)
    return [*(average if has_average else []), *(percent(line.cells.get(c.id)) for c in block.columns)]


def caption(report: Report) -> str:
    """What the numbers are."""
    if report.caption:
        return report.caption
    words = {
        "macro_f1": "Macro F1 over the labels with gold in the full test split",
        "micro_f1": "Micro F1",
        "weighted_f1": "F1 weighted by gold support",
    }
    paper = report.average == "paper"
    what = "Each task's average that published scores are compared with" if paper else words[METRICS[report.average]]
    return (
        f"{what}, in percent; ± is half the 95% t interval over seeds (this task and test set, other seeds), "
        "missing where there is one seed, where all seeds gave the same score, and for published means. The "
        "average is the mean over corpora of their tasks' means."
    )
