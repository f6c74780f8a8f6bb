"""BRAT standoff: a .txt file and, beside it, an .ann file whose offsets count the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import field_validator, model_validator

from biobench.data.readers.base import DocumentNames, FileLine, Ids, ReaderOptions, Request, reader
from biobench.data.readers.files import read_lines, read_text
from biobench.data.readers.standoff import (
    Discontinuous,
    Mention,
    Overlap,
    RawDocument,
    Tokeniser,
    check_surface,
    finished,
    flat,
    line_units,
    units,
)
from biobench.schema.document import Document, Span
from biobench.schema.source import fail, later, one_group
from biobench.schema.tags import Mode

_BOUND = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
_NOTE = re.compile(r"(\S+) (\S+)")
_REFERENCE = re.compile(r"(\S+) (\S+) (\S+)")


class BratOptions(ReaderOptions):
    """Options of format `brat`; `files` names the .txt files, each .ann lies beside its text."""

    format: Literal["brat"]
    types: dict[str, str | None] = {}
    """Annotation type to label of the task, many to one; null drops the type."""
    other_types: Literal["refuse", "drop"] = "refuse"
    """What to do with a type that is neither in `types` nor a label, or with a mention whose note
    gives none.
    """
    label_note: str | None = later(None)
    """Where the type is not the label (a concept id): the kind of the note (`#1<tab>AnnotatorNotes
    T1<tab>DISO`) or normalisation (`N1<tab>Reference T1 UMLS:C0018787<tab>heart`) that holds it; of
    several the last wins.
    """
    label_match: str = later("(.+)")
    """Regular expression whose first group is the label inside the note, or inside RESOURCE:ID of a
    normalisation.
    """
    discontinuous: Discontinuous = "error"
    """Of fragments with more than white space between them; those without are one."""
    segment: Literal["document", "line", "annotation"] = "document"
    """What becomes a document: the file, each line that is not blank, or each annotation of
    `segment_type`. Mentions that do not lie wholly inside are dropped, and those that begin inside
    are counted as unexpressed.
    """
    segment_type: str | None = None
    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: how the text becomes tokens, of which a mention takes those inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"
    group: Literal["file", "unit"] = "file"
    """What belongs together when documents are drawn: the units of one file, or each unit alone."""
    missing_ann: Literal["error", "skip"] = "error"
    encoding_errors: Literal["strict", "replace"] = "strict"
    ids: Ids = later("name")
    """A document's id by its file's name: see `base.Ids`."""

    @model_validator(mode="after")
    def _segments(self) -> BratOptions:
        if (self.segment == "annotation") != (self.segment_type is not None):
            raise fail(
                "segment_type goes with segment: annotation",
                "name the annotation type, or leave it out",
            )
        return self

    @field_validator("label_match")
    @classmethod
    def _one_group(cls, value: str) -> str:
        return one_group(value)


@reader(BratOptions)
def read_brat(request: Request[BratOptions]) -> Iterator[Document]:
    """Whole-file standoff with nesting, discontinuous mentions, and optionally tokens and tags.

    Order: files by name; in a file, `segment: annotation` follows the lines of the .ann, whatever
    their offsets, and `segment: line` those of the text.
    """
    options = request.options
    names = DocumentNames(options.ids)
    for location in request.places():
        raw = parse_brat(location, options.missing_ann, options.encoding_errors)
        if raw is None:
            continue
        raw.id, raw.group = names.of(location.split or location.path.parent.name, raw.id)
        for document in _units(options, raw, location):
            line = location.at(int(document.origin.rpartition(":")[2]))
            yield finished(line, document, options.tokens, options.overlap, options.decode)


def parse_brat(
    location: FileLine, missing: str = "error", errors: str = "strict"
) -> RawDocument | None:
    """The text at `place` with its annotations; None where the .ann is missing and may be.

    Raises DataFormatError for a malformed line, offsets outside the text and a surface that is not
    there.
    """
    name = location.path.name.removesuffix(".txt")
    ann = location.path.with_name(name + ".ann")
    if not ann.is_file():
        if missing == "skip":
            return None
        raise location.at(None).bad(
            "has no .ann file beside it", "complete the folder, or set `reader.missing_ann: skip`"
        )
    text = read_text(location.path, errors)
    mentions: dict[str, Mention] = {}
    notes: list[tuple[str, str, str]] = []
    for number, line in read_lines(ann, errors):
        at, kind = replace(location, path=ann, line=number), line[:1]
        if kind == "T":
            mention = _bound(at, line, text)
            if mention.id in mentions:
                raise at.bad("id {} occurs twice", "repair the file", mention.id)
            mentions[mention.id] = mention
        elif kind in ("#", "N"):
            notes += [note] if (note := note_of(line.split("\t", 2))) is not None else []
        elif line.strip() and kind not in "EARM*":
            raise at.bad(
                "not an annotation line: {}", "lines begin with T, E, A, R, M, N, * or #", line
            )
    for kind, mention_id, words in notes:
        if mention_id in mentions:
            mentions[mention_id].codes.append((kind, words))
    return RawDocument(name, text, list(mentions.values()), ann)


def note_of(fields: Sequence[str]) -> tuple[str, str, str] | None:
    """(kind, mention, text) of a note's or normalisation's columns; a normalisation's text is
    RESOURCE:ID.
    """
    if fields[0].startswith("N"):
        match = _REFERENCE.fullmatch(fields[1]) if len(fields) > 1 else None
        return None if match is None else (match[1], match[2], match[3])
    match = _NOTE.fullmatch(fields[1]) if len(fields) == 3 else None
    return None if match is None else (match[1], match[2], fields[2])


def _bound(location: FileLine, line: str, text: str) -> Mention:
    fields = line.split("\t", 2)
    match = _BOUND.fullmatch(fields[1]) if len(fields) == 3 else None
    if match is None:
        raise location.bad(
            "not a text-bound line: {}", "T<n>, tab, TYPE START END, tab, text", line
        )
    pieces = [tuple(location.number(n) for n in piece.split(" ")) for piece in match[2].split(";")]
    mention = Mention(
        fields[0], match[1], tuple((a, b) for a, b in pieces), location.line or 1, fields[2]
    )
    # The format shows line ends as blanks, and editors trim the column.
    check_surface(location, text, mention.fragments, mention.surface)
    return mention


def _units(options: BratOptions, raw: RawDocument, location: FileLine) -> Iterator[Document]:
    """The file's units, their mentions in the file's order."""
    spans: list[Span] = []
    concepts: list[tuple[int, int, str]] = []
    for mention in raw.mentions:
        at = replace(location, path=raw.path, line=mention.line)
        label = _label(options, mention, at)
        if label is None:
            continue
        found = flat(at, mention.fragments, raw.text, options.discontinuous, label, mention.surface)
        spans += found
        for span in found:
            concepts += [(span.start, span.end, named) for named in mention.identifiers]
    whole = location.document(
        raw.id, raw.text, raw.group, spans=tuple(spans), concepts=tuple(concepts)
    )
    if options.segment == "document":
        yield whole if options.group == "file" else replace(whole, group=raw.id)
        return
    if options.segment == "line":
        places = [(a, b, f"{raw.id}:{number}", number) for a, b, number in line_units(raw.text)]
    else:
        segments = [m for m in raw.mentions if m.label == options.segment_type]
        places = [
            (m.start, m.end, f"{raw.id}:{m.id}", raw.text.count("\n", 0, m.start) + 1)
            for m in segments
        ]
    for unit, (*_, line) in zip(units(whole, [p[:3] for p in places]), places, strict=True):
        group = raw.group if options.group == "file" else unit.id
        yield replace(unit, group=group, origin=location.at(line).origin)


def _label(options: BratOptions, mention: Mention, location: FileLine) -> str | None:
    """The mention's label; None where it is dropped. Raises DataFormatError."""
    if mention.label == options.segment_type:
        return None
    kind = mention.label
    if options.label_note is not None:
        notes = [text for note, text in mention.codes if note == options.label_note]
        match = re.search(options.label_match, notes[-1]) if notes else None
        if match is None:
            if options.other_types == "drop":
                return None
            hint = (
                "correct `reader.label_note` and `reader.label_match`, or set "
                "`reader.other_types: drop`"
            )
            raise location.bad(
                f"no note '{options.label_note}' gives mention {{}} a label", hint, mention.id
            )
        kind = match[1]
    labels = location.request.spec.labels
    if (
        kind not in options.types
        and options.other_types == "drop"
        and isinstance(labels, list)
        and kind not in labels
    ):
        return None
    return location.mapped(kind, options.types)


class BratCodesOptions(ReaderOptions):
    """Options of format `brat_codes`: the codes of a document are notes on its mentions."""

    format: Literal["brat_codes"]
    note: str
    """Type of the note that holds the code (`#1<tab>ICD-O T3<tab>8500/3`); of several on one
    mention the last wins.
    """
    mentions: list[str] = []
    """Annotation types whose notes count; empty: all."""
    missing_ann: Literal["error", "skip"] = "error"
    encoding_errors: Literal["strict", "replace"] = "replace"


@reader(BratCodesOptions)
def read_brat_codes(request: Request[BratCodesOptions]) -> Iterator[Document]:
    """Whole texts labelled with the set of their mentions' codes; codes are opaque strings, outer
    blanks cut.

    Documents without a code are skipped. Order: files by name.
    """
    options = request.options
    for location in request.places():
        raw = parse_brat(location, options.missing_ann, options.encoding_errors)
        codes: dict[str, int] = {}
        for mention in () if raw is None else raw.mentions:
            notes = [text.strip() for kind, text in mention.codes if kind == options.note]
            if notes and notes[-1] and (not options.mentions or mention.label in options.mentions):
                codes[notes[-1]] = min(mention.end, codes.get(notes[-1], mention.end))
        if raw is not None and codes:
            yield location.document(
                raw.id, raw.text, labels=tuple(sorted(codes)), evidence=tuple(sorted(codes.items()))
            )
