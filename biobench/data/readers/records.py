"""Record files with masks (PhysioNet deidentification notes): id.text and its masked twin id.res."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from biobench.data.readers.base import ReaderOptions, Request, at, read_lines, reader
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.tags import Mode, tags_to_spans

_START = re.compile(r"START_OF_RECORD=(\d+)\|\|\|\|(\d+)\|\|\|\|\s*")
_END = re.compile(r"\|\|\|\|END_OF_RECORD\s*")
_MASK = re.compile(r"\[\*\*(.*?)\*\*\]")
_DATE = re.compile(r"\d+|\d{1,2}-\d{1,2}|\d{4}-\d{2}-\d{2}")


class RecordsOptions(ReaderOptions):
    """Options of format `records`: `files.texts` has the notes, `files.labels` the same notes with masks."""

    format: Literal["records"]
    adjacent: Literal["reference", "joined"] = "reference"
    """Masks with nothing (or one blank) between them. reference: as the reference code aligns them, the first
    takes the text up to the next match of the following plain piece, which is empty or a blank. joined: masks with only
    white space between them are one mention with the first mask's label."""
    decode: Mode = "lenient"
    encoding_errors: Literal["strict", "replace"] = "replace"


@dataclass(frozen=True, slots=True)
class _Record:
    patient: str
    note: str
    body: str
    line: int


@reader(RecordsOptions)
def read_records(request: Request) -> Iterator[Document]:
    """Notes as whitespace tokens with tags for what the masks hide; group is the patient.

    Masks are classed by their wording. Line ends count as blanks. The text is rebuilt from the tokens. Order: that of
    the notes in the texts; their masked twins may stand in any.
    """
    options = request.options
    assert isinstance(options, RecordsOptions)
    if set(request.files) != {"texts", "labels"}:
        raise DataFormatError("format 'records' needs files.texts and files.labels", hint="name both")
    texts = [r for path in request.files["texts"] for r in _records(request, options, path)]
    path = request.files["labels"][0]
    masked = {(r.patient, r.note): r for p in request.files["labels"] for r in _records(request, options, p)}
    if len(masked) != len(texts):
        raise request.bad(f"holds {len(masked)} records, the texts hold {len(texts)}", "the pair must agree", path)
    for record in texts:
        twin = masked.get((record.patient, record.note))
        if twin is None:
            raise request.bad(
                "record {} is missing", "the pair must agree", path, None, f"{record.patient}/{record.note}"
            )
        yield _document(request, options, record, twin, path)


def _records(request: Request, options: RecordsOptions, path: Path) -> Iterator[_Record]:
    open_at: tuple[str, str, int] | None = None
    body: list[str] = []
    for number, line in read_lines(request, path, options.encoding_errors):
        start = _START.fullmatch(line)
        if start is not None:
            if open_at is not None:
                raise request.bad("a record begins inside another", "repair the markers", path, number)
            open_at, body = (start[1], start[2], number), []
        elif _END.fullmatch(line):
            if open_at is None:
                raise request.bad("a record ends that did not begin", "repair the markers", path, number)
            yield _Record(open_at[0], open_at[1], " ".join(body), open_at[2])
            open_at = None
        elif open_at is not None:
            body.append(line)
        elif line.strip():
            raise request.bad("text outside a record: {}", "repair the markers", path, number, line)
    if open_at is not None:
        raise request.bad("the record has no end", "the file is cut off", path, open_at[2])


def _document(request: Request, options: RecordsOptions, record: _Record, twin: _Record, path: Path) -> Document:
    words: list[str] = []
    tags: list[str] = []
    for piece, label in _aligned(request, options, record, twin, path):
        for n, word in enumerate(piece.split()):
            words.append(word)
            tags.append("O" if label is None else f"{'B' if n == 0 else 'I'}-{label}")
    tokens: list[tuple[int, int]] = []
    position = 0
    for word in words:
        tokens.append((position, position + len(word)))
        position += len(word) + 1
    document_id = f"{record.patient}-{record.note}"
    return Document(
        id=document_id,
        group=record.patient,
        text=" ".join(words),
        split="",
        spans=tags_to_spans(tags, tokens, options.decode),
        tokens=tuple(tokens),
        tags=tuple(tags),
        origin=at(path, twin.line),
    )


def _aligned(
    request: Request, options: RecordsOptions, record: _Record, twin: _Record, path: Path
) -> Iterator[tuple[str, str | None]]:
    """(piece, label or None) in reading order: plain pieces as the masked note has them, hidden ones from the text."""
    parts = _MASK.split(twin.body)
    plain, masks = parts[0::2], parts[1::2]
    pointer = len(plain[0])
    if not record.body.startswith(plain[0]):
        raise request.bad("the masked note does not begin like its text", "the pair must agree", path, twin.line)
    yield plain[0], None
    i = 0
    while i < len(masks):
        label = request.check_label(mask_label(request, masks[i], path, twin.line), path, twin.line)
        if options.adjacent == "joined":
            while i + 1 < len(masks) and not plain[i + 1].strip():
                i += 1
        after = plain[i + 1]
        ends = i + 1 == len(masks) and options.adjacent == "joined" and not after.strip()
        if not after or ends:
            # Nothing follows: rightly at the end of the note, wrongly (as in the reference) before another mask.
            end = len(record.body)
        else:
            end = record.body.find(after, pointer)
            if end < 0:
                if options.adjacent == "joined" or pointer < len(record.body):
                    raise request.bad("the masked note departs from its text", "the pair must agree", path, twin.line)
                end = len(record.body)
        yield record.body[pointer:end], label
        yield after, None
        pointer = min(end + len(after), len(record.body))
        i += 1


def mask_label(request: Request, mask: str, path: Path, line: int) -> str:
    """The type that a mask's wording stands for; the first rule that fits wins. Raises DataFormatError."""
    text = mask.strip().lower()
    if "name" in text:
        return "name"
    if "e-mail address" in text:
        return "other"
    if "telephone/fax" in text or "pager number" in text:
        return "phone_nb"
    if "age over" in text:
        return "age"
    if "location" in text or any(w in text for w in ("hospital", "street address", "unit number")):
        return "location"
    if _DATE.fullmatch(text) or "date range" in text or "month/year" in text:
        return "date"
    if not text or "company" in text:
        return "other"
    raise request.bad("mask {} has no type", "a rule for its wording is missing", path, line, mask)
