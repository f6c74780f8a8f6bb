"""BRAT standoff: a .txt file and, beside it, an .ann file whose offsets count the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import model_validator

from biobench.data.readers.base import (
    DocumentNames,
    FileLine,
    Ids,
    LabelMap,
    ReaderOptions,
    Request,
    reader,
)
from biobench.data.readers.files import read_lines, read_text
from biobench.data.readers.standoff import (
    Discontinuous,
    Mention,
    Named,
    RawDocument,
    TokenisedOptions,
    check_surface,
    finished,
    flat,
    lines_of,
    unit,
)
from biobench.schema.document import Document, Span
from biobench.schema.source import OneGroup, fail, later

_BOUND = re.compile(r"(T[^\t]*)\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)")
_NOTE = re.compile(r"#[^\t]*\t(\S+) (\S+)\t(.*)")
_REFERENCE = re.compile(r"N[^\t]*\t(\S+) (\S+) (\S+)(?:\t.*)?")
"""A normalisation's text is RESOURCE:ID."""
_UNREAD = re.compile(r"([EARM*])[^\t]*\t([^\s:]*).*|[EARM*].*|\s*", re.DOTALL)
"""Events, attributes, relations, modifications and equivalences; and blank lines."""
_UNREAD_KINDS = {"E": "events", "A": "attributes", "M": "attributes", "R": "relations"}


class BratOptions(TokenisedOptions):
    """Options of format `brat`; `files` names the .txt files, each .ann lies beside its text."""

    format: Literal["brat"]
    types: LabelMap = {}
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
    label_match: OneGroup = later("(.+)")
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
        id, group = names.of(location.split or location.path.parent.name, raw.id)
        file_document = _file_document(options, raw, id, group)
        for start, end, unit_id in _units(options, raw, id):
            line = location.at(raw.text.count("\n", 0, start) + 1)
            document = unit(file_document, start, end, unit_id)
            if options.group == "unit":
                document = replace(document, group=unit_id)
            yield finished(line, replace(document, origin=line.origin), options)


def parse_brat(
    location: FileLine, missing: str = "error", errors: str = "strict"
) -> RawDocument | None:
    """The text at `location` with its annotations; None where the .ann is missing and may be.

    Raises DataFormatError for a malformed line, offsets outside the text and a surface that is not
    there.
    """
    name = location.path.name.removesuffix(".txt")
    ann = location.path.with_name(name + ".ann")
    if missing == "skip" and not ann.is_file():
        return None
    location.at(None).require(
        ann.is_file(),
        "has no .ann file beside it",
        "complete the folder, or set `reader.missing_ann: skip`",
    )
    text = read_text(location, errors)
    mentions: dict[str, Mention] = {}
    notes: list[str] = []
    unread: list[str] = []
    for number, line in read_lines(replace(location, path=ann), errors):
        at = replace(location, path=ann, line=number)
        if line.startswith("T"):
            mention = _bound(at, line, text)
            at.require(
                mention.id not in mentions, "id {} occurs twice", "repair the file", mention.id
            )
            mentions[mention.id] = mention
        elif line.startswith(("#", "N")):
            notes.append(line)
        else:
            other = _UNREAD.fullmatch(line)
            if other is None:
                hint = "lines begin with T, E, A, R, M, N, * or #"
                raise at.bad("not an annotation line: {}", hint, line)
            letter, type = other.groups()
            if letter in _UNREAD_KINDS:
                unread.append(f"{_UNREAD_KINDS[letter]} ({type})")
    _add_codes(mentions, notes)
    return RawDocument(name, text, list(mentions.values()), location, unread=tuple(unread))


def _add_codes(mentions: dict[str, Mention], lines: list[str]) -> None:
    """Give the mentions what notes and normalisations say of them; other lines say nothing."""
    for line in lines:
        note = _NOTE.fullmatch(line) or _REFERENCE.fullmatch(line)
        if note is None:
            continue
        kind, mention_id, words = note.groups()
        if mention_id in mentions:
            mentions[mention_id].codes.append((kind, words))


def _bound(location: FileLine, line: str, text: str) -> Mention:
    match = _BOUND.fullmatch(line)
    if match is None:
        raise location.bad(
            "not a text-bound line: {}", "T<n>, tab, TYPE START END, tab, text", line
        )
    id, label, offsets, surface = match.groups()
    numbers = list(map(location.number, re.split("[ ;]", offsets)))
    fragments = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    # The format shows line ends as blanks, and editors trim the column.
    check_surface(location, text, fragments, surface)
    return Mention(id, label, fragments, location, surface)


def _file_document(options: BratOptions, raw: RawDocument, id: str, group: str) -> Document:
    """The file as one document, its mentions in the file's order."""
    spans: list[Span] = []
    concepts: list[Named] = []
    for mention in raw.mentions:
        label = _label(options, mention)
        if label is None:
            continue
        for span in flat(mention, raw.text, options.discontinuous, label):
            spans.append(span)
            concepts += mention.concepts(span.start, span.end)
    return raw.location.document(id, raw.text, group, spans=tuple(spans), concepts=tuple(concepts))


def _units(options: BratOptions, raw: RawDocument, id: str) -> Iterator[tuple[int, int, str]]:
    """(start, end, id) of what becomes a document."""
    if options.segment == "document":
        yield 0, len(raw.text), id
    elif options.segment == "line":
        for start, end, number in lines_of(raw.text):
            yield start, end, f"{id}:{number}"
    else:
        for mention in raw.mentions:
            if mention.label == options.segment_type:
                yield mention.start, mention.end, f"{id}:{mention.id}"


def _label(options: BratOptions, mention: Mention) -> str | None:
    """The mention's label; None where it is dropped. Raises DataFormatError."""
    kind: str | None = mention.label
    if kind == options.segment_type:
        return None
    drops = options.other_types == "drop"
    if options.label_note is not None:
        kind = _noted(options.label_match, mention.note(options.label_note))
        mention.location.require(
            kind is not None or drops,
            f"no note '{options.label_note}' gives mention {{}} a label",
            "correct `reader.label_note` and `label_match`, or set `other_types: drop`",
            mention.id,
        )
    if kind is None:
        return None
    labels = mention.location.request.known_labels
    if drops and labels is not None and kind not in {*options.types, *labels}:
        return None
    return mention.location.mapped(kind, options.types)


def _noted(pattern: str, note: str | None) -> str | None:
    """The label inside a note; None where it has none."""
    if note is None:
        return None
    match = re.search(pattern, note)
    return match and match[1]


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
        if raw is None:
            continue
        evidence = sorted(_first_ends(options, raw.mentions).items())
        if evidence:
            yield location.document(
                raw.id,
                raw.text,
                labels=tuple(code for code, _ in evidence),
                evidence=tuple(evidence),
            )


def _first_ends(options: BratCodesOptions, mentions: list[Mention]) -> dict[str, int]:
    """Code to the first character past a mention of it."""
    ends: dict[str, int] = {}
    for mention in mentions:
        if options.mentions and mention.label not in options.mentions:
            continue
        code = (mention.note(options.note) or "").strip()
        if code:
            earlier_end = ends.get(code, mention.end)
            ends[code] = min(mention.end, earlier_end)
    return ends
