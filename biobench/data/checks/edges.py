"""Whether mentions begin and end where words do, and how offsets may have been meant that do not.

The corpus is compared with itself under other ways to count, so no word list is needed.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain

from biobench.schema.document import Document, Span

Place = tuple[int, int]
"""Characters [start, end)."""
Move = Callable[[str, Place], Place | None]
"""Text and place as annotated to the place that was meant; None where there is none."""


def _letter_of_a_word(character: str) -> bool:
    """A letter or digit of a script that parts its words by blanks."""
    return character.isalnum() and unicodedata.category(character) != "Lo"


def inside_word(text: str, at: int) -> bool:
    """Whether a letter or digit stands on both sides of the border before character `at`."""
    within = 0 < at < len(text)
    return within and _letter_of_a_word(text[at - 1]) and _letter_of_a_word(text[at])


def unreachable(document: Document) -> tuple[list[Span], list[Span]]:
    """(mentions with an edge inside a word, others with a blank at an edge).

    Models answer in words: they predict no such mention.
    """
    text = document.text
    cut: list[Span] = []
    blank: list[Span] = []
    for span in document.spans:
        surface = text[span.start : span.end]
        if inside_word(text, span.start) or inside_word(text, span.end):
            cut.append(span)
        elif surface != surface.strip():
            blank.append(span)
    return cut, blank


def bad_edges(text: str, location: Place) -> int:
    """How many of the two edges lie inside a word, on a blank or on a punctuation sign."""
    start, end = location
    bad_start = not text[start].isalnum() or inside_word(text, start)
    bad_end = not text[end - 1].isalnum() or inside_word(text, end)
    return bad_start + bad_end


@dataclass(frozen=True, slots=True)
class BadEdges:
    """bad: share of bad edges, 0-1. mentions: on how many."""

    bad: float
    mentions: int


def share_of(located: Iterable[tuple[str, Place | None]]) -> BadEdges:
    """Bad edges of the places that lie in their texts."""
    bad = mentions = 0
    for text, location in located:
        if location is not None and 0 <= location[0] < location[1] <= len(text):
            mentions += 1
            bad += bad_edges(text, location)
    return BadEdges(bad / max(1, 2 * mentions), mentions)


def annotated(documents: Sequence[Document]) -> BadEdges:
    """As the corpus has them."""
    return moved(documents, shifted(0, 0))


def moved(documents: Sequence[Document], move: Move) -> BadEdges:
    """As they were if offsets had been meant so."""
    located = [_located(document, move) for document in documents]
    return share_of(chain.from_iterable(located))


def _located(document: Document, move: Move) -> Iterator[tuple[str, Place | None]]:
    for span in set(document.spans):
        yield document.text, move(document.text, span[:2])


def shifted(start: int, end: int) -> Move:
    """The offsets by so many characters."""
    return lambda text, location: (location[0] + start, location[1] + end)


def _by_sizes(size: Callable[[str], int]) -> Move:
    """Offsets that count units, of which a character may have several, or none."""

    @lru_cache(maxsize=1)  # the mentions of a text come one after the other
    def units_before(text: str) -> list[int]:
        return list(accumulate(map(size, text), initial=0))

    def move(text: str, location: Place) -> Place | None:
        before = units_before(text)
        if before[-1] == len(text):
            return location
        # Of characters without a unit the mention has none: it begins after and ends before them.
        start = bisect_right(before, location[0]) - 1
        end = bisect_left(before, location[1])
        fits = end < len(before) and (before[start], before[end]) == location
        return (start, end) if fits else None

    return move


CAUSES: dict[str, Move] = {
    "ends are one short (they name the last character)": shifted(0, 1),
    "ends are one too far": shifted(0, -1),
    "starts are one too far (they count from 1)": shifted(-1, 0),
    "starts are one short": shifted(1, 0),
    "offsets fit as UTF-16 units": _by_sizes(lambda sign: 1 + (sign > "\uffff")),
    "offsets fit as UTF-8 bytes": _by_sizes(
        lambda sign: len(sign.encode("utf-8", "surrogatepass"))
    ),
    "offsets fit where a line end counts as two characters": _by_sizes(
        lambda sign: 1 + (sign == "\n")
    ),
    "offsets fit where CR LF counts as one": _by_sizes(lambda sign: int(sign != "\r")),
    "offsets fit one character further": shifted(1, 1),
    "offsets fit one character before (a byte order mark, or they count from 1)": shifted(-1, -1),
}
"""How offsets are counted wrongly, in words, and what was meant."""
HALF, POINTS = 0.5, 0.03
"""A move must at least halve the share of bad edges and lower it by 3 points. On the corpora
measured the share is 0.0 to 2.8 percent as annotated, no move lowers it, and at least 95 percent
after a shift by one character; after a shift by one token it is 8 to 41 percent on all but one.
"""


def explains(share: BadEdges, better: BadEdges) -> bool:
    """Whether the move tells how offsets were meant. Mentions at the ends of texts cannot be moved;
    a move that leaves few of them behind says nothing.
    """
    enough = better.mentions > 0 and better.mentions >= share.mentions / 2
    is_half = better.bad <= HALF * share.bad
    is_lower = share.bad - better.bad >= POINTS
    return enough and is_half and is_lower


def cause(documents: Sequence[Document]) -> str | None:
    """How the offsets were meant, in words; None where no known way fits.

    Each document is counted as annotated or as meant, whichever fits it better: often some
    documents alone hold the characters, or come from the tool, that count otherwise.
    """
    share = annotated(documents)
    if share.bad < POINTS:
        return None
    fitting: dict[str, float] = {}
    for words, move in CAUSES.items():
        better = _some_moved(documents, move)
        if explains(share, better):
            fitting[words] = better.bad
    return min(fitting, key=fitting.__getitem__, default=None)


def _some_moved(documents: Sequence[Document], move: Move) -> BadEdges:
    """The documents that fit better so are moved."""
    located: list[tuple[str, Place | None]] = []
    for document in documents:
        better = moved([document], move)
        fits = better.mentions and better.bad < annotated([document]).bad
        located += _located(document, move if fits else shifted(0, 0))
    return share_of(located)


def meant(text: str, pieces: Sequence[Place], surface: str) -> str | None:
    """The first way to count under which the pieces hold the surface, white space inside it aside,
    in words; None where there is none.
    """
    wanted = "".join(surface.split())
    for words, move in CAUSES.items():
        if _held(text, pieces, move) == wanted:
            return words
    return None


def _held(text: str, pieces: Sequence[Place], move: Move) -> str | None:
    """What the pieces hold if they were meant so, without white space; None where one has no place
    in the text, or begins or ends with white space.
    """
    held = ""
    for piece in pieces:
        start, end = move(text, piece) or (-1, -1)
        moved_piece = text[max(start, 0) : end]
        if not 0 <= start <= end <= len(text) or moved_piece != moved_piece.strip():
            return None
        held += moved_piece
    return "".join(held.split())
