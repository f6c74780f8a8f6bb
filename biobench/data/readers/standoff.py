"""What standoff formats share: raw documents with mentions, discontinuous spans, units, tokens and
tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from biobench.data.checks import edges
from biobench.data.readers.base import FileLine
from biobench.data.readers.tokens import mention_tags
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode, decode_tags, tags_to_spans

_BETWEEN_IDENTIFIERS = re.compile(r"[\s|+,;]+")
_IDENTIFIER = re.compile(r"(?!-1$)[\w.:/-]*\d[\w.:/-]*")
"""A digit, and no more than what terminologies write beside it; -1 stands for no concept."""

Fragments = tuple[tuple[int, int], ...]
Places = Sequence[tuple[int, int]]
"""Characters [start, end) of each."""
Discontinuous = Literal["error", "hull", "first", "drop", "each"]
"""What a mention in several pieces becomes: its hull (first start to last end), its first piece,
nothing, or a mention for each piece.
"""
Tokeniser = Literal["whitespace", "words", "blanks"]
"""Runs of non-space, runs of word characters and single other signs, or what stands between blanks.
"""
Overlap = Literal["error", "last", "longest", "first"]
"""Of mentions that share tokens. last: a later one overwrites tags. longest: the longer one has the
tokens. first: the first listed one has them, and a mention takes every token that it touches (else
those that lie in it).
"""


@dataclass(slots=True)
class Mention:
    """A text-bound annotation as the file has it."""

    id: str
    label: str
    fragments: Fragments
    line: int
    surface: str = ""
    codes: list[tuple[str, str]] = field(default_factory=list)
    """(note type, note text), in the file's order."""

    @property
    def start(self) -> int:
        """First character."""
        return self.fragments[0][0]

    @property
    def end(self) -> int:
        """Past the last character."""
        return self.fragments[-1][1]

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The concepts of a terminology that its codes name, in the file's order; a code that holds
        anything but identifiers is a remark and names none.
        """
        found: list[str] = []
        for _, code in self.codes:
            parts = [part for part in _BETWEEN_IDENTIFIERS.split(code) if part]
            if all(_IDENTIFIER.fullmatch(part) for part in parts):
                found += parts
        return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class RawDocument:
    """A text with its mentions, before any task's choice of labels, units and tokens."""

    id: str
    text: str
    mentions: list[Mention]
    path: Path
    line: int = 1
    group: str = ""
    """What its units belong to."""
    repeats: int = 0
    """How often it stands again in the file with the same content."""


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def check_surface(location: FileLine, text: str, fragments: Places, surface: str) -> None:
    """Raise DataFormatError where the fragments leave the text or do not hold the surface, white
    space aside.
    """
    offsets = ";".join(f"{a}-{b}" for a, b in fragments)
    hint = "offsets count characters (code points) from 0, the end is past the last"
    if any(not 0 <= a < b <= len(text) for a, b in fragments):
        cause = edges.meant(text, fragments, surface) or "check offsets and text"
        message = f"offsets {offsets} leave the text (length {len(text)})"
        raise location.bad(message, f"{hint}; {cause}")
    covered = "".join(squeezed(text[a:b]) for a, b in fragments)
    if covered != squeezed(surface) or not covered:
        cause = edges.meant(text, fragments, surface) or "is it the same text?"
        raise location.bad(f"characters {offsets} are not {{}}", f"{hint}; {cause}", surface)


def merge_fragments(fragments: Places, text: str) -> Fragments:
    """Fragments in order of position; neighbours with nothing but white space between them become
    one.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(fragments):
        if merged and not text[merged[-1][1] : start].strip():
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def flat(
    location: FileLine,
    fragments: Places,
    text: str,
    policy: Discontinuous,
    label: str,
    name: str,
) -> list[Span]:
    """What becomes of the mention of these fragments; DataFormatError with its name where the
    policy refuses it.
    """
    pieces = merge_fragments(fragments, text)
    if len(pieces) > 1 and policy == "error":
        raise location.bad("the mention is discontinuous: {}", "set `reader.discontinuous`", name)
    if len(pieces) > 1 and policy != "each":
        pieces = {"hull": ((pieces[0][0], pieces[-1][1]),), "first": pieces[:1], "drop": ()}[policy]
    return [Span(*piece, label) for piece in pieces]


_PATTERNS = {"words": r"\w+|[^\w\s]", "whitespace": r"\S+", "blanks": "[^ ]+"}


def tokenise(text: str, how: Tokeniser) -> Fragments:
    """Character offsets of tokens."""
    return tuple((m.start(), m.end()) for m in re.finditer(_PATTERNS[how], text))


def mentions_to_tags(
    spans: Sequence[Span], tokens: Places, overlap: Overlap
) -> tuple[list[str], list[Span | None]]:
    """(tags, the mention that each token's tag is of), for mentions in the file's order.

    Mentions are taken in order of start (file order among equals); under ``longest`` the longest
    first, under
    ``first`` in the file's order. ``last`` can leave an I- without its B-, ``error`` raises
    ValueError.
    """
    tags = ["O"] * len(tokens)
    owners: list[Span | None] = [None] * len(tokens)
    for span in _in_turn(spans, overlap):
        covered = _covered(span, tokens, touched=overlap == "first")
        taken = any(owners[k] is not None for k in covered)
        if taken and overlap == "error":
            raise ValueError(f"span {span.start}-{span.end} overlaps another mention")
        if taken and overlap != "last":
            continue
        for k, tag in zip(covered, mention_tags(span.label, len(covered)), strict=False):
            tags[k], owners[k] = tag, span
    return tags, owners


def _in_turn(spans: Sequence[Span], overlap: Overlap) -> list[Span]:
    """The mentions in the order in which they take tokens."""
    if overlap == "first":
        return list(spans)
    if overlap == "longest":
        return sorted(spans, key=lambda span: (span.start - span.end, span.start))
    return sorted(spans, key=lambda span: span.start)


def _covered(span: Span, tokens: Places, *, touched: bool) -> list[int]:
    """The places of the tokens that lie in the mention; of those that it touches, if wanted."""
    covered: list[int] = []
    for k, (start, end) in enumerate(tokens):
        if touched:
            inside = start < span.end and span.start < end
        else:
            inside = span.start <= start and end <= span.end
        if inside:
            covered.append(k)
    return covered


def with_tags(document: Document, how: Tokeniser, overlap: Overlap, decode: Mode) -> Document:
    """The document with tokens, tags and what its mentions (in the file's order) become on them.

    Mentions of which no token is left (they hold no whole one, or others took them all) become
    `unexpressed`. Raises ValueError for overlap ``error``.
    """
    tokens = tokenise(document.text, how)
    tags, owners = mentions_to_tags(document.spans, tokens, overlap)
    scored = {k for begin, end, _ in decode_tags(tags, decode) for k in range(begin, end)}
    scored_spans = {owner for k, owner in enumerate(owners) if k in scored}
    lost = tuple(span.label for span in sorted(set(document.spans)) if span not in scored_spans)
    spans = tags_to_spans(tags, tokens, decode)
    return replace(
        document,
        spans=spans,
        tokens=tokens,
        tags=tuple(tags),
        unexpressed=document.unexpressed + lost,
    )


def finished(
    location: FileLine,
    document: Document,
    how: Literal["none"] | Tokeniser,
    overlap: Overlap,
    decode: Mode,
) -> Document:
    """The document with its distinct mentions in order of position, or with tokens and tags (see
    `with_tags`).
    """
    if how == "none":
        return replace(document, spans=tuple(sorted(set(document.spans))))
    try:
        # In the file's order: of mentions that begin alike, the later one is the last.
        return with_tags(document, how, overlap, decode)
    except ValueError as error:
        raise location.bad(str(error), "set `reader.overlap`") from None


def units(whole: Document, places: Iterable[tuple[int, int, str]]) -> Iterator[Document]:
    """The document cut into units (start, end, id). Mentions that a unit's border cuts are dropped,
    and counted as unexpressed in the unit in which they begin.
    """
    for start, end, id in places:
        inside = tuple(
            Span(a - start, b - start, label)
            for a, b, label in whole.spans
            if a >= start and b <= end
        )
        concepts = tuple(
            (a - start, b - start, identifier)
            for a, b, identifier in whole.concepts
            if a >= start and b <= end
        )
        cut = tuple(sorted(label for a, b, label in set(whole.spans) if start <= a < end < b))
        yield replace(
            whole,
            id=id,
            text=whole.text[start:end],
            spans=inside,
            concepts=concepts,
            unexpressed=cut,
        )


def line_units(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, number from 1) of every line that holds more than white space, ends trimmed."""
    position = 0
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped:
            start = position + len(line) - len(line.lstrip())
            yield start, start + len(stripped), number
        position += len(line) + 1
