"""Rows with a text and a label: delimited text, JSON objects, parquet tables (which may hold tokens
and tags too).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from biobench.data.readers.base import (
    FileLine,
    LabelMap,
    ReaderOptions,
    Request,
    numbering,
    reader,
)
from biobench.data.readers.files import (
    CHECK_SEPARATOR,
    Layout,
    Separator,
    delimited,
    items_of,
    json_rows,
    missing,
)
from biobench.data.readers.tables import class_names, table_rows
from biobench.data.readers.tokens import tagged_row, tagging_of
from biobench.schema.document import Document, Remark
from biobench.schema.source import fail, later
from biobench.schema.strict import Strict
from biobench.schema.tags import Mode, Scheme


class Columns(Strict):
    """Where things stand in a row: a header's name, or a number from 0."""

    text: str | int
    label: str | int | list[str | int]
    """Several columns: the mean of their numbers."""
    id: str | int | None = None
    group: str | int | None = None
    first: str | int | None = later(None)
    """Of a pair of texts the one that goes in before `text`."""


class ColumnLayout(Strict):
    """Header and columns of one split's files."""

    header: bool
    columns: Columns


class TsvOptions(ReaderOptions):
    """Options of format `tsv`."""

    format: Literal["tsv"]
    separator: Separator = "tab"
    header: bool = True
    quoting: Literal["minimal", "none"] = "minimal"
    """minimal: a field may be quoted with ``"``; none: quote signs are plain characters."""
    columns: Columns
    split_layout: dict[str, ColumnLayout] = {}
    """Splits whose files are laid out differently."""
    label_map: LabelMap = {}
    """Label in the file to label of the task; null means no label. Unnamed labels stay."""
    label_separator: str | None = None
    """multi-label: stands between several labels of one row."""
    group_until: str | None = None
    """The group is the part of its column before the first occurrence of this text."""


@reader(TsvOptions)
def read_tsv(request: Request[TsvOptions]) -> Iterator[Document]:
    """Delimited rows with a text and a label; ids are ``<split>-<row>`` unless a column gives them.

    Order: that of the rows.
    """
    options = request.options
    numbers = numbering()
    for start in request.places():
        prefix = start.prefix
        layout = options.split_layout.get(start.split, options)
        columns = layout.columns
        for location, cells in _rows(options, layout, start):
            id = cells.get(columns.id, f"{prefix}-{next(numbers[prefix])}")
            group = cells.get(columns.group, id)
            if options.group_until is not None:
                group, _, _ = group.partition(options.group_until)
            names = _parted([_label(location, columns.label, cells)], options.label_separator)
            yield location.document(
                id,
                cells[columns.text].strip(),
                group,
                query=cells.get(columns.first, "").strip(),
                labels=_mapped(location, names, options.label_map),
                remarks=_quoted_lines(location, cells),
            )


Cells = dict[str | int | None, str]
"""The cells of a row by the number and by the name of their column."""


def _rows(
    options: TsvOptions, layout: ColumnLayout | TsvOptions, start: FileLine
) -> Iterator[tuple[FileLine, Cells]]:
    """The rows of a file without its header. Raises DataFormatError."""
    header: list[str] = []
    for location, row in delimited(start, options.separator, quoting=options.quoting):
        if not header:
            header = row
            _check_columns(location, layout, header)
            if layout.header:
                continue
        location.check_width(row, len(header))
        cells: Cells = dict(enumerate(row))
        if layout.header:
            cells.update(zip(header, row, strict=True))
        yield location, cells


def _check_columns(
    location: FileLine, layout: ColumnLayout | TsvOptions, first_row: list[str]
) -> None:
    """Raise DataFormatError for a name or number that the first row lacks, or has twice."""
    for role, columns in layout.columns.model_dump(exclude_none=True).items():
        for column in items_of(columns):
            if isinstance(column, int):
                location.require(
                    0 <= column < len(first_row),
                    f"has {len(first_row)} columns, none numbered {column} ({role})",
                    "columns count from 0" + CHECK_SEPARATOR,
                )
                continue
            location.require(
                layout.header,
                f"column '{column}' ({role}) needs a header",
                "give the column's number, or set `reader.header`",
            )
            location.need(column, first_row, "the header has no column", CHECK_SEPARATOR)
            times = first_row.count(column)
            location.require(
                times == 1,
                f"the header has column '{column}' {times} times",
                f"give the number of the one that is meant, as in `{role}: 0`",
            )


def _label(location: FileLine, column: str | int | list[str | int], cells: Cells) -> str:
    """A column's cell, or the mean of several columns' numbers, as text."""
    if not isinstance(column, list):
        return cells[column].strip()
    numbers: list[float] = []
    for name in column:
        try:
            numbers.append(float(cells[name]))
        except ValueError:
            raise location.bad(
                "{} is not a number", "fill the cell in, or remove the row", cells[name]
            ) from None
    return f"{math.fsum(numbers) / len(numbers):.10g}"


def _quoted_lines(location: FileLine, cells: Cells) -> tuple[Remark, ...]:
    """The lines of a row whose quoted field goes on over several."""
    breaks = 0
    for column, cell in cells.items():
        if isinstance(column, int):
            breaks += cell.count("\n")
    if not breaks:
        return ()
    begin = location.line or 1
    end = begin + breaks
    about = f"{location.path.name} lines {begin} to {end}"
    return (Remark("quotes", about),)


def _parted(names: list[str], separator: str | None) -> list[str]:
    """The names that stand between separators, without blanks around them and empty ones."""
    if separator is None:
        return names
    parts: list[str] = []
    for name in names:
        parts += filter(None, map(str.strip, name.split(separator)))
    return parts


def _mapped(location: FileLine, names: Iterable[str], label_map: LabelMap) -> tuple[str, ...]:
    """The distinct labels of the task that the file's names stand for."""
    labels: dict[str, None] = {}
    for name in names:
        label = location.mapped(name, label_map)
        if label is not None:
            labels[label] = None
    return tuple(labels)


class JsonOptions(ReaderOptions):
    """Options of format `json`."""

    format: Literal["json"]
    layout: Layout
    """list: one list of objects. lines: one object a line. keyed: one object of objects by their
    ids.
    """
    text: str
    """Field with a text, or with a list of texts, which are joined by blanks."""
    label: str
    """Field with one label, or with a list of them."""
    id: str | None = None
    group: str | None = later(None)
    """Field that says what belongs together (a patient, an article); default: each object alone."""
    first: str | None = later(None)
    """Of a pair of texts the one that goes in before `text`."""
    label_key: Literal["whole", "first_word"] = "whole"
    """first_word: what stands before the first blank of the label text."""
    label_map: LabelMap = {}
    """Label in the file to label of the task; null means none. Unnamed labels stay."""
    label_separator: str | None = later(None)
    """multi-label: stands between several labels of one text."""
    drop_containing: list[str] = []
    """Objects whose label text holds one of these are skipped."""
    blank_text: Literal["refused", "kept"] = later("refused")
    """kept: a blank text stands as it is beside the first text (a question without its passage)."""
    drop_missing: bool = False
    """Leave out objects without a label (null or NaN) or with a blank text; otherwise they are
    refused.
    """


@reader(JsonOptions)
def read_json(request: Request[JsonOptions]) -> Iterator[Document]:
    """Objects with a text and one or several labels. In a list, positions in messages are object
    numbers.

    Order: that of the objects.
    """
    options = request.options
    for row in json_rows(request, options.layout):
        row.need(options.text, options.label, options.id, options.group, options.first)
        text = _json_text(options, row.values[options.text])
        if text is None or missing(row.values[options.label]):
            row.location.require(
                options.drop_missing,
                "the object has no label, or no text",
                "fill both in, or set `reader.drop_missing: true`",
            )
            continue
        names = _parted(row.labels(options.label, options.label_map), options.label_separator)
        if any(_holds(name, options.drop_containing) for name in names):
            continue
        if options.label_key == "first_word":
            names = [name.strip().partition(" ")[0] for name in names]
        id, group = row.id_and_group(options.id, options.group)
        yield row.location.document(
            id,
            text,
            group,
            query=row.query(options.first),
            labels=_mapped(row.location, names, options.label_map),
        )


def _holds(name: str, phrases: list[str]) -> bool:
    return any(phrase in name for phrase in phrases)


def _json_text(options: JsonOptions, value: Any) -> str | None:
    """A text, or the texts of a list joined by blanks; None where there is none."""
    texts = items_of(value)
    if not all(isinstance(text, str) for text in texts):
        return None
    text = " ".join(map(str.strip, texts)).strip()
    is_filled = text or options.blank_text == "kept"
    return text if is_filled else None


class ParquetColumns(Strict):
    """Names of the columns: text and labels, or tokens and tags."""

    text: str | None = None
    labels: str | None = None
    tokens: str | None = None
    tags: str | None = None
    id: str | None = None
    group: str | None = None
    first: str | None = later(None)
    """Of a pair of texts the one that goes in before `text`."""

    @property
    def pair(self) -> tuple[str, str]:
        """The columns of tokens and of tags, or of text and of labels."""
        if self.tokens is None:
            return str(self.text), str(self.labels)
        return self.tokens, str(self.tags)


class ParquetOptions(ReaderOptions):
    """Options of format `parquet`."""

    format: Literal["parquet"]
    columns: ParquetColumns
    names: list[str] | Literal["file"] = []
    """What the integers of the label or tag column stand for; empty where the column holds texts.
    file: each file's metadata say it, as the hub's tables do.
    """
    label_map: LabelMap = {}
    """Label (or entity type) in the file to label of the task; null means none. Unnamed ones stay.
    """
    label_separator: str | None = later(None)
    """multi-label: stands between several labels of one cell."""
    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    tag_map: dict[str, str] = later({})
    """Tag in the file (or among `names`) to the same tag as O, B-<type>, I-<type>."""
    group_pattern: Literal["whole", "before_underscore"] = "whole"
    """What of the group column names the group: all of it, or the part before the last ``_``."""

    @model_validator(mode="after")
    def _one_pair(self) -> ParquetOptions:
        named = self.columns.model_dump(exclude={"id", "group", "first"}, exclude_none=True)
        if list(named) not in (["text", "labels"], ["tokens", "tags"]):
            raise fail(
                "columns must name text and labels, or tokens and tags",
                "give one of the two pairs",
            )
        if self.columns.first is not None and self.columns.text is None:
            raise fail("columns.first goes with text and labels", "leave it out")
        return self


@reader(ParquetOptions)
def read_parquet(request: Request[ParquetOptions]) -> Iterator[Document]:
    """Rows of parquet files, in their order; positions in messages are row numbers from 1."""
    options, columns = request.options, request.options.columns
    tagging = tagging_of(options)
    names_by_file: dict[Path, list[str]] = {}
    content_column, label_column = columns.pair
    for row in table_rows(request, [name for _, name in columns if name is not None]):
        location = row.location
        id, group = row.id_and_group(columns.id, columns.group)
        if options.group_pattern == "before_underscore":
            group = group.rpartition("_")[0] or group
        if location.path not in names_by_file:
            names_by_file[location.path] = _names(options, location, label_column)
        names = names_by_file[location.path]
        if columns.tokens is not None:
            content = tagged_row(row, content_column, label_column, names, tagging)
            yield location.document(id, group=group, **content)
            continue
        labels = row.labels(label_column, options.label_map, names)
        labels = _parted(labels, options.label_separator)
        yield location.document(
            id,
            row.text(content_column).strip(),
            group,
            query=row.query(columns.first),
            labels=tuple(filter(None, _mapped(location, labels, options.label_map))),
        )


def _names(options: ParquetOptions, location: FileLine, column: str) -> list[str]:
    """What the integers of this column stand for, as the spec or the file says. Raises
    DataFormatError.
    """
    if isinstance(options.names, list):
        return options.names
    names = class_names(location.path).get(column)
    if names is None:
        raise location.at(None).bad(
            f"its metadata name no classes of column '{column}'",
            "list the names in `reader.names`",
        )
    return names
