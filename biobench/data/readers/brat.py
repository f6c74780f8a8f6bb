"""BRAT standoff: a .txt file and, beside it, an .ann file whose offsets count the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import field_validator, model_validator

from biobench.data.formats.standoff import (
    Discontinuous,
    Mention,
    Overlap,
    RawDocument,
    Tokeniser,
    flatten,
    line_units,
    merge_fragments,
    with_tags,
)
from biobench.data.readers.base import DocumentNames, Ids, ReaderOptions, Request, at, read_lines, read_text, reader
from biobench.schema.document import Document, Span
from biobench.schema.source import later, one_group
from biobench.schema.tags import Mode
from biobench.schema.task import fail

_BOUND = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
_NOTE = re.compile(r"(\S+) (\S+)")
_REFERENCE = re.compile(r"(\S+) (\S+) (\S+)")


class BratOptions(ReaderOptions):
    """Options of format `brat`; `files` names the .txt files, each .ann lies beside its text."""

    format: Literal["brat"]
    types: dict[str, str | None] = {}
    """Annotation type to label of the task, many to one; null drops the type."""
    other_types: Literal["refuse", "drop"] = "refuse"
    """What to do with a type that is neither in `types` nor a label, or with a mention whose note gives none."""
    label_note: str | None = later(None)
    """Where the type is not the label (a concept id): the kind of the note (`#1<tab>AnnotatorNotes T1<tab>DISO`) or
    normalisation (`N1<tab>Reference T1 UMLS:C0018787<tab>heart`) that holds it; of several the last wins."""
    label_match: str = later("(.+)")
    """Regular expression whose first group is the label inside the note, or inside RESOURCE:ID of a normalisation."""
    discontinuous: Discontinuous = "error"
    """Fragments with only white space between them are one. Else: hull (first start to last end), the first
    fragment, drop, or error."""
    segment: Literal["document", "line", "annotation"] = "document"
    """What becomes a document: the file, each line that is not blank, or each annotation of `segment_type`.
    Mentions that do not lie wholly inside are dropped, and those that begin inside are counted as unexpressed."""
    segment_type: str | None = None
    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: runs of non-space, or word runs and single signs; a mention takes the tokens inside it."""
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
            raise fail("segment_type goes with segment: annotation", "name the annotation type, or leave it out")
        return self

    @field_validator("label_match")
    @classmethod
    def _one_group(cls, value: str) -> str:
        return one_group(value)


@reader(BratOptions)
def read_brat(request: Request) -> Iterator[Document]:
    """Whole-file standoff with nesting, discontinuous mentions, and optionally tokens and tags.

    Order: files by name; in a file, `segment: annotation` follows the lines of the .ann, whatever their offsets,
    and `segment: line` those of the text.
    """
    options = request.options
    assert isinstance(options, BratOptions)
    names = DocumentNames(options.ids)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        raw = parse_brat(request, path, options.missing_ann, options.encoding_errors)
        if raw is not None:
            raw.id, raw.group = names.of(split or path.parent.name, raw.id)
            yield from _units(request, options, raw, split)


def parse_brat(
    request: Request, path: Path, missing: str = "error", errors: str = "strict", *, placed: bool = True
) -> RawDocument | None:
    """One text with its annotations; None where the .ann is missing and may be.

    placed: offsets are needed, so they must be right. Raises DataFormatError for a malformed line and, where placed,
    for offsets outside the text or a surface that is not there.
    """
    ann = path.with_name(path.name.removesuffix(".txt") + ".ann")
    if not ann.is_file():
        if missing == "skip":
            return None
        raise request.bad("has no .ann file beside it", "complete the folder, or set `missing_ann: skip`", path)
    text = read_text(request, path, errors)
    mentions: dict[str, Mention] = {}
    notes: list[tuple[int, str]] = []
    for number, line in read_lines(request, ann, errors):
        kind = line[:1]
        if kind == "T":
            mention = _bound(request, ann, number, line, text if placed else None)
            if mention.id in mentions:
                raise request.bad("id {} stands twice", "repair the file", ann, number, mention.id)
            mentions[mention.id] = mention
        elif kind in ("#", "N"):
            notes.append((number, line))
        elif line.strip() and kind not in "EARM*":
            raise request.bad(
                "not an annotation line: {}", "lines begin with T, E, A, R, M, N, * or #", ann, number, line
            )
    for _, line in notes:
        fields = line.split("\t", 2)
        note = note_of(fields)
        if note is not None and note[1] in mentions:
            mentions[note[1]].codes.append((note[0], note[2]))
    return RawDocument(path.name.removesuffix(".txt"), text, list(mentions.values()), ann)


def note_of(fields: Sequence[str]) -> tuple[str, str, str] | None:
    """(kind, mention, text) of a note's or normalisation's columns; a normalisation's text is RESOURCE:ID."""
    if fields[0].startswith("N"):
        match = _REFERENCE.fullmatch(fields[1]) if len(fields) > 1 else None
        return None if match is None else (match[1], match[2], match[3])
    match = _NOTE.fullmatch(fields[1]) if len(fields) == 3 else None
    return None if match is None else (match[1], match[2], fields[2])


def _bound(request: Request, ann: Path, number: int, line: str, text: str | None) -> Mention:
    """text: what the offsets are held against; None: they are taken as they stand."""
    fields = line.split("\t", 2)
    match = _BOUND.fullmatch(fields[1]) if len(fields) == 3 else None
    if match is None:
        raise request.bad("not a text-bound line: {}", "T<n>, tab, TYPE START END, tab, text", ann, number, line)
    pieces = [tuple(request.whole_number(n, ann, number) for n in piece.split(" ")) for piece in match[2].split(";")]
    fragments = tuple((a, b) for a, b in pieces)
    surface = fields[2]
    if text is None:
        return Mention(fields[0], match[1], fragments, number, surface)
    way_out = getattr(request.options, "offsets", None) and "; codes need no offsets: `offsets: ignore` reads past it"
    if any(not 0 <= a < b <= len(text) for a, b in fragments):
        hint = f"check the pair{way_out or ''}"
        raise request.bad(f"offsets {match[2]} leave the text (length {len(text)})", hint, ann, number)
    covered = " ".join(text[a:b] for a, b in fragments)
    # The format shows line ends as blanks, and editors trim the column.
    if "".join(covered.split()) != "".join(surface.split()) or not covered.strip():
        hint = f"the text and its .ann do not fit{way_out or ''}"
        raise request.bad(f"characters {match[2]} are not {{}}", hint, ann, number, surface)
    return Mention(fields[0], match[1], fragments, number, surface)


def _units(request: Request, options: BratOptions, raw: RawDocument, split: str) -> Iterator[Document]:
    kept: list[tuple[Mention, str, tuple[int, int]]] = []
    for mention in raw.mentions:
        label = _label(request, options, mention, raw.path)
        if label is None:
            continue
        try:
            place = flatten(merge_fragments(mention.fragments, raw.text), options.discontinuous)
        except ValueError as error:
            raise request.bad(
                f"{error}: {{}}", "set `discontinuous`", raw.path, mention.line, mention.surface
            ) from None
        if place is not None:
            kept.append((mention, label, place))
    if options.segment == "document":
        spans = [Span(*place, label) for _, label, place in kept]
        yield _make(request, options, raw, raw.id, raw.text, spans, split, raw.line)
        return
    if options.segment == "line":
        places = [(a, b, f"{raw.id}:{number}", number) for a, b, number in line_units(raw.text)]
    else:
        segments = [m for m in raw.mentions if m.label == options.segment_type]
        places = [(m.start, m.end, f"{raw.id}:{m.id}", raw.text.count("\n", 0, m.start) + 1) for m in segments]
    for start, end, unit_id, line in places:
        spans = [Span(a - start, b - start, label) for _, label, (a, b) in kept if a >= start and b <= end]
        cut = tuple(label for label, a, b in {(la, *place) for _, la, place in kept} if start <= a < end < b)
        yield _make(request, options, raw, unit_id, raw.text[start:end], spans, split, line, cut)


def _label(request: Request, options: BratOptions, mention: Mention, path: Path) -> str | None:
    if mention.label == options.segment_type:
        return None
    kind = mention.label
    if options.label_note is not None:
        notes = [text for note, text in mention.codes if note == options.label_note]
        match = re.search(options.label_match, notes[-1]) if notes else None
        if match is None:
            if options.other_types == "drop":
                return None
            hint = "correct `label_note` and `label_match`, or set `other_types: drop`"
            what = f"no note '{options.label_note}' gives mention {{}} a label"
            raise request.bad(what, hint, path, mention.line, mention.id)
        kind = match[1]
    if kind in options.types:
        label = options.types[kind]
        return None if label is None else request.check_label(label, path, mention.line)
    labels = request.spec.labels
    if options.other_types == "drop" and isinstance(labels, list) and kind not in labels:
        return None
    return request.check_label(kind, path, mention.line)


def _make(
    request: Request,
    options: BratOptions,
    raw: RawDocument,
    unit_id: str,
    text: str,
    spans: list[Span],
    split: str,
    line: int,
    cut: tuple[str, ...] = (),
) -> Document:
    """cut: labels of mentions that the unit's border cuts."""
    origin = at(raw.path.with_suffix(".txt"), line)
    group = raw.group if options.group == "file" else unit_id
    whole = Document(
        id=unit_id,
        group=group,
        text=text,
        split=split,
        spans=tuple(spans),
        origin=origin,
        unexpressed=tuple(sorted(cut)),
    )
    if options.tokens == "none":
        return replace(whole, spans=tuple(sorted(set(spans))))
    try:
        # In the file's order: of mentions that begin alike, the later one is the last.
        return with_tags(whole, options.tokens, options.overlap, options.decode)
    except ValueError as error:
        raise request.bad(f"{error}", "set `overlap`", raw.path.with_suffix(".txt"), line) from None
