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
    note: str
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
    records = [record for location in texts for record in _records(options, location)]
    masked = {(r.patient, r.note): r for location in labels for r in _records(options, location)}
    pair, hint = labels[0].at(None), "the pair must agree"
    if len(masked) != len(records):
        raise pair.bad(f"holds {len(masked)} records, the texts hold {len(records)}", hint)
    for record in records:
        counterpart = masked.get((record.patient, record.note))
        if counterpart is None:
            raise pair.bad("record {} is missing", hint, f"{record.patient}/{record.note}")
        words: list[str] = []
        tags: list[str] = []
        for piece, label in _aligned(options, record.body, counterpart):
            hidden = piece.split()
            words += hidden
            if label is None:
                tags += ["O"] * len(hidden)
            elif hidden:
                tags += mention_tags(label, len(hidden))
        content = tagged(words, tags, Tagging(decode=options.decode))
        yield counterpart.location.document(
            f"{record.patient}-{record.note}", group=record.patient, **content
        )


def _records(options: RecordsOptions, start: FileLine) -> Iterator[_Record]:
    text = "".join(f"{line}\n" for _, line in read_lines(start.path, options.encoding_errors))
    at, location = 0, start
    for match in _RECORD.finditer(text):
        location = location.at((location.line or 1) + text.count("\n", at, match.start()))
        if text[at : match.start()].strip() or _MARKER.search(match[3]):
            raise location.bad(
                "text outside a record, or a record inside another", "repair the markers"
            )
        yield _Record(match[1], match[2], " ".join(match[3].split("\n")[:-1]), location)
        location, at = location.at((location.line or 1) + match[0].count("\n")), match.end()
    if text[at:].strip():
        raise location.bad(
            "text outside a record, or a record without its end",
            "repair the markers, or the file is cut off",
        )


def _aligned(
    options: RecordsOptions, body: str, counterpart: _Record
) -> Iterator[tuple[str, str | None]]:
    """(piece, label or None) in reading order: plain pieces as the masked note has them, hidden
    ones from the text.
    """
    joined, hint = options.adjacent == "joined", "the pair must agree"
    pieces = _MASK.split(counterpart.body)
    plain, masks = pieces[0::2], pieces[1::2]
    pointer = len(plain[0])
    if not body.startswith(plain[0]):
        raise counterpart.location.bad("the masked note does not begin like its text", hint)
    yield plain[0], None
    i = 0
    while i < len(masks):
        label = counterpart.location.label(mask_label(masks[i], counterpart.location))
        if joined:
            while i + 1 < len(masks) and not plain[i + 1].strip():
                i += 1
        plain_text = plain[i + 1]
        # Nothing follows: rightly at the end of the note, wrongly (as in the reference) before
        # another mask.
        end = len(body)
        if plain_text and not (joined and i + 1 == len(masks) and not plain_text.strip()):
            end = body.find(plain_text, pointer)
            if end < 0:
                if joined or pointer < len(body):
                    raise counterpart.location.bad("the masked note departs from its text", hint)
                end = len(body)
        yield body[pointer:end], label
        yield plain_text, None
        pointer = min(end + len(plain_text), len(body))
        i += 1


def mask_label(mask: str, location: FileLine) -> str:
    """The type that a mask's wording stands for; the first of `_RULES` that fits wins. Raises
    DataFormatError.
    """
    text = mask.strip().lower()
    for wording, label in _RULES.items():
        if re.search(wording, text):
            return label
    raise location.bad("mask {} has no type", "a rule for its wording is missing", mask)
