"""BRAT standoff: a .txt file and, beside it, an .ann file whose offsets count the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from biobench.data.readers._standoff import (
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
from biobench.data.readers.base import ReaderOptions, Request, at, read_lines, read_text, reader
from biobench.schema.document import Document, Span
from biobench.schema.source import later
from biobench.schema.tags import Mode
from biobench.schema.task import fail

_BOUND = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
_NOTE = re.compile(r"(\S+) (\S+)")


class BratOptions(ReaderOptions):
    """Options of format `brat`; `files` names the .txt files, each .ann lies beside its text."""

    format: Literal["brat"]
    types: dict[str, str | None] = {}
    """Annotation type to label of the task, many to one; null drops the type."""
    other_types: Literal["refuse", "drop"] = "refuse"
    """What to do with a type that is neither in `types` nor a label."""
    discontinuous: Discontinuous = "error"
    """Fragments with only white space between them are one. Else: hull (first start to last end), the first
    fragment, drop, or error."""
    segment: Literal["document", "line", "annotation"] = "document"
    """What becomes a document: the file, each line that is not blank, or each annotation of `segment_type`.
    Mentions that do not lie wholly inside are dropped."""
    segment_type: str | None = None
    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: runs of non-space, or word runs and single signs; a mention takes the tokens inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"
    group: Literal["file", "unit"] = "file"
    """What belongs together when documents are drawn: the units of one file, or each unit alone."""
    missing_ann: Literal["error", "skip"] = "error"
    encoding_errors: Literal["strict", "replace"] = "strict"
    ids: Literal["name", "split_and_name"] = later("name")
    """A document's id: its file's name, or the split before it, where each split numbers its files anew."""

    @model_validator(mode="after")
    def _segments(self) -> BratOptions:
        if (self.segment == "annotation") != (self.segment_type is not None):
            raise fail("segment_type goes with segment: annotation", "name the annotation type, or leave it out")
        return self


@reader(BratOptions)
def read_brat(request: Request) -> Iterator[Document]:
    """Whole-file standoff with nesting, discontinuous mentions, and optionally tokens and tags."""
    options = request.options
    assert isinstance(options, BratOptions)
    for split, path in request.only_splits("train", "validation", "test", "all"):
        raw = parse_brat(request, path, options.missing_ann, options.encoding_errors)
        if raw is not None:
            if options.ids == "split_and_name":
                raw.id = f"{split or path.parent.name}/{raw.id}"
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
        elif kind == "#":
            notes.append((number, line))
        elif line.strip() and kind not in "EARMN*":
            raise request.bad(
                "not an annotation line: {}", "lines begin with T, E, A, R, M, N, * or #", ann, number, line
            )
    for _, line in notes:
        fields = line.split("\t", 2)
        match = _NOTE.fullmatch(fields[1]) if len(fields) == 3 else None
        if match is not None and match[2] in mentions:
            mentions[match[2]].codes.append((match[1], fields[2]))
    return RawDocument(path.name.removesuffix(".txt"), text, list(mentions.values()), ann)


def _bound(request: Request, ann: Path, number: int, line: str, text: str | None) -> Mention:
    """text: what the offsets are held against; None: they are taken as they stand."""
    fields = line.split("\t", 2)
    match = _BOUND.fullmatch(fields[1]) if len(fields) == 3 else None
    if match is None:
        raise request.bad("not a text-bound line: {}", "T<n>, tab, TYPE START END, tab, text", ann, number, line)
    pieces = [tuple(int(n) for n in piece.split(" ")) for piece in match[2].split(";")]
    fragments = tuple((a, b) for a, b in pieces)
    surface = fields[2]
    if text is None:
        return Mention(fields[0], match[1], fragments, number, surface)
    way_out = getattr(request.options, "offsets", None) and "; codes need no offsets: `offsets: ignore` reads past it"
    if any(not 0 <= a < b <= len(text) for a, b in fragments):
        hint = f"check the pair{way_out or ''}"
        raise request.bad(f"offsets {match[2]} leave the text (length {len(text)})", hint, ann, number)
    found = " ".join(text[a:b] for a, b in fragments)
    # The format shows line ends as blanks, and editors trim the column.
    if "".join(found.split()) != "".join(surface.split()) or not found.strip():
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
        found = [m for m in raw.mentions if m.label == options.segment_type]
        found.sort(key=lambda m: m.start)
        places = [(m.start, m.end, f"{raw.id}:{m.id}", raw.text.count("\n", 0, m.start) + 1) for m in found]
    for start, end, own, line in places:
        spans = [Span(a - start, b - start, label) for _, label, (a, b) in kept if a >= start and b <= end]
        yield _make(request, options, raw, own, raw.text[start:end], spans, split, line)


def _label(request: Request, options: BratOptions, mention: Mention, path: Path) -> str | None:
    if mention.label == options.segment_type:
        return None
    if mention.label in options.types:
        label = options.types[mention.label]
        return None if label is None else request.check_label(label, path, mention.line)
    if options.other_types == "drop" and mention.label not in request.spec.labels:
        return None
    return request.check_label(mention.label, path, mention.line)


def _make(
    request: Request,
    options: BratOptions,
    raw: RawDocument,
    own: str,
    text: str,
    spans: list[Span],
    split: str,
    line: int,
) -> Document:
    origin = at(raw.path.with_suffix(".txt"), line)
    group = raw.id if options.group == "file" else own
    whole = Document(id=own, group=group, text=text, split=split, spans=tuple(sorted(set(spans))), origin=origin)
    if options.tokens == "none":
        return whole
    try:
        # In the file's order: of mentions that begin alike, the later one is the last.
        return with_tags(replace(whole, spans=tuple(spans)), options.tokens, options.overlap, options.decode)
    except ValueError as error:
        raise request.bad(f"{error}", "set `overlap`", raw.path.with_suffix(".txt"), line) from None
