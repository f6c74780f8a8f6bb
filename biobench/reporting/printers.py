"""The results table printed: terminal, Markdown, CSV, LaTeX, JSON, HTML. Each printer escapes as it
writes.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, get_args

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from biobench.errors import UsageError, shown_json
from biobench.reporting.escape import (
    LONGEST,
    for_csv,
    for_html,
    for_latex,
    for_markdown,
    plain,
    words,
)
from biobench.reporting.footnotes import MARK
from biobench.reporting.frame import Report
from biobench.reporting.literature.comparison import LIKELY
from biobench.reporting.row import Row
from biobench.reporting.sheets import Sheet, caption, sheets
from biobench.schema.strict import suggest

Format = Literal["table", "md", "csv", "latex", "json", "html"]
CSV_COLUMNS = tuple(
    name
    for name in Row.__dataclass_fields__
    if name not in ("seeds", "values", "failed_seeds", "contamination", "notes")
)
"""The fields of a row that are one number or text."""
EMPTY = (
    "No results yet. `biobench run MODEL --suite fr` makes some; `biobench demo` shows how, "
    "in minutes."
)
FILE_WIDTH = 240
"""Columns of a table that goes to a file or pipe: wide enough for a suite."""
MOST_NOTES = 3
"""Remarks on runs that stand below a table in full unless all are asked for."""
_SECTIONS = {
    "run": "runs here",
    "frozen": "frozen encoders, a probe each",
    "baseline": "baselines",
    "oracle": "oracles",
}
_PROTOCOL = ("Not as in the protocol", "No deviation from the protocol")
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem;
       padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 0 2rem; }
caption { text-align: left; font-weight: 600; font-size: 1.15rem; padding: .5rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
         white-space: nowrap; }
th[scope=row], .text { text-align: left; }
thead th { border-bottom: 2px solid currentColor; }
tbody tr:hover { background: var(--soft); }
small { opacity: .75; }
.notes { max-width: 60rem; }
@media (max-width: 40rem) { th[scope=row] { white-space: normal; min-width: 9rem; } }
figure { margin: .5rem 0 1.5rem; }
figure svg { width: 100%; height: auto; max-width: 38rem; display: block; }
summary { cursor: pointer; margin: .5rem 0; }
"""


def render(report: Report, format: str) -> str:
    """The report in one of the formats, ending with a line break. Raises UsageError for an unknown
    format.

    The table is the short one (`to_text` has the options); Markdown, LaTeX and HTML hold every
    note.
    """
    if format not in _WRITERS:
        raise UsageError(f"unknown format '{format}'", hint=suggest(format, list(get_args(Format))))
    return _WRITERS[format](report)


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows under these columns; cells that a spreadsheet would take for formulas are text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_csv_cell(row[name]) for name in columns])
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    return for_csv(value) if isinstance(value, str) else value


def as_json(rows: Any) -> str:
    """The rows, or any plain data, as JSON."""
    text = json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False)
    return shown_json(text) + "\n"


def _csv(report: Report) -> str:
    return as_csv(CSV_COLUMNS, map(asdict, (*report.rows, *report.averages)))


def _notes(report: Report) -> list[str]:
    notes = list(report.notes)
    for finding in report.findings:
        notes.append(f"{finding}; {finding.hint}")
    return notes


def _markdown(report: Report) -> str:
    lines = []
    for sheet in sheets(report):
        numbers = ["---:"] * (len(sheet.columns) - 2)
        lines += [f"### {words(sheet.title, for_markdown)}", ""]
        lines.append(_markdown_row(sheet.columns))
        lines.append(f"| {' | '.join(['---', '---', *numbers])} |")
        lines += map(_markdown_row, sheet.rows)
        lines.append("")
    lines += [caption(report) if lines else EMPTY, ""]
    for note in _notes(report):
        lines.append(f"- {words(note, for_markdown)}")
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(for_markdown, cells))} |"


def _latex(report: Report) -> str:
    """A booktabs table a suite; needs \\usepackage{booktabs,textcomp} and T1 fonts."""
    lines = [r"% \usepackage[T1]{fontenc}\usepackage{booktabs,textcomp}"]
    for sheet in sheets(report):
        numbers = "r" * (len(sheet.columns) - 2)
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{ll{numbers}}}",
            r"\toprule",
            _latex_row(sheet.columns),
            r"\midrule",
            *map(_latex_row, sheet.rows),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{words(sheet.title, for_latex)}. {words(caption(report), for_latex)}}}",
            r"\end{table}",
            "",
        ]
    notes = [rf"\item {words(note, for_latex)}" for note in _notes(report)]
    if notes:
        lines += [r"\begin{itemize}", *notes, r"\end{itemize}"]
    return "\n".join(lines).rstrip("\n") + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(for_latex, cells))} \\"


def html_page(title: str, body: str) -> str:
    """A whole document: no script, nothing loaded from elsewhere, light and dark. body: escaped."""
    shown = words(title, for_html)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        "'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{shown}</h1>\n{body}</body>\n</html>\n"
    )


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1
) -> str:
    """A table; what stands behind a number is small. texts: how many columns hold words."""
    head = ""
    for number, heading in enumerate(columns):
        text_class = " class=text" if number < texts else ""
        head += f'<th scope="col"{text_class}>{for_html(heading)}</th>'
    body = ""
    for name, *cells in rows:
        body += f'<tr><th scope="row">{for_html(name)}</th>'
        for text in cells[: texts - 1]:
            body += f'<td class="text">{for_html(text)}</td>'
        for text in cells[texts - 1 :]:
            body += f"<td>{_html_number(text)}</td>"
        body += "</tr>\n"
    return (
        f'<div class="scroll" tabindex="0"><table>\n<caption>{words(caption, for_html)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _html_number(text: str) -> str:
    number, _, remainder = text.partition(" ")
    if not remainder:
        return for_html(number)
    return f"{for_html(number)} <small>{for_html(remainder)}</small>"


def _html(report: Report) -> str:
    # pandas and altair take a second to load: only this form of the report waits for them
    from biobench.reporting.details.pictures import WITHOUT_CHARTS, can_draw, pictures

    body = ""
    if not report.rows:
        body += "<p>No results yet.</p>\n"
    elif not can_draw():
        body += WITHOUT_CHARTS
    for sheet in sheets(report):
        if can_draw():
            body += pictures(report, sheet)
        body += html_table(sheet.title, sheet.columns, sheet.rows, 2)
    body += f'<p class="notes">{words(caption(report), for_html)}</p>\n'
    body += _html_list("Notes", report.notes)
    body += _html_list("Findings", [f"{found}. {found.hint}" for found in report.findings])
    return html_page("BioBench results", body)


def _html_list(title: str, lines: Sequence[str]) -> str:
    """A section of the page; nothing where it has no lines."""
    if not lines:
        return ""
    items = "".join(f"<li>{words(line, for_html)}</li>" for line in lines)
    return f'<h2>{title}</h2>\n<ul class="notes">{items}</ul>\n'


def print_table(report: Report, console: Console | None = None, *, notes: bool = False) -> None:
    """The terminal table, on stdout by default.

    notes: every note in full, not only what fits a few lines.
    """
    console = console or Console()
    tables: list[Table] = []
    for sheet in sheets(report):
        tables += _tables(sheet, console.width)
    lines = [caption(report) if tables else EMPTY]
    for note in report.notes if notes else _few(report.notes):
        lines.append(f"* {plain_note(note)}")
    for finding in report.findings:
        lines.append(f"! {plain_note(f'{finding}; {finding.hint}')}")
    console.print(Group(*tables, *map(Text, lines)))


def to_text(report: Report, *, notes: bool = False, width: int | None = None) -> str:
    """As `print_table`, as text without colours. width: in columns; None: as `COLUMNS` asks, else
    `FILE_WIDTH`.
    """
    asked = os.environ.get("COLUMNS", "")
    if width is None:
        width = max(int(asked), 40) if asked.isdecimal() else FILE_WIDTH
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        print_table(report, console, notes=notes)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns side by side, the first set left, numbers right; several grids, each with the first
    column, where they are wider than `width`.
    """
    name_width, *widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = math.inf
    if width is not None:
        room = width - name_width
    pieces = _columns_that_fit([2 + of_column for of_column in widths], room)
    rule = ["-" * of_column for of_column in (name_width, *widths)]
    grids = []
    for piece in pieces:
        lines = []
        for name, *cells in (head, rule, *rows):
            shown = [cells[column].rjust(widths[column]) for column in piece]
            is_of_other_piece = len(pieces) > 1 and "".join(shown).isspace()
            if not is_of_other_piece:
                lines.append("  ".join([name.ljust(name_width), *shown]).rstrip())
        grids.append("\n".join(lines))
    return "\n\n".join(grids)


def _columns_that_fit(widths: Sequence[int], room: float) -> list[list[int]]:
    """The numbers of the columns, one list for each table of at most this width; a column that is
    wider stands alone.
    """
    tables: list[list[int]] = [[]]
    left = room
    for column, width in enumerate(widths):
        if width > left and tables[-1]:
            tables.append([])
            left = room
        tables[-1].append(column)
        left -= width
    return tables


def plain_note(note: str) -> str:
    """A footnote, line by line harmless: notes hold names made by users but are longer than one.

    A long word loses its middle; of a path, the file's name stays whole.
    """
    return " ".join(plain(_without_middle(word)) for word in note.split())


def _without_middle(word: str) -> str:
    if len(word) <= LONGEST:
        return word
    name = len(word) - max(word.rfind("/"), word.rfind("\\"))
    half = (LONGEST - 1) // 2
    end = name if half < name < LONGEST - 1 else half
    return f"{word[: LONGEST - 1 - end]}…{word[-end:]}"


def _few(notes: Sequence[str]) -> list[str]:
    """What marks in the table mean, the first notes on runs, and a line that counts the others."""
    on_runs = []
    on_marks = []
    for note in notes:
        if note.startswith((LIKELY, MARK)):
            on_marks.append(note)
        elif not note.startswith(("Published values", *_PROTOCOL)):
            on_runs.append(note)
    shown = [*on_marks, *on_runs[:MOST_NOTES]]
    unsaid = len(notes) - len(shown)
    if unsaid:
        plural = "s" if unsaid > 1 else ""
        shown.append(f"{unsaid} more remark{plural}: `biobench report --notes`")
    return shown


def _tables(sheet: Sheet, width: int) -> Iterator[Table]:
    """The sheet in as few tables as fit `width`."""
    longest_name = max(len(plain(row[0])) for row in sheet.rows)
    name_width = min(longest_name, max(28, width // 3))
    headings = []
    widths = []
    for heading, *cells in zip(sheet.columns, *sheet.rows, strict=True):
        headings.append("_\n".join(plain(heading).split("_")))
        widths.append(2 + max(map(len, [*headings[-1].splitlines(), *cells])))
    pieces = _columns_that_fit(widths[2:], width - name_width - 2)
    for number, columns in enumerate(pieces, 1):
        title = words(sheet.title, plain)
        if len(pieces) > 1:
            title += f" ({number} of {len(pieces)})"
        table = Table(
            title=Text(title, style="bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
        )
        table.add_column(sheet.columns[0], overflow="fold", width=name_width)
        for column in columns:
            heading = Text(headings[2 + column])
            table.add_column(heading, justify="right", overflow="fold", vertical="bottom")
        _add_rows(table, sheet.rows, columns)
        yield table


def _add_rows(table: Table, rows: Sequence[Sequence[str]], columns: Sequence[int]) -> None:
    """The rows with a score in one of the columns, under a heading for each source."""
    section = ""
    for name, source, *scores in rows:
        cells = [scores[column] for column in columns]
        if set(cells) == {"–"}:
            continue  # nothing in this piece: the line stands in another one
        if source != section:
            section = source
            table.add_section()
            table.add_row(Text(_SECTIONS.get(section, section), style="italic"))
        table.add_row(Text(plain(name)), *map(Text, cells))


_WRITERS: dict[str, Callable[[Report], str]] = {
    "table": to_text,
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": lambda report: as_json(report.as_json()),
    "html": _html,
}
