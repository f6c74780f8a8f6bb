"""Mantra GSC 1.1: XML units with entities by offset and length, as tokens with one group each."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_text, reader
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode


class MantraOptions(ReaderOptions):
    """Options of format `mantra`."""

    format: Literal["mantra"]
    decode: Mode = "strict"


@reader(MantraOptions)
def read_mantra(request: Request) -> Iterator[Document]:
    """`document` > `unit` > `text` and `e` (`offset`, `len`, `grp`; `;` or blanks part several fragments).

    Tokens are what stands between single blanks, so that punctuation sticks to words. A token that several entities
    cover is the first listed one's, and each fragment of an entity is a mention of its own. Ids are those of the
    units; the group is the document. Order: that of the units.
    """
    assert isinstance(request.options, MantraOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        try:
            root = ElementTree.fromstring(read_text(request, path))
        except ElementTree.ParseError as error:
            raise request.bad(f"not valid XML: {error}", "repair the file", path, error.position[0]) from None
        for document in root.iter("document"):
            for unit in document.iter("unit"):
                yield _unit(request, unit, document.get("id") or "", split, path)


def _unit(request: Request, unit: ElementTree.Element, document: str, split: str, path: Path) -> Document:
    unit_id, text = unit.get("id") or "", unit.findtext("text") or ""
    tokens = [(m.start(), m.end()) for m in re.finditer(r"[^ ]+", text)]
    tags = ["O"] * len(tokens)
    lost: list[str] = []
    for entity in unit.iter("e"):
        label = request.check_label(entity.get("grp") or "", path, 1)
        for start, end in _fragments(request, entity, text, path, unit_id):
            places = [i for i, (a, b) in enumerate(tokens) if a < end and start < b]
            free = [i for i in places if tags[i] == "O"]
            if len(free) < len(places):
                lost.append(label)
                continue
            for i in free:
                tags[i] = f"{'B' if i == free[0] else 'I'}-{label}"
    spans = []
    for i, tag in enumerate(tags):
        if tag.startswith("B-"):
            stop = i + 1
            while stop < len(tags) and tags[stop] == f"I-{tag[2:]}":
                stop += 1
            spans.append(Span(tokens[i][0], tokens[stop - 1][1], tag[2:]))
    return Document(
        id=unit_id,
        group=document or unit_id,
        text=text,
        split=split,
        spans=tuple(spans),
        tokens=tuple(tokens),
        tags=tuple(tags),
        unexpressed=tuple(lost),
        origin=at(path, 1),
    )


def _fragments(
    request: Request, entity: ElementTree.Element, text: str, path: Path, unit_id: str
) -> Iterator[tuple[int, int]]:
    """Characters [start, end) of the entity's fragments."""
    starts, sizes = (re.split(r"[;,\s]+", (entity.get(name) or "").strip()) for name in ("offset", "len"))
    if len(starts) != len(sizes) or not all(n.isdecimal() for n in (*starts, *sizes)):
        raise request.bad("an entity of unit {} has no offset and length", "repair the unit", path, None, unit_id)
    for start, size in zip(*([request.whole_number(n, path) for n in side] for side in (starts, sizes)), strict=True):
        if not 0 < size <= len(text) - start:
            raise request.bad("an entity leaves the text of unit {}", "repair the unit", path, None, unit_id)
        yield start, start + size
