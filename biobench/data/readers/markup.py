"""XML with mentions by offsets: UIMA CAS in XMI (E3C), Mantra GSC."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import xml_files
from biobench.data.readers.standoff import Named, unit, with_tags
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
        spans: set[Span] = set()
        for start, end, name in layers:
            if name in types:
                label = location.label(types[name])
                spans.add(Span(start, end, label))
        document = location.document(location.path.stem, text, spans=tuple(sorted(spans)))
        if not request.options.sentences:
            yield document
            continue
        for number, (start, end) in enumerate(_sentences(text, layers), start=1):
            yield unit(document, start, end, f"{document.id}/{number}")


def _sentences(text: str, layers: list[Named]) -> dict[tuple[int, int], None]:
    """(start, end) of the distinct sentences that hold more than white space, in order."""
    sentences: dict[tuple[int, int], None] = {}
    for start, end, name in layers:
        if name == "Sentence" and text[start:end].strip():
            sentences[start, end] = None
    return sentences


def _layers(location: FileLine, root: ET.Element) -> tuple[str, list[Named]]:
    """The text, and where each element stands in it, in characters, with its local name. Raises
    DataFormatError.
    """
    sofas = root.findall("{*}Sofa")
    texts = [element.attrib["sofaString"] for element in sofas if "sofaString" in element.attrib]
    location.require(
        len(sofas) == len(texts) == 1,
        f"holds {len(sofas)} texts (Sofa elements), not one",
        "is this a CAS file?",
    )
    (text,) = texts
    characters = _characters(text)
    layers: list[Named] = []
    for element in root:
        name = element.tag.rpartition("}")[2]
        begin, end = element.get("begin", ""), element.get("end", "")
        if not begin.isdecimal() or not end.isdecimal():
            continue
        # An offset that is no border of characters lies nowhere: no start, and no end.
        start = characters.get(location.number(begin), len(text) + 1)
        stop = characters.get(location.number(end), -1)
        if start > stop:
            raise location.bad(
                f"element {name} {begin}-{end} leaves the text", "the file is damaged"
            )
        if start < stop:
            layers.append((start, stop, name))
    return text, layers


def _characters(text: str) -> dict[int, int]:
    """UTF-16 offset to character offset, of every border between two characters."""
    sizes = (1 + (character > "\uffff") for character in text)
    return {unit: number for number, unit in enumerate(accumulate(sizes, initial=0))}


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
                annotated = location.document(
                    unit_id, text, document.get("id") or unit_id, spans=tuple(spans)
                )
                yield with_tags(annotated, "blanks", "first", request.options.decode)


def _entity(location: FileLine, entity: ET.Element, text: str, unit_id: str) -> list[Span]:
    """The entity's fragments."""
    starts = re.split(r"[;,\s]+", entity.get("offset", "").strip())
    sizes = re.split(r"[;,\s]+", entity.get("len", "").strip())
    location.require(
        len(starts) == len(sizes) and all(map(str.isdecimal, starts + sizes)),
        "an entity of unit {} has no offset with a length",
        "repair the unit",
        unit_id,
    )
    label = location.label(entity.get("grp", ""))
    spans: list[Span] = []
    for offset, size in zip(starts, sizes, strict=True):
        start = location.number(offset)
        end = start + location.number(size)
        location.require(
            start < end <= len(text),
            "an entity leaves the text of unit {}",
            "repair the unit",
            unit_id,
        )
        spans.append(Span(start, end, label))
    return spans
