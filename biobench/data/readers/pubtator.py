"""PubTator: `id|t|title`, `id|a|abstract`, then tab-separated mention and relation rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Literal

from biobench.data.readers.base import FileLine, LabelMap, ReaderOptions, Request, reader
from biobench.data.readers.files import read_lines
from biobench.data.readers.standoff import Mention, Named, RawDocument, check_surface
from biobench.schema.document import Document, Remark, Span
from biobench.schema.source import OneGroup, later

_TEXTS = re.compile(r"([^|\t]+)\|t\|(.*)\n\1\|a\|(.*)")


class PubtatorOptions(ReaderOptions):
    """Options of format `pubtator`."""

    format: Literal["pubtator"]
    types: LabelMap = {}
    """Mention type in the file to label of the task, many to one; null drops the type."""
    label: Literal["type", "concept"] = later("type")
    """concept: mentions are labelled with the concept id of their sixth column, where it is a
    single one.
    """
    concept_match: OneGroup = later("(.+)")
    """Regular expression over the whole concept id, without blanks around it; its first group is
    the label. Mentions that do not match (several concepts, none) are dropped.
    """


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
            concepts: list[Named] = []
            for mention in raw.mentions:
                label = _label(options, mention)
                if label is None:
                    continue
                spans.add(Span(mention.start, mention.end, mention.location.label(label)))
                concepts += mention.concepts(mention.start, mention.end)
            about = f"{raw.id}, {len(raw.mentions)} mentions"
            yield raw.location.document(
                raw.id,
                raw.text,
                spans=tuple(sorted(spans)),
                concepts=tuple(concepts),
                remarks=(Remark("repeated", about),) * raw.repeats,
            )


def _label(options: PubtatorOptions, mention: Mention) -> str | None:
    """The label that the mention's type or concept gives; None where it has none."""
    label = options.types.get(mention.label, mention.label)
    if options.label == "type" or label is None:
        return label
    concept = mention.note("concept")
    if concept is None:
        return None
    match = re.fullmatch(options.concept_match, concept)
    return match and match[1]


def parse_pubtator(location: FileLine) -> list[RawDocument]:
    """Documents of one file; raises DataFormatError for a malformed row or a surface that is not at
    its offsets.
    """
    documents: dict[str, RawDocument] = {}
    for lines in _blocks(location):
        raw = _document(lines)
        earlier = documents.setdefault(raw.id, raw)
        if earlier is not raw:
            raw.location.require(
                _content(earlier) == _content(raw),
                "document {} occurs twice with different content",
                "keep one",
                raw.id,
            )
            earlier.repeats += 1
    return list(documents.values())


def _blocks(location: FileLine) -> Iterator[list[tuple[FileLine, str]]]:
    """The lines between blank lines."""
    lines = read_lines(location)
    for is_filled, block in groupby(lines, key=lambda line: bool(line[1].strip())):
        if is_filled:
            yield [(location.at(number), line) for number, line in block]


def _content(raw: RawDocument) -> tuple[str, list[tuple[int, int, str]]]:
    return raw.text, [(m.start, m.end, m.label) for m in raw.mentions]


def _document(lines: list[tuple[FileLine, str]]) -> RawDocument:
    """The document of a block of lines."""
    start, first_line = lines[0]
    head = "\n".join(line for _, line in lines[:2])
    texts = _TEXTS.match(head)
    if texts is None:
        raise start.bad(
            "a document must begin with its |t| and |a| lines: {}", "repair the block", first_line
        )
    id, title, abstract = texts.groups()
    text = f"{title} {abstract}"
    mentions: list[Mention] = []
    unread: list[str] = []
    for at, row in lines[2:]:
        fields = row.split("\t")
        at.require(
            fields[0].strip() == id and len(fields) in (4, 5, 6, 7),
            "not a row of this document: {}",
            "4 to 7 tab-separated columns",
            row,
        )
        is_mention = fields[1].isdecimal() and fields[2].isdecimal()
        is_sound = len(fields) > 4
        if not is_mention:
            is_sound = _is_relation(fields, mentions)
        at.require(
            is_sound,
            "not a mention row (id, start, end, text, type): {}",
            "repair the row",
            row,
        )
        if is_mention:
            mentions.append(_mention(at, fields, text))
        else:
            unread.append(f"relations ({fields[1]})")
    return RawDocument(id, text, mentions, start, unread=tuple(unread))


def _is_relation(fields: list[str], mentions: list[Mention]) -> bool:
    """Whether a row names a relation and two concepts; concepts may be numbers as offsets are."""
    if len(fields) != 5 or fields[1].isdecimal():
        return len(fields) == 4
    concepts: set[str] = set()
    for mention in mentions:
        concepts.update(re.split(r"[,;|]", mention.note("concept") or ""))
    concept = fields[2].strip()
    return concept in concepts or not concept.isdecimal()


def _mention(at: FileLine, fields: list[str], text: str) -> Mention:
    """The mention of a row. Raises DataFormatError where the text has it not at its offsets."""
    _, begin, end, surface, label, *concepts = fields
    fragments = ((at.number(begin), at.number(end)),)
    check_surface(at, text, fragments, surface)
    codes = [("concept", concept.strip()) for concept in concepts[:1]]
    return Mention("", label, fragments, at, surface, codes)
