"""Rows that a tab, semicolon or comma cuts into cells: separator, quotes, each file's header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import DataRow, Separator, delimited, read_lines
from biobench.data.sniff.base import DataFiles, Options, Proposal, Wanted, common_width
from biobench.data.sniff.labelled import LABEL, labelled_rows
from biobench.data.sniff.table import Table
from biobench.errors import DataFormatError

_MOST = 0.5
"""Share of the rows that must have one width; the reader names the others."""
Cells = list[str]


@dataclass(frozen=True, slots=True)
class _File:
    """A file's rows of the common width. first: the cells of the first, with the header."""

    location: FileLine
    header: bool
    first: Cells
    rows: list[tuple[FileLine, Cells]]

    @property
    def numbered(self) -> bool:
        """Columns go by their numbers: there is no header, or it has a name twice."""
        return not self.header or len(set(self.first)) < len(self.first)

    @property
    def columns(self) -> list[str]:
        """What the columns go by."""
        if self.numbered:
            return [str(number) for number in range(len(self.first))]
        return self.first

    def data_rows(self, columns: Iterable[str]) -> list[DataRow]:
        """Column to cell, of these columns."""
        numbers = {name: number for number, name in enumerate(self.columns)}
        rows: list[DataRow] = []
        for row, (location, cells) in enumerate(self.rows):
            values = {name: cells[numbers[name]] for name in columns}
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
    shares: dict[Separator, float] = {}
    names: tuple[Separator, ...] = ("tab", "semicolon", "comma")
    for name in names:
        rows = [cells for _, cells in delimited(location, name, strict=False)]
        width, share = common_width(rows)
        if width >= 2 and len(rows) >= 3 and share >= _MOST:
            shares[name] = share
    return max(shares, key=lambda name: shares[name], default=None)


def _has_quotes(starts: list[FileLine]) -> bool:
    return any('"' in line for location in starts for _, line in read_lines(location.path))


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
    rows = [row for file in files for row in file.data_rows(shared)]
    table = Table(starts[0], reader, rows, numbered=files[0].numbered, seen=seen)
    return labelled_rows(table, wanted)


def _shared_columns(files: list[_File]) -> list[str] | None:
    """The columns by which all files are read; None where each needs its own.

    A file may lack a column that the others have, as long as they share one that is called a label.
    """
    if len({(file.header, file.numbered) for file in files}) > 1:
        return None
    common = set.intersection(*(set(file.columns) for file in files))
    shared = [name for name in files[0].columns if name in common]
    same_columns = all(len(file.columns) == len(shared) for file in files)
    labelled = len(shared) > 1 and any(LABEL.fullmatch(name) for name in shared)
    return shared if same_columns or labelled else None


def _each_its_own(
    files: list[_File], reader: Options, wanted: Wanted, seen: list[str]
) -> list[Proposal]:
    """Files with different headers: each names its own columns. Raises DataFormatError."""
    layouts: dict[str, Options] = {}
    proposals: list[Proposal] = []
    for file in files:
        rows = file.data_rows(file.columns)
        headed = reader | {"header": file.header}
        table = Table(file.location, headed, rows, numbered=file.numbered, seen=seen)
        proposals += labelled_rows(table, wanted)
        layout = {key: proposals[-1].reader[key] for key in ("header", "columns")}
        layouts.setdefault(file.location.split, layout)
    proposal, common = proposals[0], layouts[files[0].location.split]
    proposal.reader["split_layout"] = {
        split: layout for split, layout in layouts.items() if layout != common
    }
    proposal.seen.append("headers: the files have different ones, each is read by its own")
    return [proposal]


def _file(location: FileLine, separator: Separator, quoting: str) -> _File:
    """Raises DataFormatError where the header stands again below."""
    every = list(delimited(location, separator, quoting=quoting, strict=False))
    if not every:
        return _File(location, header=False, first=[], rows=[])
    width, _ = common_width(cells for _, cells in every)
    rows = [(at, cells) for at, cells in every if len(cells) == width]
    first = rows[0][1]
    if any(LABEL.fullmatch(cell) for cell in first):
        for at, cells in rows[1:]:
            if cells == first:
                raise at.bad("the header stands again", "remove the line")
    header = _is_header(first, [cells for _, cells in rows[1:]])
    return _File(location, header, first, rows[1:] if header else rows)


def _is_header(header: Cells, rows: list[Cells]) -> bool:
    """Whether no cell of the first row stands again below it, and none is a number.

    A blank cell is the name of an index, as data tools write it.
    """
    columns = zip(header, zip(*rows, strict=True), strict=True) if rows else []
    again = any(cell.strip() and cell in cells for cell, cells in columns)
    named = any(LABEL.fullmatch(cell) for cell in header)
    numbers = any(_is_number(cell) for cell in header)
    return (
        bool(rows) and any(cell.strip() for cell in header) and not again and (named or not numbers)
    )


def _is_number(cell: str) -> bool:
    return cell.strip().lstrip("+-").replace(".", "", 1).isdecimal()
