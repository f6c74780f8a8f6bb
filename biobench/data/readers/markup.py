"""XML with mentions by offsets: UIMA CAS in XMI (E3C), Mantra GSC."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import parse_xml
from biobench.data.readers.standoff import units, with_tags
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode


class XmiOptions(ReaderOptions):
    """Options of format `xmi`."""

    format: Literal["xmi"]
    types: dict[str, str]
    """Layer (local element name, such as CLINENTITY) to label of the task, many to one; other
    layers are skipped.
    """
    sentences: bool = False
    """Each `Sentence` of the file becomes a document; mentions that cross its border are dropped.
    """


@reader(XmiOptions)
def read_xmi(request: Request[XmiOptions]) -> Iterator[Document]:
    """Documents with mentions from chosen layers; ids are the files' names without ending.

    UIMA counts offsets in UTF-16 units; they are turned into characters. Order: files by name,
    sentences as their elements stand in the file.
    """
    types = request.options.types
    for location in request.places():
        text, layers = _layers(location)
        spans = sorted(
            {Span(a, b, location.label(types[name])) for name, a, b in layers if name in types}
        )
        document = location.document(location.path.stem, text, spans=tuple(spans))
        if not request.options.sentences:
            yield document
            continue
        sentences = dict.fromkeys(
            (a, b) for name, a, b in layers if name == "Sentence" and text[a:b].strip()
        )
        yield from units(
            document,
            ((a, b, f"{document.id}/{number}") for number, (a, b) in enumerate(sentences, start=1)),
        )


_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


def _layers(location: FileLine) -> tuple[str, list[tuple[str, int, int]]]:
    """(text, [(local element name, begin, end)]) in characters. Raises DataFormatError."""
    elements = [
        (element.tag.rpartition("}")[2], element) for element in parse_xml(location, declared=True)
    ]
    texts = [element.get("sofaString") for name, element in elements if name == "Sofa"]
    if len(texts) != 1 or texts[0] is None:
        raise location.bad(
            f"holds {len(texts)} texts (Sofa elements), not one", "is this a CAS file?"
        )
    text = texts[0]
    # Where the characters of two units begin, in units.
    pairs = [match.start() + number for number, match in enumerate(_TWO_UNITS.finditer(text))]
    layers: list[tuple[str, int, int]] = []
    for name, element in elements:
        begin, end = element.get("begin", ""), element.get("end", "")
        if not begin.isdecimal() or not end.isdecimal():
            continue
        start, stop = (_character(location.number(unit), pairs) for unit in (begin, end))
        if start is None or stop is None or not start <= stop <= len(text):
            raise location.bad(
                f"element {name} {begin}-{end} leaves the text", "the file is damaged"
            )
        if start < stop:
            layers.append((name, start, stop))
    return text, layers


def _character(unit: int, pairs: list[int]) -> int | None:
    """UTF-16 offset to character offset; None inside a character. pairs: where those of two units
    begin.
    """
    pairs_before = bisect_left(pairs, unit)
    return None if pairs_before and pairs[pairs_before - 1] == unit - 1 else unit - pairs_before


class MantraOptions(ReaderOptions):
    """Options of format `mantra`."""

    format: Literal["mantra"]
    decode: Mode = "strict"


@reader(MantraOptions)
def read_mantra(request: Request[MantraOptions]) -> Iterator[Document]:
    """`document` > `unit` > `text` and `e` (`offset`, `len`, `grp`; `;` or blanks part several
    fragments).

    Tokens are what stands between single blanks, so that punctuation sticks to words. A token that
    several entities cover is the first listed one's, and each fragment of an entity is a mention of
    its own. Ids are those of the units; the group is the document. Order: that of the units.
    """
    for location in request.places():
        for document in parse_xml(location).iter("document"):
            for unit in document.iter("unit"):
                unit_id, text = unit.get("id") or "", unit.findtext("text") or ""
                spans = tuple(
                    span
                    for entity in unit.iter("e")
                    for span in _entity(location, entity, text, unit_id)
                )
                whole = location.document(unit_id, text, document.get("id") or unit_id, spans=spans)
                yield with_tags(whole, "blanks", "first", request.options.decode)


def _entity(location: FileLine, entity: ET.Element, text: str, unit_id: str) -> list[Span]:
    """The entity's fragments."""
    starts, sizes = (
        re.split(r"[;,\s]+", (entity.get(name) or "").strip()) for name in ("offset", "len")
    )
    if len(starts) != len(sizes) or not all(n.isdecimal() for n in (*starts, *sizes)):
        raise location.at(None).bad(
            "an entity of unit {} has no offset and length", "repair the unit", unit_id
        )
    fragments = [
        (location.number(a), location.number(a) + location.number(n))
        for a, n in zip(starts, sizes, strict=True)
    ]
    if any(not a < b <= len(text) for a, b in fragments):
        raise location.at(None).bad(
            "an entity leaves the text of unit {}", "repair the unit", unit_id
        )
    label = location.label(entity.get("grp") or "")
    return [Span(a, b, label) for a, b in fragments]
