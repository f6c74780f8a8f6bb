"""A report as text: terminal table, Markdown, CSV, LaTeX, JSON, HTML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Literal, get_args

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from biobench.errors import UsageError
from biobench.report import experiment_render
from biobench.report.escape import for_csv, for_latex, for_markdown, plain
from biobench.report.html import to_html
from biobench.report.rows import Report
from biobench.report.wide import Block, Line, blocks, caption, percent
from biobench.schema.strict import suggest

Format = Literal["table", "md", "csv", "latex", "json", "html"]
EMPTY = "No results yet. `biobench run MODEL --suite fr` makes some; `biobench demo` shows how, in minutes."
CSV_COLUMNS = (
    "model",
    "variant",
    "task",
    "metric",
    "mean",
    "task_mean",
    "mean_rank",
    "failed",
    "sd",
    "low",
    "high",
    "n_seeds",
    "source",
    "language",
    "suite",
    "tasks",
    "seconds",
    "peak_memory_bytes",
    "energy_kwh",
    "truncated_documents",
    "lost_gold",
    "parameters",
    "train_tokens_per_second",
)


def render(report: Report, format: str) -> str:
    """The report in one of the formats, ending with a line break. Raises UsageError for an unknown format."""
    if format not in _WRITERS:
        raise UsageError(f"unknown format '{format}'", hint=suggest(format, list(get_args(Format))))
    return _WRITERS[format](report)


def print_table(report: Report, console: Console | None = None) -> None:
    """The terminal table, on stdout unless told otherwise; wide blocks are cut into pieces that fit."""
    console = console or Console()
    console.print(_terminal(report, console.width))


#: Columns of a table that goes to a file or pipe: wide enough for a suite.
_FILE_WIDTH = 240
_NAME_WIDTH, _OTHER_WIDTH, _CELL_WIDTH = 46, 16, 15


def _terminal(report: Report, width: int) -> Group:
    parts: list[Table | Text] = []
    for block in blocks(report):
        headings = _headings(block)
        share = max(1, (width - _NAME_WIDTH - _OTHER_WIDTH) // _CELL_WIDTH)
        for first in range(0, len(headings), share):
            table = Table(title=Text(block.title + (" (continued)" if first else "")), title_justify="left")
            table.add_column("model", overflow="fold", max_width=_NAME_WIDTH)
            table.add_column("source", no_wrap=True)
            for name in headings[first : first + share]:
                table.add_column(Text(plain(name)), justify="right", overflow="fold")
            for line in block.lines:
                cells = _cells(block, line)[first : first + share]
                table.add_row(Text(plain(line.name)), line.source, *(Text(cell) for cell in cells))
            parts.append(table)
    parts.append(Text(caption(report) if parts else EMPTY))
    parts += [Text(f"* {plain_note(note)}") for note in report.notes]
    parts += experiment_render.terminal(report.experiments, width)
    parts += [Text(f"! {plain_note(str(f))}; {plain_note(f.hint)}") for f in report.findings]
    return Group(*parts)


def _table(report: Report) -> str:
    stream = io.StringIO()
    Console(file=stream, width=_FILE_WIDTH, color_system=None).print(_terminal(report, _FILE_WIDTH))
    return stream.getvalue()


def _headings(block: Block) -> list[str]:
    return [*(["average", "by task"] if block.has_average else []), *(c.id for c in block.columns)]


def _cells(block: Block, line: Line) -> list[str]:
    cells = [percent(line.average), _by_task(line)] if block.has_average else []
    return [*cells, *(percent(line.cells.get(c.id)) for c in block.columns)]


def _by_task(line: Line) -> str:
    """The plain mean over tasks, beside the average that orders the lines."""
    mean = None if line.average is None else line.average.task_mean
    return "–" if mean is None else f"{100 * mean:.1f}"


def plain_note(note: str) -> str:
    """A footnote, line by line harmless: notes hold names made by users but are longer than one."""
    return " ".join(plain(word) for word in note.split())


def _markdown(report: Report) -> str:
    out = []
    for block in blocks(report):
        headings = ["model", "source", *(for_markdown(h) for h in _headings(block))]
        out += [f"### {block.title}", "", _piped(headings)]
        out.append(_piped(["---", "---", *("---:" for _ in headings[2:])]))
        out += [_piped([for_markdown(line.name), line.source, *_cells(block, line)]) for line in block.lines]
        out.append("")
    out.append(caption(report) if out else EMPTY)
    notes = [*report.notes, *(f"{f}; {f.hint}" for f in report.findings)]
    if notes:
        out += ["", *(f"- {' '.join(for_markdown(word) for word in note.split())}" for note in notes)]
    if report.experiments:
        out += ["", *experiment_render.markdown(report.experiments)]
    return "\n".join(out).rstrip("\n") + "\n"


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _csv(report: Report) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in (*report.rows, *report.averages):
        cells = [getattr(row, name) for name in CSV_COLUMNS]
        writer.writerow(["" if c is None else for_csv(c) if isinstance(c, str) else repr(c) for c in cells])
    return stream.getvalue()


def _latex(report: Report) -> str:
    """A booktabs table a suite; needs \\usepackage{booktabs,textcomp} and T1 fonts."""
    out = [r"% \usepackage[T1]{fontenc}\usepackage{booktabs,textcomp}"]
    for block in blocks(report):
        headings = ["model", "source", *(for_latex(h) for h in _headings(block))]
        out += [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{ll{'r' * (len(headings) - 2)}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
        ]
        for line in block.lines:
            cells = [for_latex(line.name), line.source, *(for_latex(c) for c in _cells(block, line))]
            out.append(" & ".join(cells) + r" \\")
        out += [
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{block.title}. {for_latex_note(caption(report))}}}",
            r"\end{table}",
            "",
        ]
    notes = [*report.notes, *(f"{f}; {f.hint}" for f in report.findings)]
    if notes:
        out += [r"\begin{itemize}", *(rf"\item {for_latex_note(note)}" for note in notes), r"\end{itemize}"]
    out += experiment_render.latex(report.experiments)
    return "\n".join(out) + "\n"


def for_latex_note(note: str) -> str:
    """A sentence, word by word."""
    return " ".join(for_latex(word) for word in note.split())


def _json(report: Report) -> str:
    text = json.dumps(report.as_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # a finding's path may hold bytes that are no text; as an escape they are JSON
    return text.encode("utf-8", "backslashreplace").decode()


_WRITERS: dict[str, Callable[[Report], str]] = {
    "table": _table,
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
    "html": to_html,
}
