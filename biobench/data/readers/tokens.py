"""Tokens with tags: one token a line, or JSON objects with a list of words and one of tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Literal

from pydantic import field_validator

from biobench.data.readers.base import (
    DocumentNames,
    FileLine,
    Ids,
    LabelMap,
    ReaderOptions,
    Request,
    numbering,
    reader,
)
from biobench.data.readers.files import DataRow, Layout, json_rows, read_lines
from biobench.schema.document import Document, Remark
from biobench.schema.source import fail, later
from biobench.schema.tags import Mode, Scheme, Tagging, tags_to_spans

_MARKER = re.compile(
    r"###MEDLINE:\s*(?P<medline>\S+)\s*"
    r"|-DOCSTART-(?:\s+\(?(?:O|-X-[^\s()]*|(?P<docstart>[^\s()]+))\)?)?(?:\s.*)?"
)
SEPARATORS = {"tab": "\t", "space": " ", "whitespace": None}


def check_tag(location: FileLine, tag: str, tagging: Tagging, hint: str) -> None:
    """Raise DataFormatError for a tag of another shape, or of no label of the task.

    hint: what to do about another shape.
    """
    try:
        letter, name = tagging.parse(tag)
    except ValueError:
        raise location.bad(f"tag {{}} is not {tagging.shapes}", hint, tag) from None
    if letter != "O":
        location.mapped(name, tagging.types)


def mention_tags(label: str | None, size: int) -> list[str]:
    """The IOB2 tags of so many tokens of a mention, or (without a label) of plain words."""
    if not label:
        return ["O"] * size
    return [f"B-{label}", *[f"I-{label}"] * (size - 1)][:size]


def placed(texts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Where each text stands when they are joined by single characters."""
    offsets: list[tuple[int, int]] = []
    start = 0
    for text in texts:
        offsets.append((start, start + len(text)))
        start += len(text) + 1
    return tuple(offsets)


def tagged(words: Sequence[str], tags: Sequence[str], tagging: Tagging) -> dict[str, Any]:
    """Text, tokens, tags and spans of a document: words joined by single blanks, and what their
    tags (as many, as the corpus writes them) say.
    """
    tokens = placed(words)
    read = tagging.read(tags)
    return {
        "text": " ".join(words),
        "tokens": tokens,
        "tags": read.tags,
        "spans": tags_to_spans(read.tags, tokens, tagging.decode),
        "unexpressed": read.dropped,
        "remarks": tuple(Remark("dropped", label) for label in read.dropped),
    }


class TaggedOptions(ReaderOptions):
    """What readers of tags share."""

    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    types: LabelMap = {}
    """Entity type in the file to label of the task, many to one; null drops the type. Unnamed types
    stay. The type of a tag that is a bare B or I is the empty text: `{"": Disease}`.
    """
    tag_map: dict[str, str] = later({})
    """Tag in the file to the same tag as O, B-<type>, I-<type>: `{B_Disease: B-Disease, "0": O}`.
    """


class TokenFileOptions(TaggedOptions):
    """What readers of one token a line share."""

    columns: list[str] = ["token", "tag"]
    """Names in order; `token` and `tag` are read, every other name is skipped."""
    separator: Literal["tab", "space", "whitespace"] = "tab"

    @field_validator("columns")
    @classmethod
    def _both(cls, value: list[str]) -> list[str]:
        if value.count("token") != 1 or value.count("tag") != 1:
            raise fail(
                f"columns {value} do not name token and tag once each",
                "for example [token, tag]",
            )
        return value


class IobOptions(TokenFileOptions):
    """Options of format `iob`."""

    format: Literal["iob"]
    comments: Literal["none", "hash"] = later("none")
    """hash: a line that begins with # and has another number of fields than `columns` is skipped.
    """
    ids: Ids = later("name")
    """A document's id by the name in its marker line: see `base.Ids`."""


@reader(IobOptions)
def read_iob(request: Request[IobOptions]) -> Iterator[Document]:
    """Token-per-line files with IOB1, IOB2 or IOBES tags.

    The text is rebuilt by joining tokens with single spaces. `-DOCSTART-` and `###MEDLINE:` lines
    begin a document and give its group; without them each sentence is its own group. Order: that of
    the lines.
    """
    options, by_document = request.options, request.spec.unit == "document"
    tagging = tagging_of(options)
    # Of a split so far: sentences without a document, and documents without a name.
    sentences, documents = numbering(), numbering()
    names = DocumentNames(options.ids)
    for start in request.places():
        prefix = start.prefix
        document, group = "", ""
        numbers = count(1)
        for block in _blocks(options, tagging, start, by_document=by_document):
            if isinstance(block, str):
                numbers = count(1)
                document = group = f"{prefix}-document-{next(documents[prefix])}"
                if block:
                    document, group = names.of(prefix, block)
                continue
            lines, words, tags = zip(*block, strict=True)
            lines[0].require(
                document or not by_document,
                "has words without a document marker before them, and unit is 'document'",
                "begin with a -DOCSTART- or ###MEDLINE: line, or use `unit: sentence`",
            )
            document_id = document
            if not document:
                document_id = f"{prefix}-{next(sentences[prefix])}"
            elif not by_document:
                document_id = f"{document}/{next(numbers)}"
            yield lines[0].document(
                document_id,
                group=group or document_id,
                **tagged(words, tags, tagging),
            )


Row = tuple[FileLine, str, str]
"""Place, token and tag of a line."""


def _blocks(
    options: IobOptions, tagging: Tagging, start: FileLine, *, by_document: bool
) -> Iterator[str | list[Row]]:
    """The name in each line that begins a document (empty where it names none), and the rows of
    each sentence.

    by_document: all sentences of a document are one.
    """
    rows: list[Row] = []
    goes_on = False  # whether a blank line ends no sentence
    for number, line in read_lines(start):
        marker = _marker(line)
        if marker is None and line.strip():
            rows += _rows(options, tagging, line, start.at(number))
            continue
        if rows and not (marker is None and goes_on):
            yield rows
            rows = []
        if marker is not None:
            yield marker
            goes_on = by_document
    if rows:
        yield rows


def _marker(line: str) -> str | None:
    """The document id of a marker line (empty when it names none), or None for any other line."""
    match = _MARKER.fullmatch(line)
    if match is None:
        return None
    return match["medline"] or match["docstart"] or ""


def _rows(options: IobOptions, tagging: Tagging, line: str, location: FileLine) -> list[Row]:
    """The row of a line; none of a comment: a # is a token too where the line has a tag. Raises
    DataFormatError.
    """
    fields = line.split(SEPARATORS[options.separator])
    is_comment = options.comments == "hash" and line.startswith("#")
    if is_comment and len(fields) != len(options.columns):
        return []
    location.check_width(fields, len(options.columns))
    fields_by_name = dict(zip(options.columns, fields, strict=True))
    token, tag = fields_by_name["token"], fields_by_name["tag"]
    location.require(token.strip(), "the token is empty: {}", "repair the line", line)
    hint = "check `reader.columns` and `reader.scheme`, name it in `reader.tag_map`, or repair it"
    check_tag(location, tag, tagging, hint)
    return [(location, token, tag)]


class JsonTokensOptions(TaggedOptions):
    """Options of format `json_tokens`."""

    format: Literal["json_tokens"]
    layout: Layout = "lines"
    tokens: str = "tokens"
    """Field with the list of words."""
    tags: str = "tags"
    """Field with as many tags, texts or numbers."""
    names: list[str] = []
    """What the numbers stand for; empty where the tags are texts."""
    id: str | None = None
    group: str | None = None
    """Field that says what belongs together (a patient, an article); default: each object alone."""


@reader(JsonTokensOptions)
def read_json_tokens(request: Request[JsonTokensOptions]) -> Iterator[Document]:
    """Each object is a document of its own: its words joined by single blanks. Order: that of the
    objects.
    """
    options, tagging = request.options, tagging_of(request.options)
    for row in json_rows(request, options.layout):
        id, group = row.id_and_group(options.id, options.group)
        content = tagged_row(row, options.tokens, options.tags, options.names, tagging)
        yield row.location.document(id, group=group, **content)


def tagging_of(options: ReaderOptions) -> Tagging:
    """How the reader's gold tags are written; predicted tags are read by it too.

    Readers that make their tags from mentions have no scheme: theirs is IOB2 with the task's
    labels.
    """
    decode: Mode = getattr(options, "decode", "strict")
    if not hasattr(options, "scheme"):
        return Tagging(decode=decode)
    return Tagging(
        scheme=options.scheme,
        decode=decode,
        types=getattr(options, "types", None) or getattr(options, "label_map", {}),
        spelled=getattr(options, "tag_map", {}),
    )


def tagged_row(
    row: DataRow, tokens: str, tags: str, names: Sequence[str], tagging: Tagging
) -> dict[str, Any]:
    """What a row's words and tags say (see `tagged`). names: what numbers stand for. Raises
    DataFormatError.
    """
    words, values = row.items(tokens), row.items(tags)
    are_lists = isinstance(row.values[tokens], list) and isinstance(row.values[tags], list)
    counts = f"{len(words)} {tokens} and {len(values)} {tags}"
    row.location.require(
        are_lists and len(words) == len(values),
        f"the {row.noun} has {counts}",
        "they are lists of one length: repair it, or check `reader`",
    )
    row.location.require(
        all(isinstance(word, str) for word in words),
        f"the {row.noun}'s tokens are not texts",
        f"field '{tokens}' must hold lists of texts",
    )
    hint = "check `reader.scheme`, and name what numbers stand for in `reader.names`"
    written = [row.named(value, names) for value in values]
    for tag in written:
        check_tag(row.location, tag, tagging, hint)
    return tagged(words, written, tagging)
