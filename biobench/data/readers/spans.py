"""Rows with a text and its mentions by character offsets: JSON of annotation tools, parquet views of BigBIO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from biobench.data.readers.base import ReaderOptions, Request, reader
from biobench.data.readers.files import Row, fill, json_rows, parquet_rows
from biobench.data.readers.standoff import (
    Discontinuous,
    Overlap,
    Tokeniser,
    finished,
    flat,
    line_units,
    squeezed,
    units,
)
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode


class JsonSpansOptions(ReaderOptions):
    """Options of format `json_spans`."""

    format: Literal["json_spans"]
    layout: Literal["list", "lines"] = "lines"
    text: str = "text"
    spans: str = "spans"
    """Field with a list of mentions: objects, or [start, end, label] each."""
    start: str = "start"
    end: str = "end"
    """Offsets count the text's characters (Unicode code points) from 0; the end is past the last."""
    label: str = "label"
    id: str | None = None
    group: str | None = None
    """Field that says what belongs together (a patient, an article); default: each object alone."""
    types: dict[str, str | None] = {}
    """Label in the file to label of the task, many to one; null drops it."""
    segment: Literal["document", "line"] = "document"
    """What becomes a document: the object, or each of its lines that is not blank; mentions that cross lines are
    dropped, and counted as unexpressed."""
    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: how the text becomes tokens, of which a mention takes those inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"


@reader(JsonSpansOptions)
def read_json_spans(request: Request[JsonSpansOptions]) -> Iterator[Document]:
    """Objects with a text and its mentions; a mention that brings its own `text` must have it at its offsets.

    Order: that of the objects, and of an object's lines. Where overlapping mentions become tags and begin alike, the
    one that is named later is the last.
    """
    options = request.options
    for row in json_rows(request, options.layout):
        text, mentions = row.value(options.text, "text"), row.value(options.spans, "mentions")
        if not isinstance(text, str) or not isinstance(mentions, list):
            what = f"'{options.text}' must be a text and '{options.spans}' a list"
            raise row.bad(what, "check the fields, or repair the object")
        id = row.text(options.id, "id", row.number)
        spans = tuple(span for mention in mentions if (span := _span(options, row, mention, text)) is not None)
        whole = row.place.document(id, text, row.text(options.group, "group", id), spans=spans)
        lines = ((a, b, f"{id}:{number}") for a, b, number in line_units(text))
        for document in units(whole, lines) if options.segment == "line" else [whole]:
            yield finished(row.place, document, options.tokens, options.overlap, options.decode)


def _span(options: JsonSpansOptions, row: Row, mention: Any, text: str) -> Span | None:
    surface = None
    if isinstance(mention, dict):
        for name in (options.start, options.end, options.label):
            if name not in mention:
                raise row.bad(f"a mention has no field '{name}'", row.place.nearest(name, list(mention)))
        start, end, kind = (mention[name] for name in (options.start, options.end, options.label))
        surface = mention.get("text")
    elif isinstance(mention, list) and len(mention) == 3:
        start, end, kind = mention
    else:
        raise row.bad("{} is no mention", "an object, or [start, end, label]", str(mention))
    if type(start) is not int or type(end) is not int:
        raise row.bad("the offsets of a mention are no whole numbers", "repair the object")
    if not 0 <= start < end <= len(text):
        what = f"mention {start}-{end} leaves the text (length {len(text)})"
        raise row.bad(what, "offsets count from 0, the end is past the last character")
    covered = squeezed(text[start:end])
    if not covered or (isinstance(surface, str) and squeezed(surface) != covered):
        hint = "offsets count characters (code points), not bytes or UTF-16 units"
        raise row.bad(f"characters {start}-{end} are not {{}}", hint, surface or "a mention")
    label = row.place.mapped(str(kind), options.types)
    return None if label is None else Span(start, end, label)


class BigbioOptions(ReaderOptions):
    """Options of format `bigbio`."""

    format: Literal["bigbio"]
    view: Literal["source", "kb"]
    """source: columns document_id, text, entities; kb: document_id, passages, entities."""
    types: dict[str, str | None] = {}
    """Entity type to label of the task, many to one; null drops the type."""
    discontinuous: Discontinuous = "error"


@reader(BigbioOptions)
def read_bigbio(request: Request[BigbioOptions]) -> Iterator[Document]:
    """Documents of the BigBIO catalogue with mentions by document-wide offsets; places are row numbers.

    Order: that of the rows.
    """
    body = "text" if request.options.view == "source" else "passages"
    for row in parquet_rows(request, ["document_id", body, "entities"]):
        id, content, entities = (row.value(name, name) for name in ("document_id", body, "entities"))
        text = content if body == "text" else _joined(row, content)
        spans = {span for entity in entities for span in _entity(request.options, row, entity, text)}
        yield row.place.document(str(id), text, spans=tuple(sorted(spans)))


def _joined(row: Row, passages: list[dict[str, Any]]) -> str:
    """The passages at their offsets, gaps filled with blanks."""
    text = ""
    for passage in passages:
        for piece, (start, end) in zip(passage["text"], passage["offsets"], strict=True):
            if start < len(text) or end - start != len(piece):
                raise row.bad("passages overlap or do not have their length", "use another view")
            text = fill(row.place, text, start) + piece
    return text


def _entity(options: BigbioOptions, row: Row, entity: dict[str, Any], text: str) -> list[Span]:
    label = row.place.mapped(entity["type"], options.types)
    if label is None:
        return []
    fragments = [(int(a), int(b)) for a, b in entity["offsets"]]
    covered = "".join(squeezed(text[a:b]) for a, b in fragments)
    if not fragments or covered != "".join(squeezed(piece) for piece in entity["text"]):
        raise row.bad("mention {} is not at its offsets", "use another view", str(entity["text"]))
    return flat(row.place, fragments, text, options.discontinuous, label, str(entity["text"]))
