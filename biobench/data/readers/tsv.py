"""Rows of delimited text: a text column and a label column, with or without a header."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_text, reader
from biobench.schema.document import Document
from biobench.schema.source import later
from biobench.schema.strict import Strict

_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";"}


class Columns(Strict):
    """Where things stand in a row: a header's name, or a number from 0."""

    text: str | int
    label: str | int | list[str | int]
    """Several columns: the mean of their numbers."""
    id: str | int | None = None
    group: str | int | None = None
    first: str | int | None = later(None)
    """Of a pair of texts the one that goes in before `text`."""


class TsvOptions(ReaderOptions):
    """Options of format `tsv`."""

    format: Literal["tsv"]
    separator: Literal["tab", "comma", "semicolon"] = "tab"
    header: bool = True
    quoting: Literal["minimal", "none"] = "minimal"
    """minimal: a field may be quoted with ``"``; none: quote signs are plain characters."""
    columns: Columns
    split_layout: dict[str, ColumnLayout] = {}
    """Splits whose files are laid out differently."""
    label_map: dict[str, str | None] = {}
    """Label in the file to label of the task; null means no label. Unnamed labels stay."""
    label_separator: str | None = None
    """multi-label: stands between several labels of one row."""
    group_until: str | None = None
    """The group is the part of its column before the first occurrence of this text."""


class ColumnLayout(Strict):
    """Header and columns of one split's files."""

    header: bool
    columns: Columns


TsvOptions.model_rebuild()


@reader(TsvOptions)
def read_tsv(request: Request) -> Iterator[Document]:
    """Delimited rows with a text and a label; ids are ``<split>-<row>`` unless a column gives them.

    Order: that of the rows.
    """
    options = request.options
    assert isinstance(options, TsvOptions)
    numbers: Counter[str] = Counter()
    for split, path in request.only_splits("train", "validation", "test", "all"):
        layout = options.split_layout.get(split, ColumnLayout(header=options.header, columns=options.columns))
        yield from _file(request, options, layout, split, path, numbers)


def rows(request: Request, path: Path, separator: str, quoting: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row begins, fields) of a delimited file; blank lines are skipped.

    Raises DataFormatError where the file is not UTF-8 or a quoted field is broken.
    """
    csv.field_size_limit(1 << 27)  # clinical notes exceed the module's default of 128 KiB
    lines = read_text(request, path).replace("\r\n", "\n").split("\n")
    source = (line + "\n" for line in lines)
    table = csv.reader(
        source,
        delimiter=_DELIMITERS[separator],
        quoting=csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    first = 1
    while True:
        try:
            row = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            raise request.bad(
                f"not a delimited row: {error}", "repair the quotes, or set `quoting: none`", path, first
            ) from None
        if row:
            yield first, row
        first = table.line_num + 1


def _file(
    request: Request, options: TsvOptions, layout: ColumnLayout, split: str, path: Path, numbers: Counter[str]
) -> Iterator[Document]:
    width = 0
    where: dict[str, int] = {}
    several: list[int] = []
    prefix = split or path.stem
    for line, row in rows(request, path, options.separator, options.quoting):
        if width == 0:
            width = len(row)
            where = _locate(request, layout, row, path, line)
            if isinstance(layout.columns.label, list):
                several = [_place(request, layout, "label", c, row, path, line) for c in layout.columns.label]
            if layout.header:
                continue
        if len(row) != width:
            raise request.bad(
                f"the row has {len(row)} fields, the first has {width}: {{}}",
                "repair the row, or check `separator` and `quoting`",
                path,
                line,
                row[0],
            )
        numbers[prefix] += 1
        document_id = row[where["id"]] if "id" in where else f"{prefix}-{numbers[prefix]}"
        raw = _mean(request, [row[place] for place in several], path, line) if several else row[where["label"]].strip()
        parts = [raw] if options.label_separator is None else [p.strip() for p in raw.split(options.label_separator)]
        labels: list[str] = []
        for part in parts:
            mapped = options.label_map.get(part, part)
            if mapped is None or (options.label_separator is not None and not part):
                continue
            labels.append(request.check_label(mapped, path, line))
        group = row[where["group"]] if "group" in where else document_id
        if options.group_until is not None:
            group = group.split(options.group_until, 1)[0]
        yield Document(
            id=document_id,
            group=group,
            text=row[where["text"]].strip(),
            query=row[where["first"]].strip() if "first" in where else "",
            split=split,
            labels=tuple(dict.fromkeys(labels)),
            origin=at(path, line),
        )


def _locate(request: Request, layout: ColumnLayout, first: list[str], path: Path, line: int) -> dict[str, int]:
    """Column positions by role. Raises DataFormatError for a name or number that the first row lacks."""
    columns: dict[str, int] = {}
    for role, column in layout.columns:
        if column is not None and not isinstance(column, list):
            columns[role] = _place(request, layout, role, column, first, path, line)
    return columns


def _place(
    request: Request, layout: ColumnLayout, role: str, column: str | int, first: list[str], path: Path, line: int
) -> int:
    """The column's number. Raises DataFormatError for a name or number that the first row lacks."""
    if isinstance(column, int):
        if not 0 <= column < len(first):
            raise request.bad(
                f"has {len(first)} columns, none numbered {column} ({role})", "columns count from 0", path, line
            )
        return column
    if not layout.header:
        raise request.bad(f"column '{column}' needs a header", "give the column's number", path, line)
    if column not in first:
        hint = request.nearest(column, first)
        raise request.bad(f"the header has no column '{column}'", hint, path, line)
    if first.count(column) > 1:
        what = f"the header has column '{column}' {first.count(column)} times"
        raise request.bad(what, f"give the number of the one that is meant, as in `{role}: 0`", path, line)
    return first.index(column)


def _mean(request: Request, cells: list[str], path: Path, line: int) -> str:
    """The mean of the cells' numbers, as text."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        wrong = next(c for c in cells if not re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", c))
        raise request.bad("{} is not a number", "fill the cell in, or remove the row", path, line, wrong) from None
    return f"{math.fsum(numbers) / len(numbers):.10g}"
