"""Whether mentions lie where they should: the surface check against shifted offsets.

An edge of a mention is bad when it falls inside a word (a letter or digit on both sides) or when the mention
begins or ends with a blank or a punctuation sign. The check moves all mentions by a few characters, and by one
token where the corpus has tokens, and looks for a move that makes things much better. So it needs no word
list and no threshold of a language: text without blanks is equally bad under every move and passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biobench.schema.document import Document, Span

CHARACTERS = (-3, -2, -1, 1, 2, 3)
TOKENS = (-1, 1)
HALF = 0.5
"""A move must at least halve the share of bad edges ..."""
POINTS = 0.03
"""... and lower it by this much. On the corpora measured (docs/floors.md) the share is 0.0 to 2.8 percent as
annotated, no move lowers it, and at least 95 percent after a shift by one character, so that the way back
lowers it by 90 points and more; after a shift by one token it is 8 to 41 percent on all but one."""


@dataclass(frozen=True, slots=True)
class Surface:
    """share: of bad edges as annotated (0-1). best: the lowest share under a move, and that move in words; None
    where no mention can be moved. shifted: the move shows that offsets are shifted."""

    share: float
    best: tuple[float, str] | None
    mentions: int

    @property
    def shifted(self) -> bool:
        """Whether the best move is better by both thresholds."""
        return self.best is not None and self.best[0] <= HALF * self.share and self.share - self.best[0] >= POINTS


def surface(documents: Sequence[Document]) -> Surface:
    """Bad edges over all mentions of the documents, as annotated and moved."""
    share, mentions = _share(documents, 0, tokens=False)
    moves = []
    for steps, tokens, unit in ((CHARACTERS, False, "character"), (TOKENS, True, "token")):
        for step in steps:
            moved, count = _share(documents, step, tokens=tokens)
            # Mentions at the ends cannot be moved; a move that leaves few of them behind says nothing.
            if count >= mentions / 2 and count:
                moves.append((moved, f"{abs(step)} {unit}{'s' if abs(step) > 1 else ''} {_WAY[step > 0]}"))
    return Surface(share, min(moves, default=None), mentions)


_WAY = {True: "to the right", False: "to the left"}


def _share(documents: Sequence[Document], step: int, *, tokens: bool) -> tuple[float, int]:
    """Share of bad edges among the mentions that can be moved by `step`, and how many those are."""
    bad = count = 0
    for d in documents:
        for start, end in _moved(d, step) if tokens else [(s.start + step, s.end + step) for s in set(d.spans)]:
            if 0 <= start < end <= len(d.text):
                count += 1
                bad += _bad_edges(d.text, start, end)
    return (bad / (2 * count) if count else 0.0), count


def _moved(document: Document, step: int) -> list[tuple[int, int]]:
    """Character offsets of the mentions moved by `step` tokens, where both ends stay in the document."""
    first = {start: i for i, (start, _) in enumerate(document.tokens)}
    last = {end: i for i, (_, end) in enumerate(document.tokens)}
    offsets = []
    spans: set[Span] = set(document.spans)
    for s in spans:
        if s.start in first and s.end in last:
            a, b = first[s.start] + step, last[s.end] + step
            if a >= 0 and b < len(document.tokens):
                offsets.append((document.tokens[a][0], document.tokens[b][1]))
    return offsets


def _bad_edges(text: str, start: int, end: int) -> int:
    """How many of the two edges of text[start:end] are bad."""
    left = not text[start].isalnum() or (start > 0 and text[start - 1].isalnum())
    right = not text[end - 1].isalnum() or (end < len(text) and text[end].isalnum())
    return int(left) + int(right)
