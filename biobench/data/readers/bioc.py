"""BioC XML: passages with document-wide offsets and annotations (BC5CDR)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.formats.standoff import Discontinuous, flatten, merge_fragments
from biobench.data.readers.base import ReaderOptions, Request, at, fill, reader
from biobench.schema.document import Document, Span


class BiocOptions(ReaderOptions):
    """Options of format `bioc`."""

    format: Literal["bioc"]
    types: dict[str, str | None] = {}
    """Annotation type to label of the task, many to one; null drops the type."""
    drop_roles: list[str] = ["IndividualMention"]
    """Values of the infon CompositeRole whose annotations are left out (they overlap their composite mention)."""
    discontinuous: Discontinuous = "error"


@reader(BiocOptions)
def read_bioc(request: Request) -> Iterator[Document]:
    """One document per BioC document; passages are put at their offsets, gaps filled with blanks.

    Order: that of the file's documents.
    """
    options = request.options
    assert isinstance(options, BiocOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for element in _documents(request, path):
            yield _document(request, options, element, split, path)


def _documents(request: Request, path: Path) -> Iterator[ET.Element]:
    try:
        for _, element in ET.iterparse(path, events=("end",)):
            if element.tag == "document":
                yield element
                element.clear()
    except (ET.ParseError, OSError) as error:
        line = error.position[0] if isinstance(error, ET.ParseError) else None
        raise request.bad("is not well-formed XML", "download it again", path, line) from None


def _document(request: Request, options: BiocOptions, element: ET.Element, split: str, path: Path) -> Document:
    document_id = (element.findtext("id") or "").strip()
    if not document_id:
        raise request.bad("a document has no id", "is this a BioC file?", path, 1)
    text = ""
    for passage in element.iter("passage"):
        offset = _number(request, passage.findtext("offset"), document_id, path)
        if offset < len(text):
            raise request.bad("passages of document {} overlap", "check the offsets", path, 1, document_id)
        text = fill(request, text, offset, path, 1) + (passage.findtext("text") or "")
    spans: set[Span] = set()
    for annotation in element.iter("annotation"):
        infons = {infon.get("key"): (infon.text or "").strip() for infon in annotation.iter("infon")}
        if infons.get("CompositeRole") in options.drop_roles:
            continue
        kind = infons.get("type") or ""
        label = options.types.get(kind, kind)
        if label is None:
            continue
        label = request.check_label(label, path, 1)
        place = _place(request, options, annotation, text, document_id, path)
        if place is not None:
            spans.add(Span(*place, label))
    return Document(
        id=document_id, group=document_id, text=text, split=split, spans=tuple(sorted(spans)), origin=at(path, 1)
    )


def _place(
    request: Request, options: BiocOptions, annotation: ET.Element, text: str, document_id: str, path: Path
) -> tuple[int, int] | None:
    fragments: list[tuple[int, int]] = []
    for location in annotation.iter("location"):
        start = _number(request, location.get("offset"), document_id, path)
        fragments.append((start, start + _number(request, location.get("length"), document_id, path)))
    surface = "".join((annotation.findtext("text") or "").split())
    covered = "".join("".join(text[a:b].split()) for a, b in sorted(fragments))
    if not fragments or (len(fragments) == 1 and covered != surface):
        raise request.bad("a mention of document {} is not at its offset", "the file is damaged", path, 1, document_id)
    try:
        return flatten(merge_fragments(fragments, text), options.discontinuous)
    except ValueError as error:
        raise request.bad(f"{error} (document {{}})", "set `discontinuous`", path, 1, document_id) from None


def _number(request: Request, value: str | None, document_id: str, path: Path) -> int:
    if value is None or not value.strip().isdecimal():
        raise request.bad("an offset of document {} is no number", "the file is damaged", path, 1, document_id)
    return request.whole_number(value, path, 1)
