"""PubTator: `id|t|title`, `id|a|abstract`, then tab-separated mention and relation rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from pydantic import field_validator

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import read_lines
from biobench.data.readers.standoff import Mention, RawDocument, check_surface
from biobench.schema.document import Document, Remark, Span
from biobench.schema.source import later, one_group

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)")


class PubtatorOptions(ReaderOptions):
    """Options of format `pubtator`."""

    format: Literal["pubtator"]
    types: dict[str, str | None] = {}
    """Mention type in the file to label of the task, many to one; null drops the type."""
    label: Literal["type", "concept"] = later("type")
    """concept: mentions are labelled with the concept id of their sixth column, where it is a
    single one.
    """
    concept_match: str = later("(.+)")
    """Regular expression over the whole concept id, without blanks around it; its first group is
    the label. Mentions that do not match (several concepts, none) are dropped.
    """

    @field_validator("concept_match")
    @classmethod
    def _one_group(cls, value: str) -> str:
        return one_group(value)


@reader(PubtatorOptions)
def read_pubtator(request: Request[PubtatorOptions]) -> Iterator[Document]:
    """Title and abstract (joined by one blank) with mentions by character offsets.

    Mention rows have 6 columns, or 7 for composite mentions (the seventh is skipped); relation rows
    have 4, or 5 with a remark (BioRED). A document that occurs twice with the same content is kept
    once, with a remark. Order: that of the file's documents.
    """
    options = request.options
    for location in request.places():
        for raw in parse_pubtator(location):
            spans: set[Span] = set()
            concepts: list[tuple[int, int, str]] = []
            for mention in raw.mentions:
                label = options.types.get(mention.label, mention.label)
                if label is not None and options.label == "concept":
                    match = (
                        re.fullmatch(options.concept_match, mention.codes[0][1])
                        if mention.codes
                        else None
                    )
                    label = None if match is None else match[1]
                if label is not None:
                    spans.add(
                        Span(mention.start, mention.end, location.at(mention.line).label(label))
                    )
                    concepts += [(mention.start, mention.end, c) for c in mention.identifiers]
            about = f"{raw.id}, {len(raw.mentions)} mentions"
            yield location.at(raw.line).document(
                raw.id,
                raw.text,
                spans=tuple(sorted(spans)),
                concepts=tuple(concepts),
                remarks=(Remark("repeated", about),) * raw.repeats,
            )


def parse_pubtator(location: FileLine) -> list[RawDocument]:
    """Documents of one file; raises DataFormatError for a malformed row or a surface that is not at
    its offsets.
    """
    documents: dict[str, RawDocument] = {}
    for filled, lines in groupby(read_lines(location.path), key=lambda line: bool(line[1].strip())):
        if not filled:
            continue
        raw = _document(location, list(lines))
        earlier = documents.setdefault(raw.id, raw)
        if earlier is raw:
            continue
        if _content(earlier) != _content(raw):
            raise location.at(raw.line).bad(
                "document {} occurs twice with different content", "keep one", raw.id
            )
        earlier.repeats += 1
    return list(documents.values())


def _content(raw: RawDocument) -> tuple[str, list[tuple[int, int, str]]]:
    return raw.text, [(m.start, m.end, m.label) for m in raw.mentions]


def _is_relation(fields: list[str], mentions: list[Mention]) -> bool:
    """Whether a row names a relation and two concepts; concepts may be numbers as offsets are."""
    if len(fields) == 4:
        return True
    kind, concept = fields[1], fields[2].strip()
    if len(fields) != 5 or kind.isdecimal():
        return False
    concepts = {part for m in mentions for _, code in m.codes for part in re.split(r"[,;|]", code)}
    return concept in concepts or not concept.isdecimal()


def _document(location: FileLine, block: list[tuple[int, str]]) -> RawDocument:
    first, line = block[0]
    title = _TEXT.fullmatch(line)
    abstract = _TEXT.fullmatch(block[1][1]) if len(block) > 1 else None
    if (
        title is None
        or title[2] != "t"
        or abstract is None
        or abstract[2] != "a"
        or abstract[1] != title[1]
    ):
        message = "a document must begin with its |t| and |a| lines: {}"
        raise location.at(first).bad(message, "repair the block", line)
    text = f"{title[3]} {abstract[3]}"
    mentions: list[Mention] = []
    for number, row in block[2:]:
        at, fields = location.at(number), row.split("\t")
        if fields[0].strip() != title[1] or len(fields) not in (4, 5, 6, 7):
            raise at.bad("not a row of this document: {}", "4 to 7 tab-separated columns", row)
        numbers = fields[1].isdecimal() and fields[2].isdecimal()
        if not numbers and _is_relation(fields, mentions):
            continue
        if not numbers or len(fields) == 4:
            raise at.bad(
                "not a mention row (id, start, end, text, type): {}", "repair the row", row
            )
        start, end = at.number(fields[1]), at.number(fields[2])
        check_surface(at, text, [(start, end)], fields[3])
        codes = [("concept", fields[5].strip())] if len(fields) > 5 else []
        mentions.append(
            Mention(f"T{len(mentions) + 1}", fields[4], ((start, end),), number, fields[3], codes)
        )
    return RawDocument(title[1], text, mentions, location.path, first)
