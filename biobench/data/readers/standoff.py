"""What standoff formats share: raw documents with mentions, discontinuous spans, units, tokens and
tags.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from operator import itemgetter
from typing import Literal

from biobench.data.checks import edges
from biobench.data.readers.base import FileLine, ReaderOptions
from biobench.data.readers.tokens import mention_tags
from biobench.schema.document import Document, Span
from biobench.schema.tags import Mode, decode_tags, tags_to_spans

_BETWEEN_IDENTIFIERS = re.compile(r"[\s|+,;]+")
_IDENTIFIER = re.compile(r"(?!-1$)[\w.:/-]*\d[\w.:/-]*")
"""A digit, and no more than what terminologies write beside it; -1 stands for no concept."""

Fragments = tuple[tuple[int, int], ...]
Named = tuple[int, int, str]
"""Characters [start, end), and a label or an identifier."""
Places = Sequence[tuple[int, int]]
"""Characters [start, end) of each."""
Discontinuous = Literal["error", "hull", "drop", "each"]
"""What a mention in several pieces becomes: its hull (first start to last end), nothing, or one for
each piece.
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
    """Empty where the format gives it none."""
    label: str
    fragments: Fragments
    location: FileLine
    surface: str
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

    def note(self, kind: str) -> str | None:
        """The text of the last note of this type; None where there is none."""
        return dict(self.codes).get(kind)

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The concepts of a terminology that its codes name, in the file's order; a code that holds
        anything but identifiers is a remark and names none.
        """
        found: list[str] = []
        for _, code in self.codes:
            words = list(filter(None, _BETWEEN_IDENTIFIERS.split(code)))
            if all(map(_IDENTIFIER.fullmatch, words)):
                found += words
        return tuple(dict.fromkeys(found))

    def concepts(self, start: int, end: int) -> list[Named]:
        """Its identifiers, at characters [start, end)."""
        return [(start, end, identifier) for identifier in self.identifiers]


@dataclass(slots=True)
class RawDocument:
    """A text with its mentions, before any task's choice of labels, units and tokens."""

    id: str
    text: str
    mentions: list[Mention]
    location: FileLine
    repeats: int = 0
    """How often it stands again in the file with the same content."""
    unread: tuple[str, ...] = ()
    """What its annotations hold beside mentions: `relations (Cause)`, one an annotation."""


class TokenisedOptions(ReaderOptions):
    """What readers share that can make tokens and tags of mentions by offsets."""

    tokens: Literal["none"] | Tokeniser = "none"
    """Token formats: how the text becomes tokens, of which a mention takes those inside it."""
    overlap: Overlap = "error"
    decode: Mode = "strict"


def squeezed(text: str) -> str:
    """The text without white space."""
    return "".join(text.split())


def check_surface(location: FileLine, text: str, fragments: Places, surface: str) -> None:
    """Raise DataFormatError where the fragments leave the text or do not hold the surface, white
    space aside.
    """
    offsets = ";".join(f"{start}-{end}" for start, end in fragments)
    is_inside = all(0 <= start < end <= len(text) for start, end in fragments)
    message = f"characters {offsets} are not {{}}"
    advice = "is it the same text?"
    if not is_inside:
        message = f"offsets {offsets} leave the text (length {len(text)})"
        advice = "check offsets and text"
    elif _holds(text, fragments, surface):
        return
    advice = edges.meant(text, fragments, surface) or advice
    raise location.bad(
        message,
        f"offsets count characters (code points) from 0, the end is past the last; {advice}",
        surface,
    )


def _holds(text: str, fragments: Places, surface: str) -> bool:
    """Whether the fragments hold the surface, white space aside, and anything at all."""
    pieces = [text[start:end] for start, end in fragments]
    covered = squeezed("".join(pieces))
    return covered != "" and covered == squeezed(surface)


def merge_fragments(fragments: Places, text: str) -> Fragments:
    """Fragments in order of position; neighbours with nothing but white space between them become
    one.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(fragments):
        # Of nothing but white space between the two, the earlier one goes on.
        if merged and not text[merged[-1][1] : start].strip():
            start, earlier_end = merged.pop()
            end = max(end, earlier_end)
        merged.append((start, end))
    return tuple(merged)


def flat(mention: Mention, text: str, policy: Discontinuous, label: str) -> list[Span]:
    """What becomes of the mention with this label. Raises DataFormatError where the policy refuses
    it.
    """
    pieces = merge_fragments(mention.fragments, text)
    (start, end), *others = pieces
    if not others:
        return [Span(start, end, label)]
    if policy == "error":
        raise mention.location.bad(
            "the mention is discontinuous: {}", "set `reader.discontinuous`", mention.surface
        )
    if policy == "drop":
        return []
    if policy == "hull":
        _, end = others[-1]
        return [Span(start, end, label)]
    return [Span(start, end, label) for start, end in pieces]


_PATTERNS = {"words": r"\w+|[^\w\s]", "whitespace": r"\S+", "blanks": "[^ ]+"}


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
    covered_by = _tokens_inside
    if overlap == "first":
        covered_by = _tokens_touched
    for span in _in_turn(spans, overlap):
        covered = covered_by(span, tokens)
        taken = any(owners[covered])
        if taken and overlap == "error":
            raise ValueError(f"span {span.start}-{span.end} overlaps another mention")
        if not taken or overlap == "last":
            size = len(tags[covered])
            tags[covered] = mention_tags(span.label, size)
            owners[covered] = [span] * size
    return tags, owners


def _tokens_inside(span: Span, tokens: Places) -> slice:
    """The tokens that lie in the mention."""
    begin = bisect_left(tokens, span.start, key=itemgetter(0))
    end = bisect_right(tokens, span.end, key=itemgetter(1))
    return slice(begin, end)


def _tokens_touched(span: Span, tokens: Places) -> slice:
    """The tokens that share a character with the mention."""
    begin = bisect_right(tokens, span.start, key=itemgetter(1))
    end = bisect_left(tokens, span.end, key=itemgetter(0))
    return slice(begin, end)


def _in_turn(spans: Sequence[Span], overlap: Overlap) -> list[Span]:
    """The mentions in the order in which they take tokens."""
    if overlap == "first":
        return list(spans)
    if overlap == "longest":
        return sorted(spans, key=lambda span: (span.start - span.end, span.start))
    return sorted(spans, key=lambda span: span.start)


def with_tags(document: Document, tokeniser: Tokeniser, overlap: Overlap, decode: Mode) -> Document:
    """The document with tokens, tags and what its mentions (in the file's order) become on them.

    Mentions of which no token is left (they hold no whole one, or others took them all) become
    `unexpressed`. Raises ValueError for overlap ``error``.
    """
    matches = re.finditer(_PATTERNS[tokeniser], document.text)
    tokens = tuple(match.span() for match in matches)
    tags, owners = mentions_to_tags(document.spans, tokens, overlap)
    scored: set[Span | None] = set()
    for begin, end, _ in decode_tags(tags, decode):
        scored.update(owners[begin:end])
    lost = [span.label for span in sorted(set(document.spans)) if span not in scored]
    return replace(
        document,
        spans=tags_to_spans(tags, tokens, decode),
        tokens=tokens,
        tags=tuple(tags),
        unexpressed=(*document.unexpressed, *lost),
    )


def finished(location: FileLine, document: Document, options: TokenisedOptions) -> Document:
    """The document with its distinct mentions in order of position, or with tokens and tags (see
    `with_tags`).
    """
    if options.tokens == "none":
        return replace(document, spans=tuple(sorted(set(document.spans))))
    try:
        # In the file's order: of mentions that begin alike, the later one is the last.
        return with_tags(document, options.tokens, options.overlap, options.decode)
    except ValueError as error:
        raise location.bad(str(error), "set `reader.overlap`") from None


def unit(document: Document, start: int, end: int, id: str) -> Document:
    """The document's characters [start, end) as one of its own. Mentions that the border cuts are
    dropped, and counted as unexpressed where they begin inside.
    """

    def inside(named: Iterable[Named]) -> Iterator[Named]:
        for begin, stop, name in named:
            if start <= begin <= stop <= end:
                yield begin - start, stop - start, name

    spans = starmap(Span, inside(document.spans))
    concepts = inside(document.concepts)
    cut = [span.label for span in set(document.spans) if start <= span.start < end < span.end]
    return replace(
        document,
        id=id,
        text=document.text[start:end],
        spans=tuple(spans),
        concepts=tuple(concepts),
        unexpressed=tuple(sorted(cut)),
    )


def lines_of(text: str) -> Iterator[tuple[int, int, int]]:
    """(start, end, number from 1) of every line that holds more than white space, ends trimmed."""
    position = 0
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if stripped:
            start = position + line.index(stripped)
            yield start, start + len(stripped), number
        position += len(line) + 1
