"""Rows that a tab, semicolon or comma cuts into cells: separator, quotes, each file's header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import DataRow, Separator, delimited, read_text
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, common_width
from biobench.data.sniff.labelled import LABEL, labelled_rows
from biobench.data.sniff.table import Table
from biobench.errors import DataFormatError

_SEPARATORS: tuple[Separator, ...] = ("tab", "semicolon", "comma")
_MOST = 0.5
"""Share of the rows that must have one width; the reader names the others."""
Cells = list[str]
Row = tuple[FileLine, Cells]
"""Where it begins, and what it holds."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file's rows of the common width. columns: what they go by, their numbers where there is no
    header or it has a name twice.
    """

    location: FileLine
    header: bool
    numbered: bool
    columns: list[str]
    rows: list[Row]

    def data_rows(self, columns: Iterable[str]) -> list[DataRow]:
        """Column to cell, of these columns."""
        numbers = {name: self.columns.index(name) for name in columns}
        rows: list[DataRow] = []
        for row, (location, cells) in enumerate(self.rows):
            values = {name: cells[number] for name, number in numbers.items()}
            rows.append(DataRow(location, values, str(row), "row"))
        return rows


def delimited_rows(corpus: DataFiles, wanted: Wanted) -> list[Proposal]:
    """Rows with labels: fields quoted where they are, then with quotes as plain signs.

    An unclosed quote is left to the reader: the file may be cut off.
    """
    starts = corpus.places()
    separator = _separator(starts[0])
    if separator is None:
        return []
    ways = ["minimal"]
    if _has_quotes(starts) and not _unclosed(starts, separator):
        ways.append("none")
    proposals: list[Proposal] = []
    refusals: list[DataFormatError] = []
    for quoting in ways:
        try:
            proposals += _proposed(starts, separator, quoting, wanted)
        except DataFormatError as error:
            refusals.append(error)
    if not proposals:
        raise refusals[0]
    return proposals


def _separator(location: FileLine) -> Separator | None:
    """The sign that cuts most rows into equally many cells."""
    best: Separator | None = None
    best_share = 0.0
    for name in _SEPARATORS:
        rows = _cells(delimited(location, name, strict=False))
        width, share = common_width(rows)
        if width >= 2 and len(rows) >= 3 and share >= _MOST and share > best_share:
            best, best_share = name, share
    return best


def _cells(rows: Iterable[Row]) -> list[Cells]:
    """The rows without their places."""
    return [cells for _, cells in rows]


def _has_quotes(starts: list[FileLine]) -> bool:
    return any('"' in read_text(location) for location in starts)


def _unclosed(starts: list[FileLine], separator: Separator) -> bool:
    """Whether the reader meets the end of a file inside a quoted field."""
    for location in starts:
        try:
            list(delimited(location, separator))
        except DataFormatError as error:
            if "unexpected end of data" in error.what:
                return True
    return False


def _proposed(
    starts: list[FileLine], separator: Separator, quoting: str, wanted: Wanted
) -> list[Proposal]:
    files = [_file(location, separator, quoting) for location in starts]
    reader: Options = {"format": "tsv", "separator": separator, "header": files[0].header}
    seen: list[str] = []
    if quoting == "none":
        reader["quoting"] = "none"
        seen = ["quotes: they are plain signs here"]
    shared = _shared_columns(files)
    if shared is None:
        return _each_its_own(files, reader, wanted, seen)
    rows: list[DataRow] = []
    for file in files:
        rows += file.data_rows(shared)
    table = Table(starts[0], reader, rows, numbered=files[0].numbered, seen=seen)
    return labelled_rows(table, wanted)


def _shared_columns(files: list[_File]) -> list[str] | None:
    """The columns by which all files are read; None where each needs its own.

    A file may lack a column that the others have, as long as they share one that is called a label.
    """
    headers = set(map(attrgetter("header", "numbered"), files))
    if len(headers) > 1:
        return None
    columns_of = list(map(attrgetter("columns"), files))
    every = set(chain.from_iterable(columns_of))
    common = every.intersection(*columns_of)
    shared = sorted(common, key=files[0].columns.index)
    is_labelled = len(shared) > 1 and any(map(LABEL.fullmatch, shared))
    return shared if is_labelled or common == every else None


def _each_its_own(
    files: list[_File], reader: Options, wanted: Wanted, seen: list[str]
) -> list[Proposal]:
    """Files with different headers: each names its own columns. Raises DataFormatError."""
    layouts: dict[str, Options] = {}
    proposals: list[Proposal] = []
    for file in files:
        headed = reader | {"header": file.header}
        rows = file.data_rows(file.columns)
        table = Table(file.location, headed, rows, numbered=file.numbered, seen=seen)
        proposals += labelled_rows(table, wanted)
        columns = proposals[-1].reader["columns"]
        layouts.setdefault(file.location.split, {"header": file.header, "columns": columns})
    proposal, common = proposals[0], layouts.pop(files[0].location.split)
    proposal.reader["split_layout"] = {
        split: layout for split, layout in layouts.items() if layout != common
    }
    proposal.seen.append("headers: the files have different ones, each is read by its own")
    return [proposal]


def _file(location: FileLine, separator: Separator, quoting: str) -> _File:
    """Raises DataFormatError where the header stands again below."""
    every = list(delimited(location, separator, quoting=quoting, strict=False))
    width, _ = common_width(_cells(every))
    rows = [row for row in every if len(row[1]) == width]
    for at, cells in rows[1:]:
        if cells == rows[0][1] and any(map(LABEL.fullmatch, cells)):
            raise at.bad("the header stands again", "remove the line")
    columns = list(map(str, range(width)))
    if not _has_header(_cells(rows)):
        return _File(location, header=False, numbered=True, columns=columns, rows=rows)
    _, names = rows.pop(0)
    numbered = len(set(names)) < width
    if not numbered:
        columns = names
    return _File(location, header=True, numbered=numbered, columns=columns, rows=rows)


def _has_header(rows: list[Cells]) -> bool:
    """Whether no cell of the first row stands again below it, and none is a number.

    A blank cell is the name of an index, as data tools write it.
    """
    header, *below = rows or [[]]
    named = [column for column in enumerate(header) if column[1].strip()]
    cells_below = set(chain.from_iterable(map(enumerate, below)))
    if not named or not below or not cells_below.isdisjoint(named):
        return False
    return any(map(LABEL.fullmatch, header)) or not any(map(_is_number, header))


def _is_number(cell: str) -> bool:
    return cell.strip().lstrip("+-").replace(".", "", 1).isdecimal()
