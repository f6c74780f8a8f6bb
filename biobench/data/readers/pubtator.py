"""PubTator: `id|t|title`, `id|a|abstract`, then tab-separated mention and relation rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from biobench.data.formats.standoff import Mention, RawDocument
from biobench.data.readers.base import ReaderOptions, Request, at, read_lines, reader
from biobench.schema.document import Document, Span
from biobench.schema.source import later, one_group

_TEXT = re.compile(r"([^|\t]+)\|([ta])\|(.*)")


class PubtatorOptions(ReaderOptions):
    """Options of format `pubtator`."""

    format: Literal["pubtator"]
    types: dict[str, str | None] = {}
    """Mention type in the file to label of the task, many to one; null drops the type."""
    label: Literal["type", "concept"] = later("type")
    """concept: mentions are labelled with the concept id of their sixth column, where it is a single one."""
    concept_match: str = later("(.+)")
    """Regular expression over the whole concept id, without blanks around it; its first group is the label. Mentions
    that do not match (several concepts, none) are dropped."""

    @field_validator("concept_match")
    @classmethod
    def _one_group(cls, value: str) -> str:
        return one_group(value)


@reader(PubtatorOptions)
def read_pubtator(request: Request) -> Iterator[Document]:
    """Title and abstract (joined by one blank) with mentions by character offsets.

    Mention rows have 6 columns, or 7 for composite mentions (the seventh is skipped); relation rows have 4.
    A document that stands twice with the same content is kept once. Order: that of the file's documents.
    """
    options = request.options
    assert isinstance(options, PubtatorOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        for raw in parse_pubtator(request, path):
            spans: list[Span] = []
            for mention in raw.mentions:
                label = options.types.get(mention.label, mention.label)
                if label is not None and options.label == "concept":
                    match = re.fullmatch(options.concept_match, mention.codes[0][1]) if mention.codes else None
                    label = None if match is None else match[1]
                if label is not None:
                    checked = request.check_label(label, path, mention.line)
                    spans.append(Span(mention.start, mention.end, checked))
            yield Document(
                id=raw.id,
                group=raw.id,
                text=raw.text,
                split=split,
                spans=tuple(sorted(set(spans))),
                origin=at(path, raw.line),
            )


def parse_pubtator(request: Request, path: Path) -> Iterator[RawDocument]:
    """Documents of one file; raises DataFormatError for a malformed row or a surface that is not at its offsets."""
    seen: dict[str, tuple[str, list[tuple[int, int, str]]]] = {}
    for block in _blocks(request, path):
        raw = _document(request, path, block)
        content = (raw.text, [(m.start, m.end, m.label) for m in raw.mentions])
        if raw.id in seen:
            if seen[raw.id] != content:
                raise request.bad("document {} stands twice with different content", "keep one", path, raw.line, raw.id)
            continue
        seen[raw.id] = content
        yield raw


def _blocks(request: Request, path: Path) -> Iterator[list[tuple[int, str]]]:
    block: list[tuple[int, str]] = []
    for number, line in read_lines(request, path):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _document(request: Request, path: Path, block: list[tuple[int, str]]) -> RawDocument:
    first, line = block[0]
    title = _TEXT.fullmatch(line)
    abstract = _TEXT.fullmatch(block[1][1]) if len(block) > 1 else None
    if title is None or title[2] != "t" or abstract is None or abstract[2] != "a" or abstract[1] != title[1]:
        raise request.bad("a document must begin with its |t| and |a| lines: {}", "repair the block", path, first, line)
    text = f"{title[3]} {abstract[3]}"
    mentions: list[Mention] = []
    for number, row in block[2:]:
        fields = row.split("\t")
        if fields[0].strip() != title[1] or len(fields) not in (4, 5, 6, 7):
            raise request.bad("not a row of this document: {}", "4 to 7 tab-separated columns", path, number, row)
        numbers = fields[1].isdecimal() and fields[2].isdecimal()
        if len(fields) == 4 and not numbers:
            continue  # a relation between concepts
        if not numbers or len(fields) == 4:
            raise request.bad("not a mention row (id, start, end, text, type): {}", "repair the row", path, number, row)
        start, end = (request.whole_number(n, path, number) for n in fields[1:3])
        surface = fields[3]
        covered = text[start:end]
        # One row of the NCBI corpus carries trailing blanks in its text column; offsets are right.
        if covered.strip() != surface.strip() or not covered.strip():
            raise request.bad(
                f"characters {start}-{end} are not {{}}",
                "offsets count title, one blank, abstract",
                path,
                number,
                surface,
            )
        codes = [("concept", fields[5].strip())] if len(fields) > 5 else []
        mentions.append(Mention(f"T{len(mentions) + 1}", fields[4], ((start, end),), number, surface, codes))
    return RawDocument(title[1], text, mentions, path, first)
