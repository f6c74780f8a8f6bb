"""UIMA CAS in XMI: one XML file a document, layers as elements with begin and end (E3C)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, reader
from biobench.schema.document import Document, Span

_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


class XmiOptions(ReaderOptions):
    """Options of format `xmi`."""

    format: Literal["xmi"]
    types: dict[str, str]
    """Layer (local element name, such as CLINENTITY) to label of the task, many to one; other layers are skipped."""
    sentences: bool = False
    """Each `Sentence` of the file becomes a document; mentions that cross its border are dropped."""


@reader(XmiOptions)
def read_xmi(request: Request) -> Iterator[Document]:
    """Documents with mentions from chosen layers; ids are the files' names without ending.

    UIMA counts offsets in UTF-16 units; they are turned into characters. Order: files by name, sentences as their
    elements stand in the file.
    """
    options = request.options
    assert isinstance(options, XmiOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        text, layers = parse_xmi(request, path)
        spans = sorted({Span(a, b, options.types[name]) for name, a, b in layers if name in options.types})
        for span in spans:
            request.check_label(span.label, path, 1)
        if not options.sentences:
            yield Document(
                id=path.stem, group=path.stem, text=text, split=split, spans=tuple(spans), origin=at(path, 1)
            )
            continue
        places = dict.fromkeys((a, b) for name, a, b in layers if name == "Sentence" and text[a:b].strip())
        for number, (start, end) in enumerate(places, start=1):
            inside = tuple(Span(a - start, b - start, la) for a, b, la in spans if a >= start and b <= end)
            yield Document(
                id=f"{path.stem}/{number}",
                group=path.stem,
                text=text[start:end],
                split=split,
                spans=inside,
                origin=at(path, 1),
            )


def parse_xmi(request: Request, path: Path) -> tuple[str, list[tuple[str, int, int]]]:
    """(text, [(local element name, begin, end)]) in characters. Raises DataFormatError."""
    try:
        # At once: the whole text is one attribute, which the parser would begin anew with every piece of the file.
        root = ET.fromstring(path.read_bytes())
    except (ET.ParseError, OSError) as error:
        line = error.position[0] if isinstance(error, ET.ParseError) else None
        raise request.bad("is not well-formed XML", "download it again", path, line) from None
    texts = [e.get("sofaString") for e in root if _local(e) == "Sofa"]
    if len(texts) != 1 or texts[0] is None:
        raise request.bad(f"holds {len(texts)} texts (Sofa elements), not one", "is this a CAS file?", path, 1)
    text = texts[0]
    # Where the characters of two units begin, in units.
    pairs = [match.start() + number for number, match in enumerate(_TWO_UNITS.finditer(text))]
    layers: list[tuple[str, int, int]] = []
    for element in root:
        begin, end = element.get("begin"), element.get("end")
        if begin is None or end is None or not begin.isdecimal() or not end.isdecimal():
            continue
        a, b = request.whole_number(begin, path, 1), request.whole_number(end, path, 1)
        first, last = (_character(unit, pairs) for unit in (a, b))
        if a > b or first is None or last is None or last > len(text):
            raise request.bad(f"element {_local(element)} {a}-{b} leaves the text", "the file is damaged", path, 1)
        if a < b:
            layers.append((_local(element), first, last))
    return text, layers


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _character(unit: int, pairs: list[int]) -> int | None:
    """UTF-16 offset to character offset; None inside a character. pairs: where those of two units begin."""
    before = bisect_left(pairs, unit)
    return None if before and pairs[before - 1] == unit - 1 else unit - before
