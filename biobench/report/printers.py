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
from biobench.report.escape import LONGEST, for_csv, for_html, for_latex, for_markdown, plain, words
from biobench.report.frame import Report
from biobench.report.row import Row
from biobench.report.sheets import Sheet, caption, sheets
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
    "run": "your runs",
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
        cells = [row[name] for name in columns]
        writer.writerow(
            ["" if c is None else for_csv(c) if isinstance(c, str) else repr(c) for c in cells]
        )
    return stream.getvalue()


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as one JSON list."""
    return shown_json(json.dumps(rows, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _csv(report: Report) -> str:
    return as_csv(CSV_COLUMNS, map(asdict, (*report.rows, *report.averages)))


def _notes(report: Report) -> list[str]:
    return [*report.notes, *(f"{f}; {f.hint}" for f in report.findings)]


def _markdown(report: Report) -> str:
    def table(sheet: Sheet) -> list[str]:
        rows = [sheet.columns, *sheet.rows]
        head, *body = ["| " + " | ".join(map(for_markdown, row)) + " |" for row in rows]
        rule = "| " + " | ".join(["---"] * 2 + ["---:"] * (len(sheet.columns) - 2)) + " |"
        return [f"### {words(sheet.title, for_markdown)}", "", head, rule, *body, ""]

    out = [line for sheet in sheets(report) for line in table(sheet)]
    out.append(caption(report) if out else EMPTY)
    out += ["", *(f"- {words(note, for_markdown)}" for note in _notes(report)), ""]
    return "\n".join(out).rstrip("\n") + "\n"


def _latex(report: Report) -> str:
    """A booktabs table a suite; needs \\usepackage{booktabs,textcomp} and T1 fonts."""

    def table(sheet: Sheet) -> list[str]:
        head, *body = [
            " & ".join(map(for_latex, row)) + r" \\" for row in [sheet.columns, *sheet.rows]
        ]
        return [
            *(r"\begin{table}", r"\centering"),
            rf"\begin{{tabular}}{{ll{'r' * (len(sheet.columns) - 2)}}}",
            *(r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"),
            rf"\caption{{{words(sheet.title, for_latex)}. {words(caption(report), for_latex)}}}",
            *(r"\end{table}", ""),
        ]

    out = [r"% \usepackage[T1]{fontenc}\usepackage{booktabs,textcomp}"]
    out += [line for sheet in sheets(report) for line in table(sheet)]
    if items := [rf"\item {words(line, for_latex)}" for line in _notes(report)]:
        out += [r"\begin{itemize}", *items, r"\end{itemize}"]
    return "\n".join(out).rstrip("\n") + "\n"


def html_page(title: str, body: str) -> str:
    """A whole document: no script, nothing loaded from elsewhere, light and dark. body: escaped."""
    shown = words(title, for_html)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
        "'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{shown}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{shown}</h1>\n{body}</body>\n</html>\n"
    )


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1
) -> str:
    """A table; what stands behind a number is small. texts: how many columns hold words."""

    def cell(text: str) -> str:
        shown, _, more = text.partition(" ")
        return f"<td>{for_html(shown)}{f' <small>{for_html(more)}</small>' if more else ''}</td>"

    kinds = [" class=text" if i < texts else "" for i in range(len(columns))]
    head = "".join(
        f'<th scope="col"{c}>{for_html(h)}</th>' for c, h in zip(kinds, columns, strict=True)
    )
    body = []
    for name, *cells in rows:
        named = [f'<th scope="row">{for_html(name)}</th>']
        named += [f'<td class="text">{for_html(text)}</td>' for text in cells[: texts - 1]]
        body.append(f"<tr>{''.join([*named, *map(cell, cells[texts - 1 :])])}</tr>\n")
    return (
        f'<div class="scroll" tabindex="0"><table>\n<caption>{words(caption, for_html)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(body)}</tbody></table></div>\n"
    )


def _html(report: Report) -> str:
    def listed(title: str, lines: Sequence[str]) -> str:
        items = "".join(f"<li>{words(line, for_html)}</li>" for line in lines)
        return f'<h2>{title}</h2>\n<ul class="notes">{items}</ul>\n' if items else ""

    # pandas and altair take a second to load: only this form of the report waits for them
    from biobench.report.details.pictures import WITHOUT_CHARTS, can_draw, pictures

    shown = []
    if not report.rows:
        shown.append("<p>No results yet.</p>\n")
    elif not can_draw():
        shown.append(WITHOUT_CHARTS)
    for sheet in sheets(report):
        if can_draw():
            shown.append(pictures(report, sheet))
        shown.append(html_table(sheet.title, sheet.columns, sheet.rows, 2))
    body = [
        *shown,
        f'<p class="notes">{words(caption(report), for_html)}</p>\n',
        listed("Notes", report.notes),
        listed("Findings", [f"{f}. {f.hint}" for f in report.findings]),
    ]
    return html_page("BioBench results", "".join(body))


def print_table(report: Report, console: Console | None = None, *, notes: bool = False) -> None:
    """The terminal table, on stdout by default. notes: every note in full, not only what fits a few
    lines.
    """
    console = console or Console()
    width = console.width
    parts: list[Table | Text] = [t for sheet in sheets(report) for t in _tables(sheet, width)]
    parts.append(Text(caption(report) if parts else EMPTY))
    parts += [
        Text(f"* {plain_note(note)}") for note in (report.notes if notes else _few(report.notes))
    ]
    parts += [Text(f"! {plain_note(str(f))}; {plain_note(f.hint)}") for f in report.findings]
    console.print(Group(*parts))


def to_text(report: Report, *, notes: bool = False, width: int | None = None) -> str:
    """As `print_table`, as text without colours. width: in columns; None: as `COLUMNS` asks, else
    `FILE_WIDTH`.
    """
    asked = os.environ.get("COLUMNS", "")
    width = width or (max(int(asked), 40) if asked.isdecimal() else FILE_WIDTH)
    stream = io.StringIO()
    print_table(report, Console(file=stream, width=width, color_system=None), notes=notes)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Columns side by side, the first set left, numbers right; several grids, each with the first
    column, where they are wider than `width`.
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    room = math.inf if width is None else width - widths[0]
    pieces = _columns_that_fit([2 + of_column for of_column in widths[1:]], room)
    grids = []
    for piece in pieces:
        columns = [number + 1 for number in piece]
        filled = [row for row in rows if len(pieces) == 1 or any(row[i].strip() for i in columns)]
        lines = []
        for row in (head, ["-" * of_column for of_column in widths], *filled):
            cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in columns)]
            lines.append("  ".join(cells).rstrip())
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


def _few(notes: Sequence[str]) -> Iterator[str]:
    """The first notes on runs, and a line that counts the others."""
    on_runs = [note for note in notes if not note.startswith(("Published values", *_PROTOCOL))]
    shown = on_runs[:MOST_NOTES]
    yield from shown
    if rest := len(notes) - len(shown):
        yield f"{rest} more remark{'s' if rest > 1 else ''}: `biobench report --notes`"


def _tables(sheet: Sheet, width: int) -> Iterator[Table]:
    """The sheet in as few tables as fit `width`."""
    name_width = min(
        max((len(plain(name)) for name, *_ in sheet.rows), default=0), max(28, width // 3)
    )
    titles = ["_\n".join(plain(h).split("_")) for h in sheet.columns[2:]]
    widths = []
    for i, title in enumerate(titles):
        texts = [*title.splitlines(), *(row[i + 2] for row in sheet.rows)]
        widths.append(2 + max(map(len, texts), default=1))
    pieces = _columns_that_fit(widths, width - name_width - 2)
    for number, columns in enumerate(pieces, 1):
        part = f" ({number} of {len(pieces)})" if len(pieces) > 1 else ""
        table = Table(
            title=Text(words(sheet.title, plain) + part, style="bold"),
            title_justify="left",
            box=box.SIMPLE_HEAD,
        )
        table.padding, table.pad_edge = (0, 1, 0, 0), False
        table.add_column(sheet.columns[0], overflow="fold", width=name_width)
        for i in columns:
            table.add_column(Text(titles[i]), justify="right", overflow="fold", vertical="bottom")
        section = ""
        for name, source, *cells in sheet.rows:
            if all(cells[i] == "–" for i in columns):
                continue  # nothing in this piece: the line stands in another one
            if source != section:
                section = source
                table.add_section()
                table.add_row(Text(_SECTIONS.get(section, section), style="italic"))
            table.add_row(Text(plain(name)), *(Text(cells[i]) for i in columns))
        yield table


_WRITERS: dict[str, Callable[[Report], str]] = {
    "table": to_text,
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": lambda report: as_json(report.as_json()),
    "html": _html,
}
