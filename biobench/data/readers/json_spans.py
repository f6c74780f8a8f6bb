"""JSON with mentions by character offsets, as annotation tools export it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from biobench.data.formats.standoff import Overlap, Tokeniser, line_units, with_tags
from biobench.data.readers.base import ReaderOptions, Request, at, reader
from biobench.data.readers.json_cases import json_objects, need_fields
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
    """Token formats: runs of non-space, or word runs and single signs; a mention takes the tokens inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"


@reader(JsonSpansOptions)
def read_json_spans(request: Request) -> Iterator[Document]:
    """Objects with a text and its mentions; a mention that brings its own `text` must have it at its offsets.

    Order: that of the objects, and of an object's lines. Where overlapping mentions become tags and begin alike, the
    one that is named later is the last.
    """
    options = request.options
    assert isinstance(options, JsonSpansOptions)
    for item, document_id, split, path, line in json_objects(request, options.layout):
        whole = _document(request, options, item, document_id, split, path, line)
        for document in _units(options, whole):
            if options.tokens == "none":
                yield replace(document, spans=tuple(sorted(set(document.spans))))
                continue
            try:
                yield with_tags(document, options.tokens, options.overlap, options.decode)
            except ValueError as error:
                raise request.bad(f"{error}", "set `overlap`", path, line) from None


def _document(
    request: Request,
    options: JsonSpansOptions,
    item: dict[str, Any],
    document_id: str,
    split: str,
    path: Path,
    line: int,
) -> Document:
    need_fields(request, item, (options.text, options.spans, options.id, options.group), path, line)
    text, mentions = item[options.text], item[options.spans]
    if not isinstance(text, str) or not isinstance(mentions, list):
        what = f"'{options.text}' must be a text and '{options.spans}' a list"
        raise request.bad(what, "check the fields, or repair the object", path, line)
    document_id = document_id if options.id is None else str(item[options.id])
    spans = (_span(request, options, mention, text, path, line) for mention in mentions)
    return Document(
        id=document_id,
        group=document_id if options.group is None else str(item[options.group]),
        text=text,
        split=split,
        spans=tuple(span for span in spans if span is not None),
        origin=at(path, line),
    )


def _span(request: Request, options: JsonSpansOptions, mention: Any, text: str, path: Path, line: int) -> Span | None:
    surface = None
    if isinstance(mention, dict):
        for name in (options.start, options.end, options.label):
            if name not in mention:
                raise request.bad(f"a mention has no field '{name}'", request.nearest(name, list(mention)), path, line)
        start, end, kind = (mention[name] for name in (options.start, options.end, options.label))
        surface = mention.get("text")
    elif isinstance(mention, list) and len(mention) == 3:
        start, end, kind = mention
    else:
        raise request.bad("{} is no mention", "an object, or [start, end, label]", path, line, str(mention))
    if type(start) is not int or type(end) is not int:
        raise request.bad("the offsets of a mention are no whole numbers", "repair the object", path, line)
    if not 0 <= start < end <= len(text):
        what = f"mention {start}-{end} leaves the text (length {len(text)})"
        raise request.bad(what, "offsets count from 0, the end is past the last character", path, line)
    covered = "".join(text[start:end].split())
    if not covered or (isinstance(surface, str) and "".join(surface.split()) != covered):
        hint = "offsets count characters (code points), not bytes or UTF-16 units"
        raise request.bad(f"characters {start}-{end} are not {{}}", hint, path, line, surface or "a mention")
    label = options.types.get(str(kind), str(kind))
    return None if label is None else Span(start, end, request.check_label(label, path, line))


def _units(options: JsonSpansOptions, whole: Document) -> Iterator[Document]:
    if options.segment == "document":
        yield whole
        return
    for start, end, number in line_units(whole.text):
        inside = tuple(Span(a - start, b - start, label) for a, b, label in whole.spans if a >= start and b <= end)
        cut = tuple(sorted(label for a, b, label in set(whole.spans) if start <= a < end < b))
        yield Document(
            id=f"{whole.id}:{number}",
            group=whole.group,
            text=whole.text[start:end],
            split=whole.split,
            spans=inside,
            origin=whole.origin,
            unexpressed=cut,
        )
