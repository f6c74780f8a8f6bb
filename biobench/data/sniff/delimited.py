"""Rows that a tab, semicolon or comma cuts into cells: separator, quotes, each file's header."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from biobench.data.readers.base import FileLine
from biobench.data.readers.files import DataRow, Separator, delimited
from biobench.data.sniff.base import Corpus, Proposal, Wanted
from biobench.data.sniff.labelled import LABEL, labelled_rows
from biobench.data.sniff.table import Table
from biobench.errors import DataFormatError

_MOST = 0.5
"""Share of the rows that must have one width; the reader names the others."""
Cells = list[str]


@dataclass(frozen=True, slots=True)
class _File:
    """A file's rows of the common width. names: of its columns, numbers where it has no header."""

    place: FileLine
    header: bool
    names: list[str]
    rows: list[tuple[FileLine, Cells]]

    @property
    def numbered(self) -> bool:
        """Columns go by their numbers: there is no header, or it has a name twice."""
        return not self.header or len(set(self.names)) < len(self.names)

    def data_rows(self) -> list[DataRow]:
        """Column to cell."""
        names = [str(number) for number in range(len(self.names))] if self.numbered else self.names
        return [
            DataRow(place, dict(zip(names, cells, strict=True)), str(number), "row")
            for number, (place, cells) in enumerate(self.rows)
        ]


def delimited_rows(corpus: Corpus, wanted: Wanted) -> list[Proposal]:
    """Rows with labels: fields quoted where they are, then with quotes as plain signs.

    An unclosed quote is left to the reader: the file may be cut off.
    """
    places = corpus.places()
    separator = _separator(places[0])
    if separator is None:
        return []
    ways = ["minimal"]
    if _has_quotes(places) and not _unclosed(places, separator):
        ways.append("none")
    proposals: list[Proposal] = []
    refusals: list[DataFormatError] = []
    for quoting in ways:
        try:
            proposals += _proposed(places, separator, quoting, wanted)
        except DataFormatError as error:
            refusals.append(error)
    if not proposals:
        raise refusals[0]
    return proposals


def _separator(place: FileLine) -> Separator | None:
    """The sign that cuts most rows into equally many cells."""
    shares: dict[Separator, float] = {}
    names: tuple[Separator, ...] = ("tab", "semicolon", "comma")
    for name in names:
        widths = Counter(len(cells) for _, cells in delimited(place, name, strict=False))
        width, number = widths.most_common(1)[0] if widths else (0, 0)
        if width >= 2 and widths.total() >= 3:
            shares[name] = number / widths.total()
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= _MOST else None


def _has_quotes(places: list[FileLine]) -> bool:
    return any(
        '"' in cell
        for place in places
        for _, cells in delimited(place, "tab", quoting="none", strict=False)
        for cell in cells
    )


def _unclosed(places: list[FileLine], separator: Separator) -> bool:
    """Whether the reader meets the end of a file inside a quoted field."""
    for place in places:
        try:
            for _ in delimited(place, separator):
                pass
        except DataFormatError as error:
            if "unexpected end of data" in error.what:
                return True
    return False


def _proposed(
    places: list[FileLine], separator: Separator, quoting: str, wanted: Wanted
) -> list[Proposal]:
    files = [_file(place, separator, quoting) for place in places]
    reader: dict[str, Any] = {"format": "tsv", "separator": separator, "header": files[0].header}
    seen = []
    if quoting == "none":
        reader["quoting"] = "none"
        seen = ["quotes: they are plain signs here"]
    same_layout = all(
        (file.header, file.numbered) == (files[0].header, files[0].numbered)
        and (file.header or len(file.names) == len(files[0].names))
        for file in files
    )
    if same_layout:
        rows = [row for file in files for row in file.data_rows()]
        table = Table(reader, rows, numbered=files[0].numbered, seen=seen)
        return labelled_rows(table, wanted)
    return _each_its_own(files, reader, wanted, seen)


def _each_its_own(
    files: list[_File], reader: dict[str, Any], wanted: Wanted, seen: list[str]
) -> list[Proposal]:
    """Files with different headers: each names its own columns. Raises DataFormatError."""
    found: list[Proposal] = []
    for file in files:
        own = reader | {"header": file.header}
        table = Table(own, file.data_rows(), numbered=file.numbered, seen=list(seen))
        found += labelled_rows(table, wanted)
    proposal = found[0]
    layouts = {
        file.place.split: {"header": own.reader["header"], "columns": own.reader["columns"]}
        for file, own in zip(files, found, strict=True)
        if file.place.split != files[0].place.split
    }
    proposal.reader["split_layout"] = layouts
    proposal.seen.append("headers: the files have different ones, each is read by its own")
    return [proposal]


def _file(place: FileLine, separator: Separator, quoting: str) -> _File:
    """Raises DataFormatError where the header stands again below."""
    every = list(delimited(place, separator, quoting=quoting, strict=False))
    width = Counter(len(cells) for _, cells in every).most_common(1)[0][0] if every else 0
    rows = [(at, cells) for at, cells in every if len(cells) == width]
    if not rows:
        return _File(place, header=False, names=[], rows=[])
    first = rows[0][1]
    if any(LABEL.fullmatch(cell) for cell in first):
        for at, cells in rows[1:]:
            if cells == first:
                raise at.bad("the header stands again", "remove the line")
    header = _is_header(first, [cells for _, cells in rows[1:]])
    names = first if header else [str(number) for number in range(width)]
    return _File(place, header, names, rows[1:] if header else rows)


def _is_header(first: Cells, below: list[Cells]) -> bool:
    """Whether no cell of the first row stands again below it, and none is a number.

    A blank cell is the name of an index, as data tools write it.
    """
    columns = zip(first, zip(*below, strict=True), strict=True) if below else []
    again = any(cell.strip() and cell in cells for cell, cells in columns)
    named = any(LABEL.fullmatch(cell) for cell in first)
    numbers = any(_is_number(cell) for cell in first)
    return (
        bool(below) and any(cell.strip() for cell in first) and not again and (named or not numbers)
    )


def _is_number(cell: str) -> bool:
    return cell.strip().lstrip("+-").replace(".", "", 1).isdecimal()
