"""Documents with the set of codes that their mentions carry: BRAT code notes, or a table of mentions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_text, reader
from biobench.data.readers.brat import parse_brat
from biobench.data.readers.tsv import rows
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import later


class BratCodesOptions(ReaderOptions):
    """Options of format `brat_codes`: the codes of a document are notes on its mentions."""

    format: Literal["brat_codes"]
    note: str
    """Type of the note that holds the code (`#1<tab>ICD-O T3<tab>8500/3`); of several on one mention the last wins."""
    mentions: list[str] = []
    """Annotation types whose notes count; empty: all."""
    missing_ann: Literal["error", "skip"] = "error"
    encoding_errors: Literal["strict", "replace"] = "replace"
    offsets: Literal["check", "ignore"] = later("check")
    """check: a mention that is not at its offsets is refused, since text and annotation may be of different documents.
    ignore: its code counts all the same; which codes a window hides is then not known."""


class MentionTableOptions(ReaderOptions):
    """Options of format `mention_table`: `files.texts` are the texts, `files.labels` a table with one row a mention."""

    format: Literal["mention_table"]
    separator: Literal["tab", "comma", "semicolon"] = "comma"
    document: str
    """Column with the document's name; a `.ann` or `.txt` ending is cut."""
    code: str
    keep: dict[str, str] = {}
    """Column to the value that a row must have."""
    encoding_errors: Literal["strict", "replace"] = "replace"


@reader(BratCodesOptions)
def read_brat_codes(request: Request) -> Iterator[Document]:
    """Whole texts labelled with the set of their mentions' codes; codes are opaque strings, outer blanks cut.

    Documents without a code are left out. Order: files by name.
    """
    options = request.options
    assert isinstance(options, BratCodesOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        placed = options.offsets == "check"
        raw = parse_brat(request, path, options.missing_ann, options.encoding_errors, placed=placed)
        if raw is None:
            continue
        codes: dict[str, int] = {}
        for mention in raw.mentions:
            if options.mentions and mention.label not in options.mentions:
                continue
            notes = [text.strip() for kind, text in mention.codes if kind == options.note]
            if notes and notes[-1]:
                codes[notes[-1]] = min(mention.end, codes.get(notes[-1], mention.end))
        if codes:
            yield Document(
                id=raw.id,
                group=raw.id,
                text=raw.text,
                split=split,
                labels=tuple(sorted(codes)),
                evidence=tuple(sorted(codes.items())) if placed else (),
                origin=at(path, 1),
            )


@reader(MentionTableOptions)
def read_mention_table(request: Request) -> Iterator[Document]:
    """Whole texts labelled with the set of codes that a table gives for their mentions.

    Documents need a text file and at least one code; a row that names a text that is not there is refused. Order:
    that of the text files, by name; the table's rows may stand in any.
    """
    options = request.options
    assert isinstance(options, MentionTableOptions)
    if set(request.files) != {"texts", "labels"}:
        raise DataFormatError("format 'mention_table' needs files.texts and files.labels", hint="name both")
    texts = {path.stem: path for path in request.files["texts"]}
    codes: dict[str, set[str]] = {}
    for path in request.files["labels"]:
        _collect(request, options, path, texts, codes)
    for stem in (stem for stem in texts if stem in codes):
        yield Document(
            id=stem,
            group=stem,
            text=read_text(request, texts[stem], options.encoding_errors),
            split="",
            labels=tuple(sorted(codes[stem])),
            origin=at(texts[stem], 1),
        )


def _collect(
    request: Request, options: MentionTableOptions, path: Path, texts: dict[str, Path], codes: dict[str, set[str]]
) -> None:
    where: dict[str, int] = {}
    for line, row in rows(request, path, options.separator, "minimal"):
        if not where:
            for column in (options.document, options.code, *options.keep):
                if column not in row:
                    raise request.bad(f"the header has no column '{column}'", request.nearest(column, row), path, line)
                where[column] = row.index(column)
            width = len(row)
            continue
        if len(row) != width:
            raise request.bad(f"the row has {len(row)} fields, the header {width}", "repair the row", path, line)
        if any(row[where[column]] != value for column, value in options.keep.items()):
            continue
        code = row[where[options.code]].strip()
        if not code:
            continue
        stem = row[where[options.document]].strip().removesuffix(".ann").removesuffix(".txt")
        if stem not in texts:
            raise request.bad("document {} has no text file", "complete the texts folder", path, line, stem)
        codes.setdefault(stem, set()).add(code)
