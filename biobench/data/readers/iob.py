"""Token files: one token a line with its tag in a column, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import field_validator

from biobench.data.formats.tagged import Scheme, prefix_and_type, tagged_document
from biobench.data.readers.base import DocumentNames, Ids, ReaderOptions, Request, at, read_lines, reader
from biobench.schema.document import Document
from biobench.schema.source import later
from biobench.schema.tags import Mode
from biobench.schema.task import fail

_MEDLINE = re.compile(r"###MEDLINE:\s*(\S+)\s*")
_DOCSTART = re.compile(r"-DOCSTART-(?:\s+\(?([^\s()]+)\)?)?(?:\s.*)?")
_SEPARATORS = {"tab": "\t", "space": " "}


class IobOptions(ReaderOptions):
    """Options of format `iob`."""

    format: Literal["iob"]
    columns: list[str] = ["token", "tag"]
    """Names in order; `token` and `tag` are read, every other name is skipped."""
    separator: Literal["tab", "space", "whitespace"] = "tab"
    scheme: Scheme = "IOB2"
    decode: Mode = "strict"
    group: Literal["unit", "file"] = later("unit")
    """What belongs together where no marker line says it: each sentence alone, or all of a file."""
    ids: Ids = later("name")
    """A document's id by the name in its marker line: see `base.Ids`."""
    types: dict[str, str | None] = {}
    """Entity type in the file to label of the task, many to one; null drops the type. Unnamed types stay."""

    @field_validator("columns")
    @classmethod
    def _both(cls, value: list[str]) -> list[str]:
        if value.count("token") != 1 or value.count("tag") != 1:
            raise fail(f"columns {value} do not name token and tag once each", "for example [token, tag]")
        return value


@dataclass(slots=True)
class _Numbers:
    """How many sentences without a document, and documents without a name, a split's files had so far."""

    sentences: int = 0
    documents: int = 0


@dataclass(slots=True)
class _Block:
    """Consecutive tokens of one sentence or document."""

    line: int
    tokens: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)


@reader(IobOptions)
def read_iob(request: Request) -> Iterator[Document]:
    """Token-per-line files with IOB1, IOB2 or IOBES tags.

    The text is rebuilt by joining tokens with single spaces. `-DOCSTART-` and `###MEDLINE:` lines begin a
    document and give its group; without them each sentence is its own group. Order: that of the lines.
    """
    options = request.options
    assert isinstance(options, IobOptions)
    numbers: dict[str, _Numbers] = {}
    names = DocumentNames(options.ids)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        prefix = split or path.stem
        yield from _file(request, options, split, path, prefix, numbers.setdefault(prefix, _Numbers()), names)


def _file(
    request: Request,
    options: IobOptions,
    split: str,
    path: Path,
    prefix: str,
    numbers: _Numbers,
    names: DocumentNames,
) -> Iterator[Document]:
    by_document = request.spec.unit == "document"
    block: _Block | None = None
    document, group, sentences, marked = "", "", 0, False

    def flush() -> Iterator[Document]:
        nonlocal sentences
        if block is None:
            return
        if document:
            sentences += 1
            document_id = document if by_document else f"{document}/{sentences}"
        else:
            numbers.sentences += 1
            document_id = f"{prefix}-{numbers.sentences}"
        together = group or (path.stem if options.group == "file" else document_id)
        yield tagged_document(
            block.tokens,
            block.tags,
            options.scheme,
            options.decode,
            id=document_id,
            group=together,
            split=split,
            origin=at(path, block.line),
            types=options.types,
        )

    first: int | None = None
    for number, line in read_lines(request, path):
        marker = _marker(line)
        if marker is not None:
            if by_document and not marked and first is not None:
                raise request.bad(
                    "has words before its first document marker, and unit is 'document'",
                    "begin the file with the marker of its first document",
                    path,
                    first,
                )
            yield from flush()
            numbers.documents += 1
            block, sentences, marked = None, 0, True
            document = group = f"{prefix}-document-{numbers.documents}"
            if marker:
                document, group = names.of(prefix, marker)
        elif not line.strip():
            if by_document and document:
                continue
            yield from flush()
            block = None
        else:
            if block is None:
                block = _Block(number)
            first = first or number
            token, tag = _row(request, options, line, path, number)
            block.tokens.append(token)
            block.tags.append(tag)
    yield from flush()
    if by_document and not marked:
        raise request.bad(
            "has no document markers, and unit is 'document'",
            "use `unit: sentence`, or a file with -DOCSTART- or ###MEDLINE: lines",
            path,
        )


def _marker(line: str) -> str | None:
    """The document id of a marker line (empty when it names none), or None for any other line."""
    match = _MEDLINE.fullmatch(line)
    if match:
        return match[1]
    match = _DOCSTART.fullmatch(line)
    if match:
        name = match[1] or ""
        return "" if name == "O" or name.startswith("-X-") else name
    return None


def _row(request: Request, options: IobOptions, line: str, path: Path, number: int) -> tuple[str, str]:
    """(token, tag with the letters B, I and O and the file's type). Raises DataFormatError."""
    fields = line.split() if options.separator == "whitespace" else line.split(_SEPARATORS[options.separator])
    if len(fields) != len(options.columns):
        raise request.bad(
            f"the line has {len(fields)} fields, the spec names {len(options.columns)}: {{}}",
            f"check `columns` and `separator: {options.separator}`, or repair the line",
            path,
            number,
            line,
        )
    token, tag = fields[options.columns.index("token")], fields[options.columns.index("tag")]
    if not token.strip():
        raise request.bad("the token is empty: {}", "repair the line", path, number, line)
    try:
        prefix, label = prefix_and_type(tag, options.scheme)
    except ValueError as known:
        hint = "check `columns` and `scheme`, or repair the line"
        raise request.bad(f"tag {{}} is not {known}", hint, path, number, tag) from None
    if prefix == "O":
        return token, tag
    mapped = options.types.get(label, label)
    if mapped is not None:
        request.check_label(mapped, path, number)
    return token, f"{prefix}-{label}"
