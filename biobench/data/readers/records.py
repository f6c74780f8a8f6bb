"""Record files with masks (PhysioNet deidentification notes): id.text and its masked version
id.res.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from biobench.data.readers.base import FileLine, ReaderOptions, Request, reader
from biobench.data.readers.files import read_lines
from biobench.data.readers.tokens import mention_tags, tagged
from biobench.schema.document import Document
from biobench.schema.tags import Mode, Tagging

_RECORD = re.compile(
    r"^START_OF_RECORD=(\d+)\|{4}(\d+)\|{4}[^\S\n]*\n(.*?)^\|{4}END_OF_RECORD[^\S\n]*\n",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"^START_OF_RECORD=\d", re.MULTILINE)
_MASK = re.compile(r"\[\*\*(.*?)\*\*\]")
_AGREE = "the pair must agree"
_OUTSIDE = "text outside a record, or a record inside another or without its end"
_REPAIR = "repair the markers, or the file is cut off"
_RULES = {
    "name": "name",
    "e-mail address": "other",
    "telephone/fax|pager number": "phone_nb",
    "age over": "age",
    "location|hospital|street address|unit number": "location",
    r"date range|month/year|\A(\d+|\d{1,2}-\d{1,2}|\d{4}-\d{2}-\d{2})\Z": "date",
    r"\A\Z|company": "other",
}
"""Wording of a mask, in lower case, to its type."""


class RecordsOptions(ReaderOptions):
    """Options of format `records`: `files.texts` has the notes, `files.labels` the same notes with
    masks.
    """

    format: Literal["records"]
    adjacent: Literal["reference", "joined"] = "reference"
    """Masks with nothing (or one blank) between them. reference: as the reference code aligns them,
    the first takes the text up to the next match of the following plain piece, which is empty or a
    blank. joined: masks with only white space between them are one mention with the first mask's
    label.
    """
    decode: Mode = "lenient"
    encoding_errors: Literal["strict", "replace"] = "replace"


@dataclass(frozen=True, slots=True)
class _Record:
    patient: str
    id: str
    """``<patient>-<note>``."""
    body: str
    location: FileLine


@reader(RecordsOptions)
def read_records(request: Request[RecordsOptions]) -> Iterator[Document]:
    """Notes as whitespace tokens with tags for what the masks hide; group is the patient.

    Masks are classed by their wording. Line ends count as blanks. The text is rebuilt from the
    tokens. Order: that of the notes in the texts; their masked versions may stand in any.
    """
    options = request.options
    texts, labels = request.texts_and_labels()
    records = list(_records(options, texts))
    masked = {record.id: record for record in _records(options, labels)}
    pair = labels[0].at(None)
    pair.require(
        len(masked) == len(records),
        f"holds {len(masked)} records, the texts hold {len(records)}",
        _AGREE,
    )
    for record in records:
        pair.require(record.id in masked, "record {} is missing", _AGREE, record.id)
        counterpart = masked[record.id]
        words: list[str] = []
        tags: list[str] = []
        for piece, label in _aligned(options, record.body, counterpart):
            piece_words = piece.split()
            words += piece_words
            tags += mention_tags(label, len(piece_words))
        yield counterpart.location.document(
            record.id,
            group=record.patient,
            **tagged(words, tags, Tagging(decode=options.decode)),
        )


def _records(options: RecordsOptions, files: list[FileLine]) -> Iterator[_Record]:
    """The records of the files. Raises DataFormatError for text that is in none."""
    for start in files:
        file_lines = read_lines(start, options.encoding_errors)
        text = "".join(f"{line}\n" for _, line in file_lines)
        end, number = 0, 1
        for match in _RECORD.finditer(text):
            number += text.count("\n", end, match.start())
            location = start.at(number)
            patient, note, content = match.groups()
            outside = text[end : match.start()].strip()
            location.require(not outside and not _MARKER.search(content), _OUTSIDE, _REPAIR)
            *lines, _ = content.split("\n")
            yield _Record(
                patient=patient,
                id=f"{patient}-{note}",
                body=" ".join(lines),
                location=location,
            )
            number += match[0].count("\n")
            end = match.end()
        start.at(number).require(not text[end:].strip(), _OUTSIDE, _REPAIR)


def _aligned(
    options: RecordsOptions, body: str, counterpart: _Record
) -> Iterator[tuple[str, str | None]]:
    """(piece, label or None) in reading order: plain pieces as the masked note has them, hidden
    ones from the text.
    """
    location, joined = counterpart.location, options.adjacent == "joined"
    begin, *pieces = _MASK.split(counterpart.body)
    location.require(body.startswith(begin), "the masked note does not begin like its text", _AGREE)
    yield begin, None
    position = len(begin)
    masks = list(zip(pieces[::2], pieces[1::2], strict=True))
    if joined:
        masks = _joined(masks)
    for mask, plain in masks:
        label = location.label(mask_label(mask, location))
        # Nothing follows: rightly at the end of the note, wrongly (as in the reference) before
        # another mask.
        end = len(body)
        if plain:
            end = body.find(plain, position)
        if end < 0:
            location.require(
                position == len(body) and not joined,
                "the masked note departs from its text",
                _AGREE,
            )
            end = len(body)
        yield body[position:end], label
        yield plain, None
        position = min(end + len(plain), len(body))


def _joined(masks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Masks, each with the plain text after it, where those with only white space between them are
    the first one.
    """
    result: list[tuple[str, str]] = []
    for mask, plain in masks:
        if result and not result[-1][1]:
            mask, _ = result.pop()
        if not plain.strip():
            plain = ""
        result.append((mask, plain))
    return result


def mask_label(mask: str, location: FileLine) -> str:
    """The type that a mask's wording stands for; the first of `_RULES` that fits wins. Raises
    DataFormatError.
    """
    text = mask.strip().lower()
    for wording, label in _RULES.items():
        if re.search(wording, text):
            return label
    raise location.bad("mask {} has no type", "a rule for its wording is missing", mask)
