"""A report as text: table, Markdown, CSV, LaTeX, JSON, HTML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Literal, get_args

from biobench.errors import UsageError
from biobench.report.escape import for_csv, for_latex, for_markdown
from biobench.report.html import to_html
from biobench.report.literature import experiment_render
from biobench.report.rows import Report
from biobench.report.terminal import EMPTY, plain_note, to_text
from biobench.report.wide import blocks, caption, cells_of, headings
from biobench.schema.strict import suggest

__all__ = ["CSV_COLUMNS", "Format", "for_latex_note", "plain_note", "render"]

Format = Literal["table", "md", "csv", "latex", "json", "html"]
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
    """The report in one of the formats, ending with a line break. Raises UsageError for an unknown format.

    The table is the short one (`terminal.to_text` has the options); Markdown, LaTeX and HTML hold every note and
    the published experiments.
    """
    if format not in _WRITERS:
        raise UsageError(f"unknown format '{format}'", hint=suggest(format, list(get_args(Format))))
    return _WRITERS[format](report)


def _markdown(report: Report) -> str:
    out = []
    for block in blocks(report, runs_first=True):
        names = ["model", "source", *(for_markdown(h) for h in headings(block))]
        out += [f"### {block.title}", "", _piped(names)]
        out.append(_piped(["---", "---", *("---:" for _ in names[2:])]))
        out += [_piped([for_markdown(line.name), line.source, *cells_of(block, line)]) for line in block.lines]
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
    for block in blocks(report, runs_first=True):
        names = ["model", "source", *(for_latex(h) for h in headings(block))]
        out += [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{ll{'r' * (len(names) - 2)}}}",
            r"\toprule",
            " & ".join(names) + r" \\",
            r"\midrule",
        ]
        for line in block.lines:
            cells = [for_latex(line.name), line.source, *(for_latex(c) for c in cells_of(block, line))]
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
    "table": to_text,
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
    "html": to_html,
}
