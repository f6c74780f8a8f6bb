"""Parquet tables as dataset hubs serve them: text with labels, or tokens with tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from biobench.core.text import first_line
from biobench.data.formats.tagged import Scheme, prefix_and_type, tagged_document
from biobench.data.readers.base import ReaderOptions, Request, at, missing, reader
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import later
from biobench.schema.strict import Strict
from biobench.schema.tags import Mode
from biobench.schema.task import fail


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


class ParquetOptions(ReaderOptions):
    """Options of format `parquet`."""

    format: Literal["parquet"]
    columns: ParquetColumns
    names: list[str] = []
    """What the integers of the label or tag column stand for; empty where the column holds texts."""
    label_map: dict[str, str | None] = {}
    """Label (or entity type) in the file to label of the task; null means none. Unnamed ones stay."""
    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    group_pattern: Literal["whole", "before_underscore"] = "whole"
    """What of the group column names the group: all of it, or the part before the last ``_``."""

    @model_validator(mode="after")
    def _one_pair(self) -> ParquetOptions:
        c = self.columns
        text, token = (c.text, c.labels), (c.tokens, c.tags)
        if not ((all(text) and not any(token)) or (all(token) and not any(text))):
            raise fail("columns must name text and labels, or tokens and tags", "give one of the two pairs")
        if c.first is not None and c.text is None:
            raise fail("columns.first goes with text and labels", "leave it out")
        return self


@reader(ParquetOptions)
def read_parquet(request: Request) -> Iterator[Document]:
    """Rows of parquet files, in their order; positions in messages are row numbers from 1."""
    options = request.options
    assert isinstance(options, ParquetOptions)
    counts: dict[str, int] = {}
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for number, row in table_rows(request, path, [c for _, c in options.columns if c is not None]):
            counts[split] = counts.get(split, 0) + 1
            yield _document(request, options, row, f"{split or path.stem}-{counts[split]}", split, path, number)


def table_rows(request: Request, path: Path, columns: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(row number from 1, values of `columns`). Raises DataFormatError for a broken file or a missing column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        table = pq.ParquetFile(path)
        known = table.schema_arrow.names
        for column in columns:
            if column not in known:
                raise request.bad(f"has no column '{column}'", request.nearest(column, known), path)
        batches = table.iter_batches(columns=columns)
        while (batch := next(batches, None)) is not None:
            rows = batch.to_pylist()
            for row in rows:
                number += 1
                yield number, row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = first_line(error)
        raise request.bad(f"is not a whole parquet file ({reason})", "download it again", path) from None


@dataclass(frozen=True, slots=True)
class _Row:
    """One row; what it lacks is refused, since a null is no text and no label. Raises DataFormatError."""

    request: Request
    values: dict[str, Any]
    path: Path
    number: int

    def value(self, column: str, what: str) -> Any:
        """The cell of this column."""
        value = self.values[column]
        if missing(value):
            raise self._bad(f"the row has no {what}", f"column '{column}' is null there: fill it in or remove the row")
        return value

    def one_or_several(self, column: str, what: str) -> list[Any]:
        """The cell's items, or the cell itself as the only one."""
        value = self.value(column, what)
        items: list[Any] = value if isinstance(value, list) else [value]
        if any(missing(item) for item in items):
            hint = f"take it out of the list in column '{column}', or remove the row"
            raise self._bad(f"a null stands among the row's {what.removesuffix('s')}s", hint)
        return items

    def several(self, column: str, what: str) -> list[Any]:
        """The items of a cell that holds a list."""
        if not isinstance(self.value(column, what), list):
            raise self._bad(f"the row's {what} are not a list", f"column '{column}' must hold lists")
        return self.one_or_several(column, what)

    def _bad(self, what: str, hint: str) -> DataFormatError:
        return self.request.bad(what, hint, self.path, self.number)


def _document(
    request: Request,
    options: ParquetOptions,
    row: dict[str, Any],
    document_id: str,
    split: str,
    path: Path,
    number: int,
) -> Document:
    c = options.columns
    there = _Row(request, row, path, number)
    if c.id is not None:
        document_id = str(there.value(c.id, "id"))
    group = document_id if c.group is None else str(there.value(c.group, "group"))
    if options.group_pattern == "before_underscore":
        group = group.rpartition("_")[0] or group
    if c.text is not None and c.labels is not None:
        labels = [
            label
            for value in there.one_or_several(c.labels, "label")
            if (label := _label(request, options, _name(request, options, value, path, number), path, number))
        ]
        return Document(
            id=document_id,
            group=group,
            text=str(there.value(c.text, "text")).strip(),
            query="" if c.first is None else str(there.value(c.first, "first text")).strip(),
            split=split,
            labels=tuple(dict.fromkeys(labels)),
            origin=at(path, number),
        )
    assert c.tokens is not None
    assert c.tags is not None
    words = there.several(c.tokens, "tokens")
    if not all(isinstance(word, str) for word in words):
        raise request.bad(
            "the row's tokens are not texts", f"column '{c.tokens}' must hold lists of texts", path, number
        )
    tags = [_name(request, options, v, path, number) for v in there.several(c.tags, "tags")]
    if len(words) != len(tags):
        raise request.bad(f"row has {len(words)} tokens and {len(tags)} tags", "repair the row", path, number)
    tags = [_tag(request, options, tag, path, number) for tag in tags]
    return tagged_document(
        words,
        tags,
        options.scheme,
        options.decode,
        id=document_id,
        group=group,
        split=split,
        origin=at(path, number),
        types=options.label_map,
    )


def _name(request: Request, options: ParquetOptions, value: Any, path: Path, number: int) -> str:
    if isinstance(value, int) and options.names:
        if not 0 <= value < len(options.names):
            raise request.bad(
                f"{{}} is not an index into the {len(options.names)} names", "check `names`", path, number, str(value)
            )
        return options.names[value]
    return str(value)


def _label(request: Request, options: ParquetOptions, name: str, path: Path, number: int) -> str | None:
    mapped = options.label_map.get(name, name)
    return None if mapped is None else request.check_label(mapped, path, number)


def _tag(request: Request, options: ParquetOptions, tag: str, path: Path, number: int) -> str:
    """The tag with the letters B, I and O and the file's type. Raises DataFormatError."""
    try:
        prefix, name = prefix_and_type(tag, options.scheme)
    except ValueError as known:
        raise request.bad(f"tag {{}} is not {known}", "check `names` and `scheme`", path, number, tag) from None
    if prefix == "O":
        return tag
    _label(request, options, name, path, number)
    return f"{prefix}-{name}"
