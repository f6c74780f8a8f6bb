"""A report on a terminal: one table a suite, cut by task groups where it is wider, and a few lines below it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from textwrap import shorten

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from biobench.report.escape import LONGEST, plain
from biobench.report.literature import experiment_render
from biobench.report.rows import Report
from biobench.report.tasks import TaskInfo
from biobench.report.wide import Block, blocks, caption, cells_of
from biobench.schema.kind import traits_of

EMPTY = "No results yet. `biobench run MODEL --suite fr` makes some; `biobench demo` shows how, in minutes."
FILE_WIDTH = 240
"""Columns of a table that goes to a file or pipe: wide enough for a suite."""
MOST_NOTES = 3
"""Remarks on runs that stand below a table in full unless all are asked for."""
LONGEST_NOTE = 160
"""Characters of such a remark."""
_SECTIONS = {
    "run": "your runs",
    "frozen": "frozen encoders, a probe each",
    "floor": "floors",
    "ceiling": "oracles",
}
_PROTOCOL = ("Not as in the protocol", "No deviation from the protocol")


def print_table(
    report: Report, console: Console | None = None, *, notes: bool = False, experiments: bool = False
) -> None:
    """The terminal table, on stdout unless told otherwise.

    notes: every note in full, not only what fits a few lines. experiments: the published tables beyond the tasks.
    """
    console = console or Console()
    console.print(_terminal(report, console.width, notes, experiments))


def to_text(report: Report, *, notes: bool = False, experiments: bool = False, width: int | None = None) -> str:
    """As `print_table`, as text without colours. width: in columns; None: `text_width`."""
    width = width or text_width()
    stream = io.StringIO()
    print_table(report, Console(file=stream, width=width, color_system=None), notes=notes, experiments=experiments)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def text_width() -> int:
    """Columns of a table for a file or pipe: those that `COLUMNS` asks for, else `FILE_WIDTH`."""
    asked = os.environ.get("COLUMNS", "")
    return max(int(asked), 40) if asked.isdecimal() else FILE_WIDTH


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


def _terminal(report: Report, width: int, notes: bool, experiments: bool) -> Group:
    parts: list[Table | Text] = [t for block in blocks(report, runs_first=True) for t in _tables(block, width)]
    parts.append(Text(caption(report) if parts else EMPTY))
    parts += [Text(f"* {plain_note(note)}") for note in (report.notes if notes else _few(report.notes))]
    if experiments:
        parts += experiment_render.terminal(report.experiments, width)
    elif count := sum(len(paper.experiments) for paper in report.experiments):
        tables = "1 more published table" if count == 1 else f"{count} more published tables"
        parts.append(Text(f"* {tables} (needle, freezing, layers and the like): `biobench report --experiments`"))
    parts += [Text(f"! {plain_note(str(f))}; {plain_note(f.hint)}") for f in report.findings]
    return Group(*parts)


def _few(notes: Sequence[str]) -> Iterator[str]:
    """The first notes on runs, and a line that counts each other kind."""
    kinds: dict[str, list[str]] = {"runs": [], "published": [], "protocol": []}
    for note in notes:
        kind = "protocol" if note.startswith(_PROTOCOL) else "runs"
        kinds["published" if note.startswith("Published values") else kind].append(note)
    for message in kinds["runs"][:MOST_NOTES]:
        yield shorten(message, LONGEST_NOTE, placeholder=" …")
    rest = len(kinds["runs"]) - MOST_NOTES
    more = [f"{rest} more remark{'s' if rest > 1 else ''}"] if rest > 0 else []
    if kinds["published"]:
        more.append("which averages the published values are")
    if kinds["protocol"]:
        more.append("where this protocol is not that of the publications")
    if more:
        yield f"{'; '.join(more)}: `biobench report --notes`"


def group_of(info: TaskInfo) -> str:
    """The group of tasks under which a column stands where a table is cut."""
    return info.heading or (traits_of(info.type).heading if info.type else "published alone")


def _tables(block: Block, width: int) -> Iterator[Table]:
    """The block in as few tables as fit `width`; task groups stay together where they can."""
    name_width = min(max((len(plain(line.name)) for line in block.lines), default=0), max(28, width // 3))
    groups: dict[str, list[int]] = {}
    first = 2 if block.has_average else 0
    for i, column in enumerate(block.columns):
        groups.setdefault(group_of(column), []).append(i + first)
    titles = [*(["average", "by\ntask"] if first else []), *("_\n".join(plain(c.id).split("_")) for c in block.columns)]
    rows = [cells_of(block, line) for line in block.lines]
    widths = [
        2 + max(max(map(len, titles[i].splitlines()), default=1), *(len(row[i]) for row in rows))
        for i in range(len(titles))
    ]
    pieces = _cut(
        [list(range(first)), *groups.values()] if first else list(groups.values()), widths, width - name_width - 2
    )
    for number, columns in enumerate(pieces):
        headings = dict.fromkeys(group_of(block.columns[i - first]) if i >= first else "averages" for i in columns)
        part = f" ({number + 1} of {len(pieces)}: {', '.join(headings)})" if len(pieces) > 1 else ""
        table = Table(title=Text(block.title + part, style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
        table.padding, table.pad_edge = (0, 1, 0, 0), False
        table.add_column("model", overflow="fold", width=name_width)
        for i in columns:
            table.add_column(Text(titles[i]), justify="right", overflow="fold", vertical="bottom")
        section = ""
        for line, row in zip(block.lines, rows, strict=True):
            if all(row[i] == "–" for i in columns):
                continue  # nothing in this piece: the line stands in another one
            if line.source != section:
                section = line.source
                table.add_section()
                table.add_row(Text(_SECTIONS.get(section, section), style="italic"))
            table.add_row(Text(plain(line.name)), *(Text(row[i]) for i in columns))
        yield table


def _cut(groups: Sequence[Sequence[int]], widths: Sequence[int], room: int) -> list[list[int]]:
    """The columns in pieces of at most `room`; a group goes on a new piece where it fits there and not here."""
    pieces: list[list[int]] = [[]]
    left = room
    for group in groups:
        whole = sum(widths[i] for i in group)
        if left < whole <= room and pieces[-1]:
            pieces.append([])
            left = room
        for i in group:
            if widths[i] > left and pieces[-1]:
                pieces.append([])
                left = room
            pieces[-1].append(i)
            left -= widths[i]
    return pieces
