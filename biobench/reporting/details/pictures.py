"""The board's charts of a report, as SVG in a page that loads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from biobench.reporting import charts
from biobench.reporting.escape import for_html, words
from biobench.reporting.frame import Report
from biobench.reporting.names import in_sentences, labels
from biobench.reporting.row import Row
from biobench.reporting.sheets import Sheet
from biobench.reporting.tasks import TaskInfo
from biobench.schema.kind import get_metric

MOST_LINES = 30
"""Models in a chart, the best ones."""
WIDTH = 220
"""Units of a chart without its names: with them it is as wide as a telephone, and it grows with the
page.
"""
LINES = "#88888844"
"""Of a grid, on light and dark grounds."""
WITHOUT_CHARTS = "<p class=\"notes\">Charts: <code>pip install 'biobench[charts]'</code>.</p>\n"
"""Instead of charts, where the package that draws them is missing."""


def can_draw() -> bool:
    """Whether the package that draws charts is installed."""
    return find_spec("vl_convert") is not None


def pictures(report: Report, sheet: Sheet) -> str:
    """HTML of a suite's charts: score against size, then every task, opened where it is alone."""
    tasks = [info for info in report.columns if info.suite == sheet.suite]
    figures = "".join(_task_figure(report, info) for info in tasks)
    opened = ""
    if len(tasks) == 1:
        opened = " open"
    summary = f"<summary>{words(sheet.title, for_html)}: charts by task</summary>\n"
    how_to_read = f"<p>{charts.TASK_SCORES}</p>\n"
    by_task = f"<details{opened}>{summary}{how_to_read}{figures}</details>\n"
    return _cost_figure(report, sheet) + by_task


def _cost_figure(report: Report, sheet: Sheet) -> str:
    """The average over the suite against the size; nothing for fewer than two models of known
    size.
    """
    means = []
    for row in report.averages:
        # what a submission says of its size is its author's word
        if row.suite == sheet.suite and row.parameters and row.source != "submitted":
            means.append(row)
    if len(means) < 2:
        return ""
    short = in_sentences(row.name for row in means)
    points = []
    for row in means:
        points.append(
            {
                "model": short[row.name],
                "cost": row.parameters,
                "score": 100 * row.mean,
                "result": row.source,
                "here": row.source != "published",
            }
        )
    caption = f"{sheet.title}: average against parameters; filled: runs here."
    return _figure(charts.scatter(points, "parameters"), caption)


def _task_figure(report: Report, info: TaskInfo) -> str:
    """Every model's score on a task, the best first, and the best baseline."""
    models: list[Row] = []
    best_baseline = None
    for row in sorted(report.rows, key=lambda row: -row.mean):
        if row.task != info.id or row.source == "oracle":
            continue
        if row.source != "baseline":
            models.append(row)
        elif best_baseline is None:
            best_baseline = row
    if not models:
        return ""
    models = models[:MOST_LINES]
    named = list(zip(_chart_names(models), models, strict=True))
    chart = charts.task_scores(named, best_baseline)
    return _figure(chart, f"{info.id}: {get_metric(models[0].metric).words}")


def _chart_names(rows: Sequence[Row]) -> list[str]:
    """A name each; a published model that was run here too says which of the two it is."""
    times = Counter(row.name for row in rows)
    names = []
    for row in rows:
        name = row.name
        if times[name] > 1:
            name += f", {row.source}"
        names.append(name)
    short = labels(names)
    return [short[name] for name in names]


def _figure(chart: Any, about: str) -> str:
    """An SVG that takes the colour of the page's text, with words for whoever does not see it."""
    import vl_convert

    bare = chart.properties(width=WIDTH).configure(aria=False, background="transparent")
    bare = bare.configure_view(stroke=LINES).configure_axisQuantitative(gridColor=LINES)
    spec = charts.legible(bare, charts.INK).to_dict()
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    svg = svg.replace(f'"{charts.INK}"', '"currentColor"')
    caption = f"<figcaption>{words(about, for_html)}</figcaption>"
    return f"<figure>{caption}{svg}</figure>\n"
