"""The rows as a table: models down, tasks across, one block a suite; what every printed format shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from biobench.report.contamination import MARK, marked
from biobench.report.literature.beside import LIKELY, NAMES
from biobench.report.rows import METRICS, Report, Row
from biobench.report.tasks import TaskInfo

SUITES = {"fr": "French", "en": "English", "needle": "Needle in a haystack"}
_LAST = {"ceiling": 3, "floor": 2, "frozen": 1}
RUNS_FIRST = ("run", "frozen", "outside", "submitted", "published", "floor", "ceiling")
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

    @property
    def has_average(self) -> bool:
        """Whether some line has a suite average."""
        return any(line.average is not None for line in self.lines)


def blocks(report: Report, *, runs_first: bool = False) -> list[Block]:
    """One block a suite. Lines with the best average first, then those without one by name; oracles last.

    runs_first: the lines of each source together, in the order of `RUNS_FIRST`.
    """
    result = []
    for suite in report.suites:
        columns = tuple(c for c in report.columns if c.suite == suite)
        averages = {row.line: row for row in report.averages if row.suite == suite}
        cells: dict[tuple[str, str, str], dict[str, Row]] = {}
        for row in report.rows:
            if row.suite == suite:
                cells.setdefault(row.line, {})[row.task] = row
        lines = [
            ModelLine(model, variant, source, line_cells, averages.get((model, variant, source)))  # type: ignore[arg-type]
            for (model, variant, source), line_cells in cells.items()
        ]
        lines.sort(key=_order)
        if runs_first:
            lines.sort(key=lambda line: RUNS_FIRST.index(line.source))
        result.append(Block(suite, report.title or SUITES.get(suite, suite), columns, tuple(lines)))
    return result


def _order(line: ModelLine) -> tuple[int, int, float, str, str, str]:
    mean = line.average.mean if line.average is not None else 0.0
    return (
        _LAST.get(line.source, 0),
        0 if line.average is not None else 1,
        -mean,
        line.model,
        line.variant,
        line.source,
    )


def percent(row: Row | None, *, margin: bool = True, failed: str = "{} failed") -> str:
    """``70.1 ±0.4``: mean and half the 95% interval in percent; a dash where there is no score.

    A dagger follows where part of the test documents stands in the model's training text, a double dagger where a
    published value's average is likely, not stated. failed: how the number of failed runs is worded.
    """
    if row is None:
        return "–"
    text = f"{100 * row.mean:.1f}"
    if margin and row.margin is not None:
        text += f" ±{100 * row.margin:.1f}"
    if row.failed:
        text += f" ({failed.format(row.failed)})"
    marks = [MARK] * marked(row.contamination) + [LIKELY] * row.only_likely
    return " ".join([text, *marks])


def caption(report: Report) -> str:
    """What the numbers are."""
    if report.caption:
        return report.caption
    if report.average == "paper":
        what = "Each task's average that published scores are compared with"
    else:
        what = {
            "macro_f1": "Macro F1 over the labels with gold in the full test split",
            "micro_f1": "Micro F1",
            "weighted_f1": "F1 weighted by gold support",
        }[METRICS[report.average]]
    return (
        f"{what}, in percent; ± is half the 95% t interval over seeds (this task and test set, other seeds), "
        "missing where there is one seed, where all seeds gave the same score, and for published means. The "
        "average is the mean over corpora of their tasks' means."
    )


def metric_name(row: Row) -> str:
    """The score in words."""
    return NAMES.get(row.metric, row.metric)


def headings(block: Block) -> list[str]:
    """Names of the columns of scores: the averages over corpora and over tasks where there are any, then the tasks."""
    return [*(["average", "by task"] if block.has_average else []), *(c.id for c in block.columns)]


def cells_of(block: Block, line: ModelLine) -> list[str]:
    """The line's cells below `headings`."""
    cells = [percent(line.average), _by_task(line)] if block.has_average else []
    return [*cells, *(percent(line.cells.get(c.id)) for c in block.columns)]


def _by_task(line: ModelLine) -> str:
    """The plain mean over tasks, beside the average that orders the lines."""
    mean = None if line.average is None else line.average.task_mean
    return "–" if mean is None else f"{100 * mean:.1f}"
