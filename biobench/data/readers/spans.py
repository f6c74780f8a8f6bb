"""Texts and their mentions by character offsets: objects, as annotation tools export them, and
tables of texts beside tables of mentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

from biobench.data.readers.base import LabelMap, ReaderOptions, Request, reader
from biobench.data.readers.files import DataRow, Layout, json_rows
from biobench.data.readers.standoff import TokenisedOptions, check_surface, finished
from biobench.data.readers.tables import table_rows
from biobench.schema.document import Document, Span


class JsonSpansOptions(TokenisedOptions):
    """Options of format `json_spans`."""

    format: Literal["json_spans"]
    layout: Layout | Literal["table"] = "lines"
    """table: rows of parquet files, or of what `datasets` wrote to disk."""
    text: str = "text"
    spans: str = "spans"
    """Field with a list of mentions: objects, or [start, end, label] each."""
    start: str = "start"
    end: str = "end"
    """Offsets count the text's characters (Unicode code points) from 0; the end is past the last.
    """
    label: str = "label"
    id: str | None = None
    group: str | None = None
    """Field that says what belongs together (a patient, an article); default: each object alone."""
    types: LabelMap = {}
    """Label in the file to label of the task, many to one; null drops it."""


@reader(JsonSpansOptions)
def read_json_spans(request: Request[JsonSpansOptions]) -> Iterator[Document]:
    """Objects with a text and its mentions; a mention that brings its own `text` must have it at
    its offsets.

    Order: that of the objects. Where overlapping mentions become tags and begin alike, the
    one that is named later is the last.
    """
    options = request.options
    if options.layout == "table":
        fields = (options.text, options.spans, options.id, options.group)
        rows = table_rows(request, list(filter(None, fields)))
    else:
        rows = json_rows(request, options.layout)
    for row in rows:
        text, mentions = row.value(options.text), row.value(options.spans)
        row.location.require(
            isinstance(text, str) and isinstance(mentions, list),
            f"'{options.text}' must be a text and '{options.spans}' a list",
            "check the fields, or repair the object",
        )
        id, group = row.id_and_group(options.id, options.group)
        spans: list[Span] = []
        for mention in mentions:
            spans += _mention(options, row, mention, text)
        yield finished(
            row.location,
            row.location.document(id, text, group, spans=tuple(spans)),
            options,
        )


def _mention(options: JsonSpansOptions, row: DataRow, mention: Any, text: str) -> list[Span]:
    """The span of an object or a triple; none where its label is dropped."""
    surface = None
    if isinstance(mention, dict):
        names = (options.start, options.end, options.label)
        for name in names:
            row.location.need(name, mention, "a mention has no field")
        start, end, label = map(mention.get, names)
        surface = mention.get("text")
    elif isinstance(mention, list) and len(mention) == 3:
        start, end, label = mention
    else:
        raise row.bad("{} is no mention", "an object, or [start, end, label]", str(mention))
    # Annotation tools write a list of one label.
    if isinstance(label, list) and len(label) == 1:
        (label,) = label
    row.location.require(
        isinstance(label, (str, int)),
        "the label of a mention is no text: {}",
        "give it one label",
        str(label),
    )
    return _checked(
        row,
        text,
        offsets=(start, end),
        surface=surface,
        label=row.location.mapped(str(label), options.types),
    )


def _checked(
    row: DataRow, text: str, offsets: tuple[Any, Any], surface: Any, label: str | None
) -> list[Span]:
    """The mention at these offsets; none without a label. Raises DataFormatError unless the text
    has it there.
    """
    start, end = offsets
    row.location.require(
        type(start) is type(end) is int,
        "the offsets of a mention are no whole numbers",
        f"repair the {row.noun}",
    )
    if not isinstance(surface, str):
        surface = text[start:end]
    check_surface(row.location, text, [offsets], surface)
    return [] if label is None else [Span(start, end, label)]


class SpanTablesOptions(ReaderOptions):
    """Options of format `span_tables`: columns of the table of texts and of that of mentions."""

    format: Literal["span_tables"]
    document: str = "report"
    """In both tables: the document's name, which is its id."""
    text: str = "full_text"
    """A table with this column holds texts, any other mentions."""
    start: str = "begin"
    end: str = "end"
    """Offsets count the text's characters (Unicode code points) from 0; the end is past the last.
    """
    surface: str = "span_text"
    """The characters of the mention, which must stand at its offsets."""
    label: str
    types: LabelMap = {}
    """Label in the table to label of the task, many to one; null drops it."""


@reader(SpanTablesOptions)
def read_span_tables(request: Request[SpanTablesOptions]) -> Iterator[Document]:
    """Parquet tables with a row a text, and others with a row a mention (PARHAF).

    `files` names the tables of both sorts for each split. Order: that of the rows of texts.
    """
    options = request.options
    texts: dict[tuple[str, str], DataRow] = {}
    mentions: dict[tuple[str, str], list[DataRow]] = defaultdict(list)
    for row in table_rows(request):
        name = row.location.split, row.text(options.document)
        if options.text not in row.values:
            mentions[name].append(row)
            continue
        earlier = texts.setdefault(name, row)
        row.location.require(earlier is row, "document {} has two texts", "keep one row", name[1])
    for name, rows in mentions.items():
        rows[0].location.require(
            name in texts,
            "document {} of a mention has no text",
            f"name the table with column '{options.text}' of this split too",
            name[1],
        )
    for name, row in texts.items():
        text = row.text(options.text)
        spans: set[Span] = set()
        for mention in mentions[name]:
            spans.update(_table_mention(options, mention, text))
        yield row.location.document(name[1], text, spans=tuple(sorted(spans)))


def _table_mention(options: SpanTablesOptions, row: DataRow, text: str) -> list[Span]:
    """The span of a row; none where its label is dropped. Raises DataFormatError."""
    return _checked(
        row,
        text,
        label=row.location.mapped(row.text(options.label), options.types),
        offsets=(row.value(options.start), row.value(options.end)),
        surface=row.text(options.surface),
    )
