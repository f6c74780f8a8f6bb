"""XML with mentions by offsets: UIMA CAS in XMI (E3C), Mantra GSC."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import xml_files
from biobench.data.readers.standoff import unit, with_tags
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
    for location, root in xml_files(request):
        text, layers = _layers(location, root)
        spans = {Span(a, b, location.label(types[name])) for a, b, name in layers if name in types}
        annotated = location.document(location.path.stem, text, spans=tuple(sorted(spans)))
        if not request.options.sentences:
            yield annotated
            continue
        sentences = [(a, b) for a, b, name in layers if name == "Sentence" and text[a:b].strip()]
        for number, (start, end) in enumerate(dict.fromkeys(sentences), start=1):
            yield unit(annotated, start, end, f"{annotated.id}/{number}")


_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


def _layers(location: FileLine, root: ET.Element) -> tuple[str, list[tuple[int, int, str]]]:
    """(text, [(begin, end, local element name)]) in characters. Raises DataFormatError."""
    elements = [(element.tag.rpartition("}")[2], element) for element in root]
    texts = [element.get("sofaString") for name, element in elements if name == "Sofa"]
    if len(texts) != 1 or texts[0] is None:
        message = f"holds {len(texts)} texts (Sofa elements), not one"
        raise location.bad(message, "is this a CAS file?")
    text = texts[0]
    # Where the characters of two units begin, in units.
    pairs = [match.start() + number for number, match in enumerate(_TWO_UNITS.finditer(text))]
    layers: list[tuple[int, int, str]] = []
    for name, element in elements:
        begin, end = element.get("begin", ""), element.get("end", "")
        if not begin.isdecimal() or not end.isdecimal():
            continue
        start = _character(location.number(begin), pairs)
        stop = _character(location.number(end), pairs)
        if start is None or stop is None or not start <= stop <= len(text):
            message = f"element {name} {begin}-{end} leaves the text"
            raise location.bad(message, "the file is damaged")
        if start < stop:
            layers.append((start, stop, name))
    return text, layers


def _character(offset: int, pairs: list[int]) -> int | None:
    """UTF-16 offset to character offset; None inside a character. pairs: where those of two units
    begin.
    """
    pairs_before = bisect_left(pairs, offset)
    if pairs_before and pairs[pairs_before - 1] == offset - 1:
        return None
    return offset - pairs_before


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
    for location, root in xml_files(request):
        for document in root.iter("document"):
            for element in document.iter("unit"):
                unit_id, text = element.get("id", ""), element.findtext("text", "")
                spans: list[Span] = []
                for entity in element.iter("e"):
                    spans += _entity(location, entity, text, unit_id)
                group = document.get("id") or unit_id
                annotated = location.document(unit_id, text, group, spans=tuple(spans))
                yield with_tags(annotated, "blanks", "first", request.options.decode)


def _entity(location: FileLine, entity: ET.Element, text: str, unit_id: str) -> list[Span]:
    """The entity's fragments."""
    starts = re.split(r"[;,\s]+", entity.get("offset", "").strip())
    sizes = re.split(r"[;,\s]+", entity.get("len", "").strip())
    if len(starts) != len(sizes) or not all(map(str.isdecimal, (*starts, *sizes))):
        message = "an entity of unit {} has no offset with a length"
        raise location.bad(message, "repair the unit", unit_id)
    label = location.label(entity.get("grp", ""))
    spans: list[Span] = []
    for offset, size in zip(starts, sizes, strict=True):
        start = location.number(offset)
        end = start + location.number(size)
        if not start < end <= len(text):
            message = "an entity leaves the text of unit {}"
            raise location.bad(message, "repair the unit", unit_id)
        spans.append(Span(start, end, label))
    return spans
