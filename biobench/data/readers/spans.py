"""Texts and their mentions by character offsets: objects, as annotation tools export them, and
tables of texts beside tables of mentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.files import DataRow, json_rows
from biobench.data.readers.standoff import Overlap, Tokeniser, check_surface, finished
from biobench.data.readers.tables import table_rows
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode


class JsonSpansOptions(ReaderOptions):
    """Options of format `json_spans`."""

    format: Literal["json_spans"]
    layout: Literal["list", "lines", "table"] = "lines"
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
    types: dict[str, str | None] = {}
    """Label in the file to label of the task, many to one; null drops it."""
    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: how the text becomes tokens, of which a mention takes those inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"


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
        rows = table_rows(request, [name for name in fields if name is not None])
    else:
        rows = json_rows(request, options.layout)
    for row in rows:
        text, mentions = row.value(options.text, "text"), row.value(options.spans, "mentions")
        if not isinstance(text, str) or not isinstance(mentions, list):
            message = f"'{options.text}' must be a text and '{options.spans}' a list"
            raise row.bad(message, "check the fields, or repair the object")
        id = row.text(options.id, "id", row.number)
        spans = tuple(
            span for mention in mentions if (span := _span(options, row, mention, text)) is not None
        )
        whole = row.location.document(id, text, row.text(options.group, "group", id), spans=spans)
        yield finished(row.location, whole, options.tokens, options.overlap, options.decode)


def _span(options: JsonSpansOptions, row: DataRow, mention: Any, text: str) -> Span | None:
    surface = None
    if isinstance(mention, dict):
        for name in (options.start, options.end, options.label):
            if name not in mention:
                raise row.bad(
                    f"a mention has no field '{name}'", row.location.nearest(name, list(mention))
                )
        start, end, kind = (mention[name] for name in (options.start, options.end, options.label))
        surface = mention.get("text")
    elif isinstance(mention, list) and len(mention) == 3:
        start, end, kind = mention
    else:
        raise row.bad("{} is no mention", "an object, or [start, end, label]", str(mention))
    return _checked(
        row,
        text,
        places=(start, end),
        surface=surface if isinstance(surface, str) else None,
        label=row.location.mapped(_name(row, kind), options.types),
    )


def _checked(
    row: DataRow, text: str, *, places: tuple[Any, Any], surface: str | None, label: str | None
) -> Span | None:
    """The mention at these offsets; None without a label. Raises DataFormatError unless the text
    has it there.
    """
    start, end = places
    if type(start) is not int or type(end) is not int:
        raise row.bad("the offsets of a mention are no whole numbers", f"repair the {row.noun}")
    check_surface(
        row.location, text, [(start, end)], text[start:end] if surface is None else surface
    )
    return None if label is None else Span(start, end, label)


def _name(row: DataRow, kind: Any) -> str:
    """What a mention is called; annotation tools write a list of one name. Raises
    DataFormatError.
    """
    if isinstance(kind, list) and len(kind) == 1:
        kind = kind[0]
    if isinstance(kind, (list, dict, float)) or kind is None:
        raise row.bad("the label of a mention is no text: {}", "give it one label", str(kind))
    return str(kind)


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
    types: dict[str, str | None] = {}
    """Label in the table to label of the task, many to one; null drops it."""


Name = tuple[str, str]
"""Split and name of a document."""


@reader(SpanTablesOptions)
def read_span_tables(request: Request[SpanTablesOptions]) -> Iterator[Document]:
    """Parquet tables with a row a text, and others with a row a mention (PARHAF).

    `files` names the tables of both sorts for each split. Order: that of the rows of texts.
    """
    options = request.options
    texts: dict[Name, DataRow] = {}
    mentions: dict[Name, list[DataRow]] = defaultdict(list)
    for row in table_rows(request):
        name = row.location.split, str(row.value(options.document, "document"))
        if options.text not in row.values:
            mentions[name].append(row)
        elif name in texts:
            raise row.bad("document {} has two texts", "keep one row", name[1])
        else:
            texts[name] = row
    for name, rows in mentions.items():
        if name not in texts:
            hint = f"name the table with column '{options.text}' of this split too"
            raise rows[0].bad("document {} of a mention has no text", hint, name[1])
    for name, row in texts.items():
        text = row.text(options.text, "text", "")
        spans = [_table_span(options, mention, text) for mention in mentions[name]]
        found = tuple(sorted({span for span in spans if span is not None}))
        yield row.location.document(name[1], text, spans=found)


def _table_span(options: SpanTablesOptions, row: DataRow, text: str) -> Span | None:
    """The mention of a row; None where its label is dropped. Raises DataFormatError."""
    label = row.text(options.label, "label", "")
    return _checked(
        row,
        text,
        places=(row.value(options.start, "start"), row.value(options.end, "end")),
        surface=row.text(options.surface, "surface", ""),
        label=row.location.mapped(label, options.types),
    )
